"""The one typed wrapper over llama.cpp's C interface (llama.h, llama-cpp-python 0.3.36).

What llama.cpp asserts is checked here or by the callers first, because a failed assert ends the process:
a batch holds at most ``n_batch`` tokens and ``slots`` outputs, sequence ids are below ``slots``, and
sequences are copied in part only where they share one cell pool.
"""

import ctypes
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, Self

from octavo.core.config.load_config import DEFAULT_CONTEXT, FlashAttention, LoadConfig, LoadMode
from octavo.core.engine.bindings import load_bindings
from octavo.core.engine.cells import CellPool, Part
from octavo.core.engine.log import EngineLog
from octavo.core.errors import InvalidRequest, LoadFailed

C = load_bindings()

# ggml.h, enum ggml_type
KV_TYPES = {
    "f32": 0, "f16": 1, "q4_0": 2, "q4_1": 3, "q5_0": 6, "q5_1": 7, "q8_0": 8, "iq4_nl": 20, "bf16": 30,
}  # fmt: skip
# llama.h, enum llama_load_mode
LOAD_MODES = {
    LoadMode.NONE: 0,
    LoadMode.MMAP: 1,
    LoadMode.MLOCK: 2,
    LoadMode.MMAP_MLOCK: 3,
    LoadMode.DIRECT_IO: 4,
}
# llama.h, enum llama_flash_attn_type
FLASH_ATTENTION = {FlashAttention.AUTO: -1, FlashAttention.OFF: 0, FlashAttention.ON: 1}

# llama.h, enum llama_token_attr: unknown and control, which count as such only in text that may hold them;
# user-defined tokens count in any text
CONTROL_ATTRIBUTES = 1 << 0 | 1 << 3

# llama.h, llama_decode
DONE, NO_ROOM = 0, 1


class _BufferOverride(ctypes.Structure):
    """llama.h, struct llama_model_tensor_buft_override."""

    _fields_ = [("pattern", ctypes.c_char_p), ("buffer_type", ctypes.c_void_p)]


def model_parameters(config: LoadConfig) -> tuple[Any, list[Any]]:
    """Give ``llama_model_params`` for ``config`` and the objects that must outlive them."""
    parameters = C.llama_model_default_params()
    parameters.load_mode = LOAD_MODES[config.load_mode]
    parameters.use_extra_bufts = config.repack
    parameters.n_gpu_layers = config.gpu_layers
    kept: list[Any] = []
    if config.cpu_moe_layers:
        overrides = _experts_on_cpu(config.cpu_moe_layers)
        parameters.tensor_buft_overrides = ctypes.cast(overrides, ctypes.c_void_p)
        kept.append(overrides)
    if config.tensor_split:
        shares = _split_shares(config.tensor_split)
        parameters.tensor_split = shares
        kept.append(shares)
    return parameters, kept


def _experts_on_cpu(layers: int) -> Any:
    """Name the expert tensors of the first ``layers`` layers; pattern as in llama.cpp's --n-cpu-moe."""
    buffer_type = C._lib.ggml_backend_cpu_buffer_type  # found through libllama's own dependencies
    buffer_type.restype = ctypes.c_void_p
    rows = [
        _BufferOverride(rb"blk\.%d\.ffn_(up|down|gate_up|gate)_(ch|)exps" % layer, buffer_type())
        for layer in range(layers)
    ]
    return (_BufferOverride * (layers + 1))(*rows, _BufferOverride(None, None))


def _split_shares(shares: Sequence[float]) -> Any:
    devices = max(int(C.llama_max_devices()), 1)
    padded = [*shares, *[0.0] * devices][:devices]
    return (ctypes.c_float * devices)(*padded)


