"""The table of block layouts against the sizes of the types, and a model's size in each."""

from pathlib import Path

import pytest

from octavo.core.gguf import TENSOR_TYPES, Tensor, read_header
from octavo.core.gguf.layouts import LAYOUTS, is_quantised, size_in, type_for

BY_NAME = {kind.name: kind for kind in TENSOR_TYPES.values()}


@pytest.mark.parametrize("name", LAYOUTS)
def test_the_fields_make_up_the_block(name: str):
    layout = LAYOUTS[name]
    assert sum(field.nbytes for field in layout.fields) == layout.type.block_bytes
    assert layout.sub_blocks == 0 or layout.type.block_size % layout.sub_blocks == 0


def test_every_type_has_a_layout():
    assert set(LAYOUTS) == set(BY_NAME)


def test_super_blocks_are_not_all_eight_of_32():
    blocks = {
        name: (LAYOUTS[name].sub_blocks, 256 // LAYOUTS[name].sub_blocks) for name in LAYOUTS if "_K" in name
    }
    assert blocks["Q4_K"] == blocks["Q5_K"] == (8, 32)
    assert blocks["Q2_K"] == blocks["Q3_K"] == blocks["Q6_K"] == (16, 16)
    bits = {name: BY_NAME[name].bits_per_weight for name in ("Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K")}
    assert list(bits.values()) == [2.625, 3.4375, 4.5, 5.5, 6.5625]


@pytest.mark.parametrize(
    ("name", "shape", "taken"),
    [
        ("blk.0.ffn_up.weight", (256, 64), True),
        ("blk.0.ffn_up_exps.weight", (256, 64, 8), True),
        ("output.weight", (256, 64), True),
        ("token_embd.weight", (256, 64), False),
        ("blk.0.attn_norm.weight", (256,), False),
        ("blk.0.attn_q.bias", (256,), False),
        ("blk.0.ffn_gate_inp.weight", (256, 8), False),
        ("blk.0.ssm_conv1d.weight", (4, 256), False),
        ("blk.0.x.weight", (256, 1), False),
    ],
)
def test_which_tensors_are_quantised(name: str, shape: tuple[int, ...], taken: bool):
    assert is_quantised(Tensor(name, shape, BY_NAME["F32"], 0, 0)) is taken


@pytest.mark.parametrize(
    ("kind", "columns", "taken"),
    [
        ("Q4_K", 256, "Q4_K"),
        ("Q4_K", 576, "Q5_0"),
        ("Q6_K", 576, "Q8_0"),
        ("Q4_0", 33, "F16"),
        ("IQ2_S", 64, "IQ4_NL"),
        ("Q1_0", 576, None),
    ],
)
def test_rows_of_odd_length_fall_back(kind: str, columns: int, taken: str | None):
    tensor = Tensor("blk.0.x.weight", (columns, 64), BY_NAME["F32"], 0, 0)
    found = type_for(tensor, BY_NAME[kind])
    assert (found and found.name) == taken


def test_a_model_in_its_own_type_is_as_large_as_it_is(smollm2: Path):
    # its matrices are Q4_1 throughout, beside a Q8_0 embedding table that is kept
    header = read_header(smollm2)
    assert size_in(header, BY_NAME["Q4_1"]) == header.file_size
    matrices = sum(tensor.elements for tensor in header.tensors if is_quantised(tensor))
    sizes = {name: size_in(header, kind) or 0 for name, kind in BY_NAME.items()}
    assert sizes["Q8_0"] - header.file_size == matrices * (34 - 20) // 32
    assert sizes["F16"] - sizes["Q8_0"] == matrices * 2 - matrices * 34 // 32


def test_what_llama_quantize_refuses_has_no_size(smollm2: Path):
    assert size_in(read_header(smollm2), BY_NAME["Q1_0"]) is None
