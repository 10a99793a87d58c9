"""The compute buffer and the output buffer.

llama.cpp reserves the compute buffer once, for the widest step of a prefill (``sched_reserve`` in
src/llama-context.cpp), by running ggml's graph allocator over the model's graph. The closed form names
the values per token that are alive at the widest places; the coefficients were fitted to dry runs over the
tests' zoo and hold within 16 MiB or 2 % of the total there. The output buffer is exact.
"""

from octavo.core.config.load_config import LoadConfig
from octavo.core.memory.architectures import PARALLEL, QUERY_IS_FREED
from octavo.core.memory.kv import Cells, cells, micro_batch, uses_flash_attention
from octavo.core.memory.shape import Shape

INPUTS = 6
"""Values per token: ids, positions, places in the cache, output ids."""


def output_bytes(shape: Shape, config: LoadConfig) -> int:
    """Give the bytes of the output buffer: float32 logits for each slot (``output_reserve``)."""
    return 4 * shape.vocabulary * max(config.slots, 1)


def compute_bytes(shape: Shape, config: LoadConfig) -> int:
    """Give the bytes of the compute buffer on the CPU."""
    held = cells(shape, config)
    tokens = micro_batch(config, held.wish)
    attends = _attention_bytes(shape, config, held, tokens)
    per_token = max(_forward(shape), _expert(shape), _state(shape), _rwkv(shape))
    steps = 4 * tokens * per_token + _states_in_flight(shape, config)
    logits = 4 * max(config.slots, 1) * (shape.vocabulary + shape.widths.embedding)
    widest = max(steps, attends, logits)
    return (
        widest + 4 * tokens * (INPUTS + _inputs_per_layer(shape)) + _mask_bytes(shape, config, held, tokens)
    )


def _mask_bytes(shape: Shape, config: LoadConfig, held: Cells, tokens: int) -> int:
    """Give the bytes of the attention masks: one row of cells per token and kind of cache.

    ``build_attn_inp_kq_mask`` in src/llama-graph.cpp; f16 with flash attention, else f32.
    """
    rows = (held.per_stream if shape.kv_layers else 0) + (held.window if shape.has_window_cache else 0)
    return (2 if uses_flash_attention(shape, config) else 4) * tokens * rows


def _attention_bytes(shape: Shape, config: LoadConfig, held: Cells, tokens: int) -> int:
    """Give the bytes alive in the widest attention layer.

    Without flash attention the scores of all heads, in f32; with it and an f32 cache, f16 copies of one
    layer's K and V (``build_attn_mha`` in src/llama-graph.cpp).
    """
    if not shape.kv_layers:
        return 0
    widths = shape.widths
    if not uses_flash_attention(shape, config):
        scores = widths.heads * held.per_stream
        return 4 * tokens * (scores + widths.embedding + 4 * widths.query + 2 * widths.key)
    copied = widths.key * (config.kv_k == "f32") + widths.value * (config.kv_v == "f32")
    row = widths.embedding + 3 * widths.query + 2 * widths.key
    return 4 * tokens * row + 2 * copied * held.per_stream * held.streams


def _forward(shape: Shape) -> int:
    """Give the values per token in a dense feed-forward layer: gate, up, product; Q mostly stays reserved."""
    widths = shape.widths
    doubled = widths.embedding if shape.architecture in PARALLEL and shape.has_window_cache else 0
    query = 0 if shape.architecture in QUERY_IS_FREED else widths.query
    return 3 * (widths.feed_forward + widths.embedding) + query + doubled


def _expert(shape: Shape) -> int:
    """Give the values per token in a layer with experts: the same for each routed one, or their results."""
    widths = shape.widths
    used, width = widths.experts_used, widths.embedding
    if not widths.experts:
        return 0
    inside = 3 * used * widths.expert_forward + widths.query
    return max(inside, 2 * used * width + used * widths.expert_forward) + 3 * width


def _state(shape: Shape) -> int:
    """Give the values per token in a recurrent layer: twice the projection, the convolution, residuals."""
    widths = shape.widths
    if not (shape.recurrent_layers and widths.inner):
        return 0
    mixed = widths.inner + 2 * widths.groups * widths.state
    projected = mixed + widths.inner + widths.ssm_heads
    return 2 * projected + mixed + 3 * widths.embedding


def _rwkv(shape: Shape) -> int:
    """Give the values per token in an RWKV layer: mixes with the token before, decay, key, value, gate."""
    return int(19.5 * shape.widths.embedding) if shape.architecture.startswith(("rwkv", "arwkv")) else 0


def _inputs_per_layer(shape: Shape) -> int:
    """Give the values per token that Gemma 3n and 4 keep for all layers, and 3n's four streams."""
    streams = 3 * shape.widths.embedding if shape.architecture == "gemma3n" else 0
    return 3 * shape.widths.per_layer_input * shape.layers // 2 + streams


def _states_in_flight(shape: Shape, config: LoadConfig) -> int:
    """Give the bytes of one layer's states of all slots, which a step copies."""
    if not shape.recurrent_layers:
        return 0
    return 4 * max(config.slots, 1) * (shape.conv_state + shape.ssm_state)