def context_parameters(config: LoadConfig, trained_context: int) -> Any:
    """Give ``llama_context_params`` for ``config``; the context defaults to what the model was trained on."""
    parameters = C.llama_context_default_params()
    parameters.n_ctx = config.context or min(trained_context or DEFAULT_CONTEXT, DEFAULT_CONTEXT)
    parameters.n_batch = config.batch
    parameters.n_ubatch = config.micro_batch
    parameters.n_seq_max = config.slots
    parameters.n_outputs_max = config.slots
    parameters.n_threads = parameters.n_threads_batch = config.threads or 1
    parameters.type_k = KV_TYPES[config.kv_k]
    parameters.type_v = KV_TYPES[config.kv_v]
    parameters.flash_attn_type = FLASH_ATTENTION[config.flash_attention]
    parameters.swa_full = config.swa_full
    parameters.kv_unified = config.kv_unified
    parameters.rope_freq_base = config.rope_base or 0.0
    parameters.rope_freq_scale = config.rope_scale or 0.0
    parameters.no_perf = True
    return parameters


class Model:
    """A loaded model: weights and vocabulary."""

    def __init__(
        self, path: str, config: LoadConfig, log: EngineLog, on_share: Callable[[float], None]
    ) -> None:
        C.llama_backend_init()
        parameters, self._kept = model_parameters(config)

        def go_on(share: float, _: object) -> bool:
            on_share(share)
            return True  # False would end the load; a load that is called off is killed instead

        self._progress = C.llama_progress_callback(go_on)
        parameters.progress_callback = self._progress
        self.handle = C.llama_model_load_from_file(path.encode(), parameters)
        if not self.handle:
            raise LoadFailed(
                f"llama.cpp could not load {path}: {log.cause()}.",
                hint="The file may be damaged, or of a kind that this engine does not know.",
                log=log.tail(),
            )
        self.vocabulary = Vocabulary(C.llama_model_get_vocab(self.handle))
        self.trained_context = int(C.llama_model_n_ctx_train(self.handle))
        self.layers = int(C.llama_model_n_layer(self.handle))
        self.sliding_window = int(C.llama_model_n_swa(self.handle))
        self.has_state = bool(C.llama_model_is_recurrent(self.handle) or C.llama_model_is_hybrid(self.handle))
        if C.llama_model_has_encoder(self.handle):
            raise LoadFailed(
                "This model has an encoder; Octavo runs decoder models.", hint="Choose another model."
            )

    def free(self) -> None:
        """Give back the weights."""
        C.llama_model_free(self.handle)


class Vocabulary:
    """Text to tokens and back."""

    def __init__(self, handle: Any) -> None:
        self.handle = handle
        self.size = int(C.llama_vocab_n_tokens(handle))
        self.bos = int(C.llama_vocab_bos(handle))
        self.eos = int(C.llama_vocab_eos(handle))
        self.adds_bos = bool(C.llama_vocab_get_add_bos(handle))
        self._pieces: dict[int, bytes] = {}
        self._room = ctypes.create_string_buffer(256)

    def tokenize(self, text: str, *, special: bool) -> list[int]:
        """Give the token ids of ``text``, without BOS; ``special``: control tokens count as such."""
        data = text.encode("utf-8", "surrogatepass").decode("utf-8", "replace").encode()
        if not data:
            return []
        room = len(data) + 8
        while True:
            tokens = (C.llama_token * room)()
            count = int(C.llama_tokenize(self.handle, data, len(data), tokens, room, False, special))
            if count >= 0:
                return list(tokens[:count])
            room = -count

    def piece(self, token: int) -> bytes:
        """Give the bytes of one token; control tokens give none."""
        known = self._pieces.get(token)
        if known is None:
            known = self._pieces[token] = self._read_piece(token, special=False)
        return known

    def is_end(self, token: int) -> bool:
        """Tell whether ``token`` ends a turn."""
        return bool(C.llama_vocab_is_eog(self.handle, token))

    def text(self, token: int) -> str:
        """Give the written form of a token, control tokens included; "" for none."""
        return self._read_piece(token, special=True).decode("utf-8", "replace") if token >= 0 else ""

    def control_tokens(self) -> list[str]:
        """Give the written forms of all tokens that must not be typed by a person."""
        attributes = C.llama_vocab_get_attr
        marked = (token for token in range(self.size) if attributes(self.handle, token) & CONTROL_ATTRIBUTES)
        return [text for text in map(self.text, marked) if text.strip()]

    def _read_piece(self, token: int, *, special: bool) -> bytes:
        room = self._room
        count = int(C.llama_token_to_piece(self.handle, token, room, len(room), 0, special))
        if count < 0:
            room = self._room = ctypes.create_string_buffer(-count)
            count = int(C.llama_token_to_piece(self.handle, token, room, len(room), 0, special))
        return room.raw[:count]


