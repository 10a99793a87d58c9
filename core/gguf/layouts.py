"""How each ggml type packs its weights, field by field, and how large a model would be in it.

A super-block of a K-quant (256 weights) is cut into sub-blocks with scales of their own, which are themselves
whole numbers times the super-block's ``d``. Sources, all as vendored by llama-cpp-python 0.3.36: the structs
and their comments in ``ggml/src/ggml-common.h``; ``dequantize_row_*`` in ``ggml/src/ggml-quants.c`` for the
formulas; ``tensor_allows_quantization`` and ``tensor_type_fallback`` in ``src/llama-quant.cpp`` for the rule.
"""

from dataclasses import dataclass

from octavo.core.gguf.header import Header
from octavo.core.gguf.quants import TENSOR_TYPES, TensorType
from octavo.core.gguf.tensors import Tensor

RULE = (
    "Every matrix (2 or more dimensions) whose name ends in .weight takes the type; embedding tables, norms, "
    "expert routers and small special tensors stay as they are in the file. A matrix whose rows are no whole "
    "number of blocks takes the type that llama-quantize falls back to, else F16; where it refuses, there is "
    "no size. Header and padding count as they are. A mixed quant such as Q4_K_M gives some matrices another "
    "type: its files differ a little."
)

NOT_FOR_WEIGHTS = frozenset({"Q8_1", "Q8_K", "I8", "I16", "I32", "I64", "F64"})
"""Types that hold activations while computing, or indices: no model is quantised to them."""


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a block: its bytes and what they hold."""

    name: str
    nbytes: int
    meaning: str


@dataclass(frozen=True, slots=True)
class Layout:
    """A type's block: its fields in file order, and ``sub_blocks`` that have a scale of their own."""

    type: TensorType
    sub_blocks: int
    formula: str
    fields: tuple[Field, ...]

    @property
    def is_for_weights(self) -> bool:
        """Whether a model can be quantised to it."""
        return self.type.name not in NOT_FOR_WEIGHTS


def size_in(header: Header, kind: TensorType) -> int | None:
    """Give the bytes of a model's files were it quantised to ``kind`` by ``RULE``; None where it can't be."""
    size = header.complete_size
    for tensor in header.tensors:
        if is_quantised(tensor):
            taken = type_for(tensor, kind)
            if taken is None:
                return None
            size += tensor.elements // taken.block_size * taken.block_bytes - tensor.nbytes
    return size


def is_quantised(tensor: Tensor) -> bool:
    """Tell whether the rule gives this tensor the new type."""
    name = tensor.name
    if sum(size > 1 for size in tensor.shape[1:]) == 0 or not name.endswith("weight"):
        return False
    return not any(part in name for part in _KEPT)


def type_for(tensor: Tensor, kind: TensorType) -> TensorType | None:
    """Give ``kind``, or for rows that are no whole blocks llama-quantize's fallback; None: it refuses."""
    columns = tensor.shape[0]
    if columns % kind.block_size == 0:
        return kind
    if kind.block_size > _SMALL_BLOCK and kind.name not in _FALLBACKS:
        return None
    fallback = _BY_NAME[_FALLBACKS.get(kind.name, kind.name)]
    return _BY_NAME["F16"] if columns % fallback.block_size else fallback


_SMALL_BLOCK = 32
_BY_NAME = {kind.name: kind for kind in TENSOR_TYPES.values()}

_KEPT = (
    "token_embd.weight",
    "per_layer_token_embd",
    "position_embd",
    "token_types",
    "_norm.weight",
    "ffn_gate_inp.weight",
    "ffn_gate_tid2eid",
    "altup",
    "laurel",
    "per_layer_model_proj",
    "ssm_conv1d",
    "shortconv.conv",
    "indexer.k_proj",
    "indexer.q_proj",
    "time_mix_first",
    *(f"time_mix_{letter}{number}.weight" for letter in "wvag" for number in range(3)),
    "time_mix_decay_w",
    "time_mix_lerp_fused",
    "attn_rel_b",
)

_FALLBACKS = {
    **dict.fromkeys(("IQ1_S", "IQ1_M", "IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ3_XXS", "IQ3_S", "IQ4_XS"), "IQ4_NL"),
    **dict.fromkeys(("Q2_0", "Q2_K", "Q3_K", "TQ1_0", "TQ2_0"), "Q4_0"),
    "Q4_K": "Q5_0",
    "Q5_K": "Q5_1",
    "Q6_K": "Q8_0",
}

