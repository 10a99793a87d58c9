"""Where llama.cpp keeps its tensors in memory: weights and KV cache, by name.

The graph that llama.cpp reserves for the largest batch (``llama_graph_reserve``, src/llama-ext.h, exported
from libllama under its C++ name) reaches every tensor that a decode reads. ``ggml_tensor`` is read at two
fields, ``ne`` and ``nb`` (ggml.h), and what they say is compared with what ggml says before it is believed.
"""

import ctypes
from dataclasses import dataclass
from typing import Any

from octavo.core.engine.bindings import load_bindings

# Itanium C++ ABI: llama_graph_reserve(llama_context *, uint32_t, uint32_t, uint32_t)
RESERVE = "_Z19llama_graph_reserveP13llama_contextjjj"
SHAPE_AT, STRIDE_AT = 16, 48  # ggml.h, struct ggml_tensor on a 64-bit machine: type, buffer, ne[4], nb[4]
FUSED_ATTENTION = b"FLASH_ATTN_EXT"  # ggml.c, GGML_OP_NAME


@dataclass(frozen=True, slots=True)
class KvTensor:
    """K or V of one layer: ``streams`` pools of ``cells`` rows of ``row_bytes`` each."""

    name: str
    address: int
    row_bytes: int
    cells: int
    streams: int

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return self.row_bytes * self.cells * self.streams


class Tensors:
    """The tensors of one context; raises ``LookupError`` where this build does not tell of them.

    Make it before the first decode: the graph is reserved anew for ``micro_batch`` tokens of ``slots``
    sequences, as llama.cpp itself did, and is valid only until the next one.
    """

    def __init__(self, context: Any, micro_batch: int, slots: int) -> None:
        self._library = load_bindings()._lib
        if ctypes.sizeof(ctypes.c_void_p) != 8 or not hasattr(self._library, RESERVE):
            raise LookupError("this build of llama.cpp does not tell where its tensors are")
        _declare(self._library)
        self._graph = getattr(self._library, RESERVE)(context, micro_batch, slots, slots)
        if not self._graph:
            raise LookupError("llama.cpp could not reserve a graph")

    def address(self, name: str) -> int | None:
        """Give where a tensor's data begins; None for one that no decode reads, or that has none."""
        tensor = self._find(name)
        return int(self._library.ggml_get_data(tensor) or 0) or None if tensor else None

    def kv(self, layers: range) -> list[KvTensor]:
        """Give K of each layer, and V where its rows are cells (with fused attention; else it is turned)."""
        kinds = "kv" if self._has_fused_attention() else "k"
        found = [self._kv_tensor(f"cache_{kind}_l{layer}") for layer in layers for kind in kinds]
        return [tensor for tensor in found if tensor is not None]

    def _has_fused_attention(self) -> bool:
        library = self._library
        nodes = range(library.ggml_graph_n_nodes(self._graph))
        return any(
            library.ggml_op_desc(library.ggml_graph_node(self._graph, at)) == FUSED_ATTENTION for at in nodes
        )

    def _kv_tensor(self, name: str) -> KvTensor | None:
        tensor, address = self._find(name), self.address(name)
        if not tensor or address is None:
            return None
        shape = (ctypes.c_int64 * 4).from_address(tensor + SHAPE_AT)
        strides = (ctypes.c_size_t * 4).from_address(tensor + STRIDE_AT)
        found = KvTensor(name, address, strides[1], shape[1], shape[2])
        if found.nbytes != self._library.ggml_nbytes(tensor) or shape[3] != 1:
            raise LookupError(f"{name} is not laid out as expected")
        return found

    def _find(self, name: str) -> int | None:
        found: int | None = self._library.ggml_graph_get_tensor(self._graph, name.encode())
        return found


# ggml.h: name, what it gives, what it takes
_FUNCTIONS: tuple[tuple[str, Any, list[Any]], ...] = (
    (RESERVE, ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint32, ctypes.c_uint32]),
    ("ggml_graph_get_tensor", ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_char_p]),
    ("ggml_graph_n_nodes", ctypes.c_int, [ctypes.c_void_p]),
    ("ggml_graph_node", ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_int]),
    ("ggml_op_desc", ctypes.c_char_p, [ctypes.c_void_p]),
    ("ggml_get_data", ctypes.c_void_p, [ctypes.c_void_p]),
    ("ggml_nbytes", ctypes.c_size_t, [ctypes.c_void_p]),
)


def _declare(library: Any) -> None:
    for name, gives, takes in _FUNCTIONS:
        function = getattr(library, name)
        function.restype, function.argtypes = gives, takes
