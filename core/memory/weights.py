"""Where the weights go: mapped from the file, copied for the CPU, hot or cold.

Sources, in llama.cpp: src/llama-model-loader.cpp (which buffer a tensor gets), ggml/src/ggml-cpu/repack.cpp
(``ggml_repack_get_optimal_repack_type``), src/llama-model.cpp (tied output).
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from octavo.core.config.load_config import LoadConfig, LoadMode
from octavo.core.gguf import Header, Tensor

# ggml/src/ggml-cpu/repack.cpp, the branches with AVX2: type and what must divide the rows
REPACKED_ON_AVX2 = {"Q4_0": 8, "Q4_K": 8, "IQ4_NL": 8, "MXFP4": 8}

# src/llama-model-loader.cpp: MLOCK alone reads into private memory; a locked mapping can't be dropped
DROPPABLE_MODES = frozenset({LoadMode.MMAP})
READING_MODES = frozenset({LoadMode.NONE, LoadMode.MLOCK, LoadMode.DIRECT_IO})
MAPPING_MODES = frozenset({LoadMode.MMAP, LoadMode.MMAP_MLOCK})

_LAYER = re.compile(r"blk\.(\d+)\.")
_EXPERTS = re.compile(r"_(ch)?exps\.weight$")
# looked up by row, not multiplied; never repacked (GET_ROWS) and hardly read
_TABLES = ("token_embd.weight", "per_layer_token_embd.weight", "position_embd.weight", "token_types.weight")
# both make the output before the table, so that a private load holds two (src/models/gemma3n.cpp)
_TWICE = ("gemma3n", "gemma4")


@dataclass(frozen=True, slots=True)
class Weights:
    """Sums over the tensor table, in bytes.

    ``tables`` are looked up by row; with a tied output the embedding is also multiplied with and so hot.
    ``experts`` are all routed experts; ``repackable`` what CPU_REPACK copies on AVX2, ``repackable_experts``
    the experts of it.
    """

    total: int
    tables: int
    tied_output: int
    tied_is_repackable: bool
    has_double_output: bool
    experts: int
    expert_share: float
    repackable: int
    repackable_experts: int
    shards_read: int
    shards: int


@dataclass(frozen=True, slots=True)
class Placed:
    """The weights under one configuration, in bytes; ``hot_mapped`` excludes the routed ``experts``."""

    mapped: int
    private: int
    hot_mapped: int
    experts: int


def read_weights(header: Header, skipped_layers: range) -> Weights:
    """Sum up the tensor table; layers in ``skipped_layers`` are not loaded."""
    tensors = [tensor for tensor in header.tensors if layer_of(tensor) not in skipped_layers]
    names = {tensor.name for tensor in tensors}
    table = next((tensor for tensor in tensors if tensor.name == "token_embd.weight"), None)
    tied = table if table and "output.weight" not in names else None
    count, used = (_whole(header, key) for key in ("expert_count", "expert_used_count"))
    return Weights(
        total=_sum(tensors),
        tables=_sum(t for t in tensors if t.name in _TABLES),
        tied_output=tied.nbytes if tied else 0,
        tied_is_repackable=tied is not None and _has_repacked_form(tied),
        has_double_output=tied is not None and header.architecture in _TWICE,
        experts=_sum(t for t in tensors if is_expert(t)),
        expert_share=min(used / count, 1.0) if count > 0 else 1.0,
        repackable=_sum(t for t in tensors if is_repacked(t)),
        repackable_experts=_sum(t for t in tensors if is_repacked(t) and is_expert(t)),
        shards_read=len(header.files),
        shards=header.shard[1] if header.shard else 1,
    )


def layer_of(tensor: Tensor) -> int | None:
    """Give the layer that a tensor belongs to; None for those of the whole model."""
    found = _LAYER.match(tensor.name)
    return int(found[1]) if found else None


def is_expert(tensor: Tensor) -> bool:
    """Tell whether a tensor holds routed experts, of which a token reads few."""
    return _EXPERTS.search(tensor.name) is not None


def is_hot(tensor: Tensor, *, is_tied: bool) -> bool:
    """Tell whether a whole tensor is read for every token."""
    if tensor.name == "token_embd.weight":
        return is_tied
    return tensor.name not in _TABLES and not is_expert(tensor)


def unread_tensors(header: Header, skipped_layers: range) -> frozenset[str]:
    """Name the tensors of which an active model reads hardly a page: tables that are looked up by row only.

    Those of ``skipped_layers`` (prediction of several tokens at once), which nothing computes, are with them.
    """
    is_tied = all(tensor.name != "output.weight" for tensor in header.tensors)
    return frozenset(
        tensor.name
        for tensor in header.tensors
        if layer_of(tensor) in skipped_layers
        or (tensor.name in _TABLES and not is_hot(tensor, is_tied=is_tied))
    )


def is_repacked(tensor: Tensor) -> bool:
    """Tell whether CPU_REPACK copies a tensor on a CPU with AVX2 and no AMX."""
    if tensor.name in _TABLES or not tensor.name.endswith(".weight"):
        return False
    return _has_repacked_form(tensor) and (len(tensor.shape) == 2 or is_expert(tensor))


def _has_repacked_form(tensor: Tensor) -> bool:
    rows = REPACKED_ON_AVX2.get(tensor.type.name)
    return rows is not None and len(tensor.shape) > 1 and tensor.shape[1] % rows == 0


def place(weights: Weights, config: LoadConfig, file_bytes: int | None = None) -> Placed:
    """Give where the weights are under ``config``; ``file_bytes`` counts shards that were not read."""
    total = max(weights.total, file_bytes or 0) if weights.shards_read < weights.shards else weights.total
    if config.load_mode not in DROPPABLE_MODES:
        return Placed(0, total + _second_table(weights, config), 0, 0)
    # repacked tensors are copied; their pages in the file are given back after the load
    copied = weights.repackable if config.repack else 0
    copied_experts = weights.repackable_experts if config.repack else 0
    cold = weights.tables - weights.tied_output
    experts = weights.experts - copied_experts
    hot = total - copied - experts - cold
    return Placed(total - copied, copied + _second_table(weights, config), max(hot, 0), experts)


def _second_table(weights: Weights, config: LoadConfig) -> int:
    """Give the second copy of a tied table: repacked, or read twice by the architectures that ask twice."""
    is_repacked_too = config.repack and weights.tied_is_repackable
    is_read_twice = weights.has_double_output and config.load_mode in READING_MODES
    return weights.tied_output if is_repacked_too or is_read_twice else 0


def _sum(tensors: Iterable[Tensor]) -> int:
    return sum(tensor.nbytes for tensor in tensors)


def _whole(header: Header, key: str) -> int:
    value = header.metadata.get(f"{header.architecture}.{key}")
    if isinstance(value, tuple):
        value = max((item for item in value if isinstance(item, int)), default=0)
    return int(value) if isinstance(value, int) else 0
