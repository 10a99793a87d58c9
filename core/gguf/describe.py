"""The facts of a model that a person wants, as far as its header tells them."""

import re
from collections import Counter
from dataclasses import dataclass, field

from octavo.core.gguf.capabilities import Capabilities, Projector, capabilities, projector
from octavo.core.gguf.header import Header
from octavo.core.gguf.metadata import ArraySkipped
from octavo.core.gguf.quants import FILE_TYPES

_ENCODERS = {
    "bert",
    "modern-bert",
    "nomic-bert",
    "nomic-bert-moe",
    "neo-bert",
    "jina-bert-v2",
    "jina-bert-v3",
    "eurobert",
    "gemma-embedding",
    "t5encoder",
}
_UNPOOLED = (None, -1, 0)
# LLAMA_FTYPE_GUESSED of llama.h: a bit that says the quantiser was not sure
_GUESSED = 1024
_TEMPLATE_KEY = "tokenizer.chat_template"
# stacked (blk.0.ffn_up_exps.weight) or, in old files, one tensor for each expert (blk.0.ffn_up.3.weight)
_EXPERT_TENSOR = re.compile(r"\.ffn_(gate|up|down|gate_up)(_(ch)?exps|\.\d+)\.")


@dataclass(frozen=True, slots=True)
class PerLayer:
    """Figures that differ from layer to layer, one for each; empty where all layers are alike."""

    head_count: tuple[int, ...] = ()
    head_count_kv: tuple[int, ...] = ()
    feed_forward_length: tuple[int, ...] = ()
    sliding_window_pattern: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Description:
    """One GGUF file in figures; a figure that the header doesn't tell is None.

    ``kind`` is ``model``, ``embedding``, ``vocabulary``, ``shard``, ``projector``, ``adapter``, ``imatrix``.
    ``context_length`` is the trained one. Where layers differ, the head counts are the largest and
    ``per_layer`` has them all. ``active_parameters`` are those that one token passes through: of the routed
    experts only ``expert_used_count`` of ``expert_count``; without experts it is ``parameters``.
    ``chat_templates`` are the named ones beside ``chat_template``; an empty template counts as none.
    """

    kind: str
    architecture: str | None
    name: str | None
    quant: str | None
    parameters: int
    active_parameters: int
    bits_per_weight: float
    tensor_bytes: int
    context_length: int | None = None
    layers: int | None = None
    embedding_length: int | None = None
    feed_forward_length: int | None = None
    head_count: int | None = None
    head_count_kv: int | None = None
    key_length: int | None = None
    value_length: int | None = None
    sliding_window: int | None = None
    vocab_size: int | None = None
    tokenizer: str | None = None
    expert_count: int | None = None
    expert_used_count: int | None = None
    expert_shared_count: int | None = None
    expert_feed_forward_length: int | None = None
    per_layer: PerLayer = field(default_factory=PerLayer)
    capabilities: Capabilities = field(default_factory=Capabilities)
    projector: Projector | None = None
    size_label: str | None = None
    organization: str | None = None
    author: str | None = None
    basename: str | None = None
    base_model: str | None = None
    finetune: str | None = None
    quantized_by: str | None = None
    license: str | None = None
    shard_number: int | None = None
    shard_count: int | None = None
    chat_template: str | None = field(default=None, repr=False)
    chat_templates: dict[str, str] = field(default_factory=dict, repr=False)

    @property
    def has_chat_template(self) -> bool:
        """Whether the file brings a template of its own."""
        return self.chat_template is not None

    @property
    def is_embedding(self) -> bool:
        """Whether the model makes vectors, not text."""
        return self.kind == "embedding"

    @property
    def is_projector(self) -> bool:
        """Whether the file is the image or audio part of another model."""
        return self.kind == "projector"