_D = "d 2 scale (f16)"
_M = "m 2 minimum (f16)"
_SUPER = "d 2 scale of the scales (f16)"
_SUPER_M = "dmin 2 scale of the minima (f16)"
_IQ2 = "w = d · (scale + 1/2) / 4 · ± grid[q]"
# type: sub-blocks with a scale of their own; how a weight is got back; the fields in file order
_STRUCTS: dict[str, tuple[int, str, tuple[str, ...]]] = {
    "F32": (0, "w", ("w 4 IEEE single",)),
    "F16": (0, "w", ("w 2 IEEE half",)),
    "BF16": (0, "w", ("w 2 upper half of a single",)),
    "F64": (0, "w", ("w 8 IEEE double",)),
    "I8": (0, "w", ("w 1 whole number",)),
    "I16": (0, "w", ("w 2 whole number",)),
    "I32": (0, "w", ("w 4 whole number",)),
    "I64": (0, "w", ("w 8 whole number",)),
    "Q1_0": (1, "w = d · (2q - 1)", (_D, "qs 16 1 bit each")),
    "Q2_0": (1, "w = d · (q - 1)", (_D, "qs 16 2 bits each")),
    "Q4_0": (1, "w = d · (q - 8)", (_D, "qs 16 4 bits each")),
    "Q4_1": (1, "w = d · q + m", (_D, _M, "qs 16 4 bits each")),
    "Q5_0": (1, "w = d · (q - 16)", (_D, "qh 4 5th bits", "qs 16 low 4 bits")),
    "Q5_1": (1, "w = d · q + m", (_D, _M, "qh 4 5th bits", "qs 16 low 4 bits")),
    "Q8_0": (1, "w = d · q", (_D, "qs 32 8 bits each")),
    "Q8_1": (1, "w = d · q", (_D, "s 2 d · sum of q (f16)", "qs 32 8 bits each")),
    "Q2_K": (
        16,
        "w = d · scale · q - dmin · min",
        ("scales 16 4-bit scale and 4-bit minimum of each sub-block", "qs 64 2 bits each", _SUPER, _SUPER_M),
    ),
    "Q3_K": (
        16,
        "w = d · (scale - 32) · (q - 4)",
        ("hmask 32 3rd bits", "qs 64 low 2 bits", "scales 12 6-bit scales", "d 2 scale of the scales (f16)"),
    ),
    "Q4_K": (
        8,
        "w = d · scale · q - dmin · min",
        (_SUPER, _SUPER_M, "scales 12 6-bit scale and 6-bit minimum of each sub-block", "qs 128 4 bits each"),
    ),
    "Q5_K": (
        8,
        "w = d · scale · q - dmin · min",
        (
            _SUPER,
            _SUPER_M,
            "scales 12 6-bit scale and 6-bit minimum of each sub-block",
            "qh 32 5th bits",
            "qs 128 low 4 bits",
        ),
    ),
    "Q6_K": (
        16,
        "w = d · scale · (q - 32)",
        ("ql 128 low 4 bits", "qh 64 upper 2 bits", "scales 16 8-bit scales", _SUPER),
    ),
    "Q8_K": (1, "w = d · q", ("d 4 scale (f32)", "qs 256 8 bits each", "bsums 32 sums of 16 q (i16)")),
    "IQ1_S": (
        8,
        "w = d · (2 scale + 1) · (grid[q] ± 1/8)",
        (_SUPER, "qs 32 grid index, low 8 bits", "qh 16 high index bits, 3-bit scales, shift"),
    ),
    "IQ1_M": (
        16,
        "w = d · (2 scale + 1) · (grid[q] ± 1/8)",
        (
            "qs 32 grid index, low 8 bits",
            "qh 16 high index bits and shifts",
            "scales 8 3-bit scales and the f16 d",
        ),
    ),
    "IQ2_XXS": (8, _IQ2, (_SUPER, "qs 64 grid indices, signs, 4-bit scales")),
    "IQ2_XS": (16, _IQ2, (_SUPER, "qs 64 grid index (9 bits) and signs (7)", "scales 8 4-bit scales")),
    "IQ2_S": (
        16,
        _IQ2,
        (_SUPER, "qs 64 grid index, low 8 bits; signs", "qh 8 high index bits", "scales 8 4-bit scales"),
    ),
    "IQ3_XXS": (
        8,
        "w = d · (scale + 1/2) / 2 · ± grid[q]",
        (_SUPER, "qs 96 grid indices; signs and 4-bit scales"),
    ),
    "IQ3_S": (
        8,
        "w = d · (2 scale + 1) · ± grid[q]",
        (
            _SUPER,
            "qs 64 grid index, low 8 bits",
            "qh 8 9th index bits",
            "signs 32 1 bit each",
            "scales 4 4-bit scales",
        ),
    ),
    "IQ4_NL": (1, "w = d · table[q]", (_D, "qs 16 4 bits each, an index into 16 values")),
    "IQ4_XS": (
        8,
        "w = d · (scale - 32) · table[q]",
        (_SUPER, "scales_h 2 upper 2 bits of the scales", "scales_l 4 low 4 bits", "qs 128 4 bits each"),
    ),
    "TQ1_0": (1, "w = d · (q - 1)", ("qs 48 5 weights (0, 1, 2) a byte", "qh 4 4 weights a byte", _D)),
    "TQ2_0": (1, "w = d · (q - 1)", ("qs 64 2 bits each", _D)),
    "MXFP4": (1, "w = 2^(e - 127) · e2m1[q]", ("e 1 exponent (E8M0)", "qs 16 4-bit floats (E2M1)")),
    "NVFP4": (4, "w = d · e2m1[q]", ("d 4 8-bit float scales (UE4M3)", "qs 32 4-bit floats (E2M1)")),
}


def _layout(kind: TensorType) -> Layout:
    sub_blocks, formula, fields = _STRUCTS[kind.name]
    split = (text.split(" ", 2) for text in fields)
    return Layout(
        kind, sub_blocks, formula, tuple(Field(name, int(size), what) for name, size, what in split)
    )


LAYOUTS: dict[str, Layout] = {kind.name: _layout(kind) for kind in TENSOR_TYPES.values()}
"""The layout of every type that the engine can load, by its name."""