class Batch:
    """Tokens to be decoded together; filled anew for each step."""

    def __init__(self, capacity: int) -> None:
        self._batch = C.llama_batch_init(capacity, 0, 1)
        self.capacity = capacity
        self.parts: list[Part] = []

    def clear(self) -> None:
        """Forget all tokens."""
        self._batch.n_tokens = 0
        self.parts = []

    def __len__(self) -> int:
        return int(self._batch.n_tokens)

    def add(self, tokens: Sequence[int], position: int, sequence: int, *, wants_logits: bool) -> int:
        """Add consecutive tokens of one sequence; ``wants_logits`` of the last.

        Gives the last one's index.
        """
        batch = self._batch
        first = batch.n_tokens
        if first + len(tokens) > self.capacity:
            raise ValueError(f"a batch holds {self.capacity} tokens")
        for index, token in enumerate(tokens, first):
            batch.token[index] = token
            batch.pos[index] = position + index - first
            batch.n_seq_id[index] = 1
            batch.seq_id[index][0] = sequence
            batch.logits[index] = 0
        batch.n_tokens = first + len(tokens)
        self.parts.append((sequence, position, len(tokens)))
        last = batch.n_tokens - 1
        batch.logits[last] = int(wants_logits)
        return int(last)

    @property
    def raw(self) -> Any:
        """The C structure."""
        return self._batch

    def free(self) -> None:
        """Give the arrays back."""
        C.llama_batch_free(self._batch)


