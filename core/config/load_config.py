"""How to load a model: the one description that sliders, flags, bodies and defaults all become.

Values are resolved by one rule: ``built-in < global settings < per-model defaults < this request``; each
effective value remembers which of them gave it (``Resolved.reasons``).
"""

import math
from collections.abc import Mapping
from enum import StrEnum
from typing import Literal, get_args

import msgspec

from octavo.core.errors import InvalidConfig

# the types that llama.cpp allows for the KV cache (common/arg.cpp)
KvType = Literal["f32", "f16", "bf16", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0", "iq4_nl"]
PLAIN_KV_TYPES = frozenset({"f32", "f16", "bf16"})

# tokens of context when nobody said a number: most conversations fit, and a model trained on less gets less
DEFAULT_CONTEXT = 8192

# llama.cpp's compile-time ceiling, llama_max_parallel_sequences()
SLOT_LIMIT = 256


class LoadMode(StrEnum):
    """How the weights come into memory."""

    MMAP = "mmap"
    MLOCK = "mlock"
    MMAP_MLOCK = "mmap_mlock"
    NONE = "none"
    DIRECT_IO = "direct_io"


class FlashAttention(StrEnum):
    """Whether attention runs fused, which a quantised V cache needs."""

    AUTO = "auto"
    ON = "on"
    OFF = "off"


class Overflow(StrEnum):
    """What happens to a conversation that outgrows the context."""

    TRUNCATE_MIDDLE = "truncate_middle"
    STOP = "stop"


class LoadConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How to load a model. ``None`` means: take the value that fits (the model's own, or the machine's).

    ``context`` tokens shared by all slots; ``batch`` and ``micro_batch`` tokens; ``threads`` cores used by
    one decode; ``mixed_step`` the most tokens in a batch that also carries
    running streams (fewer on slow machines); ``ttl_s`` idle
    seconds until the model is unloaded, ``None`` for never; ``elastic`` gives memory that is not needed now
    back to the system, such as unused KV cells.
    """

    context: int | None = None
    slots: int = 4
    kv_unified: bool = True
    batch: int = 512
    micro_batch: int = 512
    mixed_step: int = 128
    threads: int | None = None
    kv_k: KvType = "f16"
    kv_v: KvType = "f16"
    flash_attention: FlashAttention = FlashAttention.ON
    swa_full: bool = False
    load_mode: LoadMode = LoadMode.MMAP
    repack: bool = False
    gpu_layers: int = 0
    cpu_moe_layers: int = 0
    tensor_split: tuple[float, ...] = ()
    rope_base: float | None = None
    rope_scale: float | None = None
    ttl_s: float | None = None
    overflow: Overflow = Overflow.TRUNCATE_MIDDLE
    elastic: bool = True


# inclusive bounds of every whole-number field
BOUNDS: dict[str, tuple[int, int]] = {
    "context": (256, 16_777_216),
    "slots": (1, SLOT_LIMIT),
    "batch": (32, 65_536),
    "micro_batch": (32, 65_536),
    "mixed_step": (8, 65_536),
    "threads": (1, 1024),
    "gpu_layers": (-1, 100_000),
    "cpu_moe_layers": (0, 4095),
}


# the words that a field takes, where it takes only some
CHOICES: dict[str, tuple[str, ...]] = {
    "kv_k": get_args(KvType),
    "kv_v": get_args(KvType),
    "flash_attention": tuple(FlashAttention),
    "load_mode": tuple(LoadMode),
    "overflow": tuple(Overflow),
}


class Resolved(msgspec.Struct, frozen=True):
    """An effective configuration and, per field, where its value came from."""

    config: LoadConfig
    reasons: dict[str, str]
    notes: list[str] = []


Layer = tuple[str, Mapping[str, object]]


def resolve(*layers: Layer) -> Resolved:
    """Merge ``(reason, fields)`` layers, the last one winning; a ``None`` value means "not said".

    Raises ``InvalidConfig`` for unknown fields, wrong types, and values out of bounds.
    """
    fields: dict[str, object] = {}
    reasons = dict.fromkeys(LoadConfig.__struct_fields__, "built-in default")
    for reason, said in layers:
        for name, value in said.items():
            if value is not None:
                fields[name] = value
                reasons[name] = reason
    wished = _convert(fields)
    check(wished)  # before the repair, so that what is refused is what was said
    config, notes = repaired(wished)
    check(config)
    return Resolved(config, reasons, notes)


def repaired(config: LoadConfig) -> tuple[LoadConfig, list[str]]:
    """Turn settings that llama.cpp would refuse as a pair into ones that work, and say what changed.

    Sources: src/llama-context.cpp refuses a quantised V cache without flash attention, aborts when a batch is
    smaller than the number of sequences or the micro-batch larger than the batch.
    """
    notes: list[str] = []
    if config.kv_v not in PLAIN_KV_TYPES and config.flash_attention is not FlashAttention.ON:
        notes.append(
            f"flash_attention was turned on: kv_v={config.kv_v} works only with it "
            f"(it was {config.flash_attention.value})."
        )
        config = msgspec.structs.replace(config, flash_attention=FlashAttention.ON)
    if config.micro_batch > config.batch:
        notes.append(f"micro_batch was lowered from {config.micro_batch} to the batch of {config.batch}.")
        config = msgspec.structs.replace(config, micro_batch=config.batch)
    if config.slots > config.batch:
        notes.append(f"slots were lowered from {config.slots} to the batch of {config.batch}.")
        config = msgspec.structs.replace(config, slots=config.batch)
    return config, notes


def check(config: LoadConfig) -> None:
    """Raise ``InvalidConfig`` naming the first field that is out of bounds."""
    for name, (low, high) in BOUNDS.items():
        value = getattr(config, name)
        if value is not None and not low <= value <= high:
            raise InvalidConfig(
                f"{name} is {value}; it must be from {low} to {high}.",
                hint=f"Choose another {name}.",
                field=name,
            )
    if config.context is not None and config.context < config.slots and not config.kv_unified:
        raise InvalidConfig("The context is smaller than the number of slots.", field="context")
    _check_fractions(config)


def _check_fractions(config: LoadConfig) -> None:
    positive = {"rope_base": config.rope_base, "rope_scale": config.rope_scale, "ttl_s": config.ttl_s}
    for name, value in positive.items():
        if value is not None and not (math.isfinite(value) and value > 0):
            raise InvalidConfig(f"{name} is {value}; it must be a positive number.", field=name)
    shares = config.tensor_split
    if any(not math.isfinite(share) or share < 0 for share in shares) or (shares and sum(shares) <= 0):
        raise InvalidConfig(
            "tensor_split must hold shares that are not negative and not all 0.", field="tensor_split"
        )


def _check_choices(fields: Mapping[str, object]) -> None:
    for name, choices in CHOICES.items():
        if name in fields and fields[name] not in choices:
            raise InvalidConfig(
                f"{name} can't be {str(fields[name])[:40]!r}.",
                hint=f"It is one of {', '.join(choices)}.",
                field=name,
            )


def _convert(fields: Mapping[str, object]) -> LoadConfig:
    _check_choices(fields)
    try:
        return msgspec.convert(fields, LoadConfig, strict=False)
    except msgspec.ValidationError as fault:
        raise InvalidConfig(
            f"The load settings can't be used: {fault}.", hint="See octavo load --help."
        ) from fault
