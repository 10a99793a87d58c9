"""The shape of a model in another quant, computed from the header of one quant and the size of the other.

All that memory depends on is the model's, not the quant's, but for the bytes of its tensors. Those are scaled
alike: the sum is exact then, and how it is shared out between tables, experts and the rest is off by a few
per cent of the tables, since llama-quantize gives those a type of their own.
"""

from dataclasses import replace

from octavo.core.gguf import TENSOR_TYPES
from octavo.core.hub.headers import RemoteHeader
from octavo.core.hub.types import Choice
from octavo.core.memory.shape import Shape
from octavo.core.memory.weights import REPACKED_ON_AVX2, Weights

LEAST, MOST = 0.6, 3.0
"""How far a quant's bits per weight may be from its type's: small models keep much in larger types."""

_BITS = {kind.name: kind.bits_per_weight for kind in TENSOR_TYPES.values()}


def derived(header: RemoteHeader, source: Choice, choice: Choice) -> Shape:
    """Give the shape of ``choice``; ``header`` is that of ``source``, the same model in another quant."""
    shape = header.shape
    if choice.name == source.name:
        return shape
    before = max(source.size_bytes - header.header_bytes, 1)
    share = max(choice.size_bytes - header.header_bytes, 0) / before
    reason = f"the sizes of its tensors are scaled from those of {source.name}"
    return replace(
        shape,
        weights=_scaled(shape.weights, share, choice.quant),
        confidence="close" if shape.confidence == "exact" else shape.confidence,
        reasons=(*shape.reasons, reason),
    )


def is_plausible(header: RemoteHeader, choice: Choice) -> bool:
    """Tell whether ``choice`` has a size that the header's model may have in this quant."""
    weights, usual = header.description.parameters, bits_of(choice.quant)
    if not weights or usual is None:
        return bool(weights)
    bits = (choice.size_bytes - header.header_bytes) * 8 / weights
    return LEAST * usual <= bits <= MOST * usual


def bits_of(quant: str | None) -> float | None:
    """Give the bits per weight of a quant's main type; None for an unknown one."""
    kind = main_type(quant)
    return _BITS[kind] if kind else None


def main_type(quant: str | None) -> str | None:
    """Give the type of most of a quant's tensors: ``Q4_K`` for ``UD-Q4_K_XL``; None for an unknown one."""
    name = (quant or "").removeprefix("UD-")
    while name and name not in _BITS:
        name = name.rpartition("_")[0]
    return name or _LOOSE.get((quant or "").removeprefix("UD-"))


def _scaled(weights: Weights, share: float, quant: str | None) -> Weights:
    total = round(weights.total * share)
    tables, experts = round(weights.tables * share), round(weights.experts * share)
    is_repacked = main_type(quant) in REPACKED_ON_AVX2
    return replace(
        weights,
        total=total,
        tables=tables,
        tied_output=round(weights.tied_output * share),
        tied_is_repackable=is_repacked and weights.tied_is_repackable,
        experts=experts,
        repackable=total - tables if is_repacked else 0,
        repackable_experts=experts if is_repacked else 0,
    )


# mixes that are named after no type of their own (LLAMA_FTYPE_MOSTLY_… in llama.h)
_LOOSE = {"IQ2_M": "IQ2_S", "IQ3_XS": "IQ3_S", "IQ3_M": "IQ3_S", "Q4": "Q4_0", "Q5": "Q5_0", "Q8": "Q8_0"}