class Context:
    """KV cache and compute buffers of one loaded model."""

    def __init__(self, model: Model, config: LoadConfig, log: EngineLog) -> None:
        self.model = model
        self.handle = C.llama_init_from_model(model.handle, context_parameters(config, model.trained_context))
        if not self.handle:
            raise LoadFailed(
                f"llama.cpp could not make the context: {log.cause()}.",
                hint="Try a smaller context, or f16 for kv_k and kv_v.",
                log=log.tail(),
            )
        self.unified = config.kv_unified
        self._memory = C.llama_get_memory(self.handle)
        self.cells = int(C.llama_n_ctx(self.handle))
        self.usable = int(C.llama_n_ctx_seq(self.handle))
        self.batch_limit = int(C.llama_n_batch(self.handle))
        # a window cache forgets what slid out of the window; only a full one can go back
        self.window = 0 if config.swa_full else model.sliding_window
        self.slots = config.slots
        self.micro_batch = int(C.llama_n_ubatch(self.handle))
        pools = 1 if self.unified else config.slots
        self.pools = [CellPool(self.cells // pools, self.micro_batch) for _ in range(pools)]
        self._abort = AbortFlag(self.handle)

    @property
    def used_cells(self) -> int:
        """KV cells that hold something, each counted once."""
        return sum(pool.used for pool in self.pools)

    def shared_cells(self, sequence: int) -> int:
        """Count the cells of a sequence that another one uses as well."""
        return self._pool(sequence).shared(sequence)

    def decode(self, batch: Batch) -> int:
        """Run a batch: 0 done, 1 no room, 2 aborted, below 0 failed (llama.h, llama_decode)."""
        self._abort.lower()
        result = int(C.llama_decode(self.handle, batch.raw))
        for pool in self.pools if result != NO_ROOM else ():
            parts = [part for part in batch.parts if self._pool(part[0]) is pool]
            follow = pool.place if result == DONE else pool.place_broken_off
            follow(parts)
        return result

    def abort(self) -> None:
        """Stop the decode that runs now, from any thread."""
        self._abort.raise_()

    def logits(self, index: int) -> Any:
        """Give the logits of one batch index: ``vocabulary.size`` floats, valid until the next decode."""
        return C.llama_get_logits_ith(self.handle, index)

    def keep(self, sequence: int, count: int) -> bool:
        """Drop a sequence's cells from position ``count`` on; False when this kind of memory can't."""
        if not C.llama_memory_seq_rm(self._memory, sequence, count, -1):
            return False
        self._pool(sequence).keep(sequence, count)
        return True

    def drop(self, sequence: int) -> None:
        """Drop all cells of a sequence; an empty cache begins anew, as after a load."""
        C.llama_memory_seq_rm(self._memory, sequence, -1, -1)
        self._pool(sequence).keep(sequence, 0)
        if not self.used_cells:
            C.llama_memory_clear(self._memory, False)
            for pool in self.pools:
                pool.clear()

    def share(self, source: int, target: int, count: int) -> None:
        """Let ``target`` use the first ``count`` cells of ``source``; across cell pools that aborts."""
        if not self.unified:
            raise ValueError("sequences share cells only in a unified cache")
        C.llama_memory_seq_cp(self._memory, source, target, 0, count)
        self.pools[0].share(source, target, count)

    def first_position(self, sequence: int) -> int:
        """Give the smallest position that is still held for every layer; -1 for an empty sequence."""
        return int(C.llama_memory_seq_pos_min(self._memory, sequence))

    def _pool(self, sequence: int) -> CellPool:
        return self.pools[0 if self.unified else sequence]

    def effective(self) -> dict[str, str | int | float | bool]:
        """Read back what llama.cpp made of the wishes."""
        return {
            "context": self.cells,
            "context_per_request": self.usable,
            "slots": int(C.llama_n_seq_max(self.handle)),
            "batch": self.batch_limit,
            "micro_batch": int(C.llama_n_ubatch(self.handle)),
            "threads": int(C.llama_n_threads(self.handle)),
            "threads_batch": int(C.llama_n_threads_batch(self.handle)),
        }

    def free(self) -> None:
        """Give back the buffers."""
        C.llama_free(self.handle)


class AbortFlag:
    """Stops a decode without Python's lock: libc's ``atoi`` is the callback, "0" or "1" its data."""

    def __init__(self, context: Any) -> None:
        self._text = ctypes.create_string_buffer(b"0")
        library = ctypes.CDLL("ucrtbase" if ctypes.sizeof(ctypes.c_wchar) == 2 else None)
        address = ctypes.cast(library.atoi, ctypes.c_void_p)
        self._callback = ctypes.cast(address, C.ggml_abort_callback)
        C.llama_set_abort_callback(context, self._callback, ctypes.cast(self._text, ctypes.c_void_p))

    def raise_(self) -> None:
        """Make the decode that runs now end."""
        self._text[0] = b"1"

    def lower(self) -> None:
        """Let the next decode run."""
        self._text[0] = b"0"


class Sampler:
    """A chain of llama.cpp samplers; a context manager that frees it."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._chain = C.llama_sampler_chain_init(C.llama_sampler_chain_default_params())
        self._vocabulary = vocabulary

    def add(self, sampler: Any, what: str) -> None:
        """Append a sampler, which the chain then owns; raises ``InvalidRequest`` when there is none."""
        if not sampler:
            raise InvalidRequest(f"llama.cpp refused the {what}.", hint=f"Check the {what}.", param=what)
        C.llama_sampler_chain_add(self._chain, sampler)

    def sample(self, context: Context, index: int) -> int:
        """Choose the next token after batch index ``index``; the chain takes note of it."""
        return int(C.llama_sampler_sample(self._chain, context.handle, index))

    def free(self) -> None:
        """Give the chain back."""
        C.llama_sampler_free(self._chain)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.free()
