"""What a model needs with one configuration: one code path for every place that asks."""

from octavo.core.config.load_config import LoadConfig
from octavo.core.gguf import Header
from octavo.core.memory.compute import compute_bytes, output_bytes
from octavo.core.memory.kv import cells, kv_bytes, micro_batch, recurrent_bytes
from octavo.core.memory.shape import Shape, read_shape
from octavo.core.memory.types import Components, Confidence, Estimate
from octavo.core.memory.weights import Placed, place

RUNTIME_BYTES = 28 << 20
"""Private bytes of an idle worker: Python, bindings and llama.cpp. Measured with both test models."""

VOCABULARY_BYTES_PER_TOKEN = 138
"""Private bytes of the tokeniser's tables per token; from vocabularies of 49,152 and 262,144."""

WORK_BYTES_PER_VALUE = 1.14
"""ggml's work buffer holds a step's inputs as q8_K: 292 bytes for 256 values (ggml/src/ggml-common.h)."""


def estimate(
    model: Header | Shape, config: LoadConfig, *, file_bytes: int | None = None, mmproj_bytes: int = 0
) -> Estimate:
    """Give what ``model`` needs with ``config``; under 1 ms for a ``Shape``, which the caller keeps.

    ``file_bytes`` is the size of all parts together, for a split model of which not all headers are known;
    ``mmproj_bytes`` the size of the projector that will be loaded with it. It never refuses: what is not
    understood is counted like an ordinary model and called approximate.
    """
    shape = model if isinstance(model, Shape) else read_shape(model)
    placed = place(shape.weights, config, file_bytes)
    components = _components(shape, config, placed, mmproj_bytes)
    confidence, reasons = _confidence(shape, config)
    return Estimate(
        model=shape.name,
        n_ctx=cells(shape, config).total,
        config=config,
        components=components,
        private_bytes=components.private_bytes,
        mapped_bytes=placed.mapped,
        hot_mapped_bytes=placed.hot_mapped,
        expert_bytes=placed.experts,
        expert_share=shape.weights.expert_share,
        confidence=confidence,
        reasons=reasons,
    )


def _components(shape: Shape, config: LoadConfig, placed: Placed, mmproj_bytes: int) -> Components:
    return Components(
        weights_mapped=placed.mapped,
        weights_private=placed.private,
        kv=kv_bytes(shape, config),
        recurrent=recurrent_bytes(shape, config),
        compute=compute_bytes(shape, config),
        output=output_bytes(shape, config),
        mmproj=max(mmproj_bytes, 0),
        runtime=runtime_bytes(shape, config),
    )


def runtime_bytes(shape: Shape, config: LoadConfig) -> int:
    """Give what a worker takes besides llama.cpp's buffers: itself, vocabulary, ggml's work buffer."""
    widths = shape.widths
    routed = widths.experts_used * widths.expert_forward
    widest = max(widths.feed_forward, widths.embedding, widths.query, widths.inner, routed)
    tokens = micro_batch(config, cells(shape, config).wish)
    work = int(WORK_BYTES_PER_VALUE * tokens * widest)
    return RUNTIME_BYTES + VOCABULARY_BYTES_PER_TOKEN * shape.vocabulary + work


def _confidence(shape: Shape, config: LoadConfig) -> tuple[Confidence, list[str]]:
    """Give how far the figures can be trusted, and what about the wish should be said."""
    confidence, reasons = shape.confidence, [*shape.reasons]
    if config.gpu_layers:
        confidence = "close" if confidence == "exact" else confidence
        reasons.append("layers on a GPU are counted as if they were in main memory")
    return confidence, reasons + _context_notes(shape, config)


def _context_notes(shape: Shape, config: LoadConfig) -> list[str]:
    held, notes = cells(shape, config), []
    if held.total != held.wish:
        notes.append(f"a context of {held.wish:,} becomes {held.total:,}, whole multiples of 256 cells")
    if 0 < shape.trained_context < held.wish:
        notes.append(f"the model was trained on {shape.trained_context:,} tokens, fewer than {held.wish:,}")
    return notes