def describe(header: Header) -> Description:
    """Tell what ``header`` says; nothing is guessed from file names."""
    parameters = sum(tensor.elements for tensor in header.tensors)
    templates = _named_templates(header)
    template = _filled(header, _TEMPLATE_KEY)
    shard = header.shard
    return Description(
        kind=_kind(header),
        architecture=header.architecture,
        name=_filled(header, "general.name"),
        quant=_quant(header),
        parameters=parameters,
        active_parameters=_active(header, parameters),
        bits_per_weight=header.tensor_bytes * 8 / parameters if parameters else 0.0,
        tensor_bytes=header.tensor_bytes,
        context_length=_own(header, "context_length"),
        layers=_own(header, "block_count"),
        embedding_length=_own(header, "embedding_length"),
        feed_forward_length=_own(header, "feed_forward_length"),
        head_count=_own(header, "attention.head_count"),
        head_count_kv=_own(header, "attention.head_count_kv"),
        key_length=_own(header, "attention.key_length"),
        value_length=_own(header, "attention.value_length"),
        sliding_window=_own(header, "attention.sliding_window"),
        vocab_size=_vocab_size(header),
        tokenizer=_filled(header, "tokenizer.ggml.model"),
        expert_count=_own(header, "expert_count"),
        expert_used_count=_own(header, "expert_used_count"),
        expert_shared_count=_own(header, "expert_shared_count"),
        expert_feed_forward_length=_own(header, "expert_feed_forward_length"),
        per_layer=_per_layer(header),
        capabilities=capabilities(header, [*filter(None, [template]), *templates.values()]),
        projector=projector(header),
        size_label=_filled(header, "general.size_label"),
        organization=_filled(header, "general.organization"),
        author=_filled(header, "general.author"),
        basename=_filled(header, "general.basename"),
        base_model=_filled(header, "general.base_model.0.name"),
        finetune=_filled(header, "general.finetune"),
        quantized_by=_filled(header, "general.quantized_by"),
        license=_filled(header, "general.license"),
        shard_number=shard[0] if shard else None,
        shard_count=shard[1] if shard else None,
        chat_template=template,
        chat_templates=templates,
    )


def _active(header: Header, parameters: int) -> int:
    """Count the weights that a token passes through: all, less the routed experts that it is not sent to."""
    count, used = _own(header, "expert_count"), _own(header, "expert_used_count")
    if not count or used is None or not 0 <= used <= count:
        return parameters
    routed = sum(tensor.elements for tensor in header.tensors if _EXPERT_TENSOR.search(tensor.name))
    return parameters - routed * (count - used) // count


def _per_layer(header: Header) -> PerLayer:
    return PerLayer(
        head_count=_array(header, "attention.head_count"),
        head_count_kv=_array(header, "attention.head_count_kv"),
        feed_forward_length=_array(header, "feed_forward_length"),
        sliding_window_pattern=_array(header, "attention.sliding_window_pattern"),
    )


def _array(header: Header, key: str) -> tuple[int, ...]:
    value = header.metadata.get(f"{header.architecture}.{key}")
    return tuple(int(item) for item in value if isinstance(item, int)) if isinstance(value, tuple) else ()


def _filled(header: Header, key: str) -> str | None:
    text = header.text(key)
    return text if text and text.strip() else None


def _own(header: Header, key: str) -> int | None:
    """Read one of the architecture's own numbers; of a per-layer array, the largest."""
    value = header.metadata.get(f"{header.architecture}.{key}")
    if isinstance(value, tuple):
        value = max((item for item in value if isinstance(item, int)), default=None)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _kind(header: Header) -> str:
    if header.kind != "model":
        return header.kind
    pooled = header.integer(f"{header.architecture}.pooling_type") not in _UNPOOLED
    return "embedding" if pooled or header.architecture in _ENCODERS else "model"


def _quant(header: Header) -> str | None:
    stated = header.integer("general.file_type")
    if stated is not None and (name := FILE_TYPES.get(stated & ~_GUESSED)):
        return name
    sizes: Counter[str] = Counter()
    for tensor in header.tensors:
        if len(tensor.shape) > 1:
            sizes[tensor.type.name] += tensor.nbytes
    return sizes.most_common(1)[0][0] if sizes else None


def _vocab_size(header: Header) -> int | None:
    match header.metadata.get("tokenizer.ggml.tokens"):
        case ArraySkipped(count=count):
            return count
        case tuple(tokens):
            return len(tokens)
    return _own(header, "vocab_size")


def _named_templates(header: Header) -> dict[str, str]:
    prefix = _TEMPLATE_KEY + "."
    names = (key.removeprefix(prefix) for key in header.metadata if key.startswith(prefix))
    return {name: text for name in names if (text := _filled(header, prefix + name))}
