"""The bytes of the KV cache and of recurrent states, in closed form; equal to llama.cpp's allocator.

Sources, in llama.cpp at llama-cpp-python 0.3.36: src/llama-context.cpp (padding of the context),
src/llama-kv-cache.cpp (a layer's tensors), src/llama-kv-cache-iswa.cpp (two caches with windows),
src/llama-memory-recurrent.cpp (states).
"""

from dataclasses import dataclass

from octavo.core.config.load_config import DEFAULT_CONTEXT, PLAIN_KV_TYPES, FlashAttention, KvType, LoadConfig
from octavo.core.memory.shape import Shape

CELL_PADDING = 256
"""Cells; src/llama-context.cpp and src/llama-kv-cache-iswa.cpp."""

TENSOR_ALIGNMENT = 32
"""Bytes; ggml/src/ggml-backend.cpp, the CPU buffer."""

# values per block and bytes per block (ggml/src/ggml-common.h)
BLOCKS: dict[KvType, tuple[int, int]] = {
    "f32": (1, 4), "f16": (1, 2), "bf16": (1, 2), "q8_0": (32, 34), "q5_1": (32, 24),
    "q5_0": (32, 22), "q4_1": (32, 20), "q4_0": (32, 18), "iq4_nl": (32, 18),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Cells:
    """What llama.cpp makes of the wished context, in cells.

    ``wish`` is before padding, ``total`` what the engine reports, ``per_stream`` the cells of each of
    ``streams`` pools, ``window`` the cells that windowed layers have in each pool.
    """

    wish: int
    total: int
    per_stream: int
    streams: int
    window: int


def padded(count: int, step: int) -> int:
    """Give ``count`` rounded up to a multiple of ``step``."""
    return -(-count // step) * step


def cells(shape: Shape, config: LoadConfig) -> Cells:
    """Give the cells that a configuration leads to."""
    wish = config.context or min(shape.trained_context or DEFAULT_CONTEXT, DEFAULT_CONTEXT)
    total, slots = padded(wish, CELL_PADDING), max(config.slots, 1)
    per_stream = total if config.kv_unified else padded(total // slots, CELL_PADDING) or CELL_PADDING
    streams = 1 if config.kv_unified else slots
    window = _window_cells(shape, config, per_stream, wish)
    return Cells(wish, per_stream * streams, per_stream, streams, window)


def _window_cells(shape: Shape, config: LoadConfig, per_stream: int, wish: int) -> int:
    """Give the cells of windowed layers; src/llama-kv-cache-iswa.cpp."""
    if config.swa_full or not shape.has_window_cache:
        return per_stream
    reach = shape.window * (config.slots if config.kv_unified else 1) + micro_batch(config, wish)
    return padded(min(per_stream, reach), CELL_PADDING)


def micro_batch(config: LoadConfig, context: int) -> int:
    """Give the tokens that are computed at once; src/llama-context.cpp, before the context is padded."""
    return min(config.micro_batch, config.batch, context)


def row_bytes(kind: KvType, width: int) -> int:
    """Give the bytes of ``width`` values in a cache of type ``kind``."""
    values, size = BLOCKS[kind]
    return -(-width // values) * size


def uses_flash_attention(shape: Shape, config: LoadConfig) -> bool:
    """Tell whether attention runs fused; a quantised V turns it on, some architectures turn it off."""
    if not shape.has_flash_attention:
        return False
    return config.flash_attention is not FlashAttention.OFF or config.kv_v not in PLAIN_KV_TYPES


def kv_bytes(shape: Shape, config: LoadConfig) -> int:
    """Give the bytes of the KV cache; it does not grow later."""
    held, is_fused = cells(shape, config), uses_flash_attention(shape, config)
    total = 0
    for layer, count in shape.kv_layers:
        value_width = layer.value_width
        if value_width and not is_fused:
            value_width = shape.transposed_value_width  # without it, V is transposed and padded to the widest
        row = row_bytes(config.kv_k, layer.key_width) + row_bytes(config.kv_v, value_width)
        total += count * row * held.streams * (held.window if layer.is_windowed else held.per_stream)
    return total


def recurrent_bytes(shape: Shape, config: LoadConfig) -> int:
    """Give the bytes of recurrent states: float32, one per slot, whatever the context."""
    slots = max(config.slots, 1)
    parts = (padded(4 * size * slots, TENSOR_ALIGNMENT) for size in (shape.conv_state, shape.ssm_state))
    return shape.recurrent_layers * sum(parts)
