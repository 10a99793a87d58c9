"""What a header tells a person, of the two real models and of odd ones."""

from pathlib import Path

import msgspec
import pytest

from octavo.core.gguf import Description, ValueType, describe, read_header
from tests.fixtures.gguf_builder import F16, Q4_K, GgufFile, TensorEntry, array, pair, strings, tiny


def described(model: GgufFile) -> Description:
    return describe(read_header(model.build()))


def test_smollm2_is_described(smollm2: Path):
    facts = describe(read_header(smollm2))
    assert (facts.kind, facts.architecture, facts.quant) == ("model", "llama", "Q4_1")
    assert (facts.layers, facts.embedding_length, facts.context_length) == (30, 576, 8192)
    assert (facts.head_count, facts.head_count_kv, facts.vocab_size) == (9, 3, 49_152)
    assert facts.parameters == 134_515_008
    assert facts.bits_per_weight == pytest.approx(5.744, abs=0.001)
    assert (facts.organization, facts.size_label, facts.license) == ("HuggingFaceTB", "135M", "apache-2.0")
    assert facts.chat_template is not None and "<|im_start|>" in facts.chat_template
    assert facts.sliding_window is None and not facts.is_embedding and not facts.is_projector


def test_gemma_is_described(gemma: Path):
    facts = describe(read_header(gemma))
    assert (facts.kind, facts.architecture, facts.quant) == ("model", "gemma3", "Q4_K_M")
    assert (facts.layers, facts.head_count_kv, facts.key_length) == (18, 1, 256)
    assert (facts.context_length, facts.sliding_window, facts.vocab_size) == (32_768, 512, 262_144)
    assert facts.parameters == 268_098_176
    assert not facts.has_chat_template


def test_b07_kinds_are_told_by_metadata():
    imatrix = GgufFile([pair("general.type", "imatrix")], [TensorEntry("t", [64])])
    kinds = {
        "model": tiny(),
        "projector": tiny("clip"),
        "adapter": tiny("gemma3", pair("general.type", "adapter")),
        "imatrix": imatrix,
        "embedding": tiny("bert"),
        "vocabulary": GgufFile(tiny().pairs),
        "shard": tiny("llama", pair("split.no", 1), pair("split.count", 3)),
    }
    assert {kind: described(model).kind for kind, model in kinds.items()} == {kind: kind for kind in kinds}
    assert described(tiny("clip", pair("general.type", "mmproj"))).is_projector


@pytest.mark.parametrize(("pooling", "kind"), [(0, "model"), (1, "embedding"), (3, "embedding")])
def test_a_decoder_that_pools_makes_embeddings(pooling: int, kind: str):
    assert described(tiny("qwen3", pooling_type=pooling)).kind == kind


def test_an_unknown_architecture_is_shown_with_its_figures():
    facts = described(tiny("zorblax"))
    assert (facts.architecture, facts.context_length, facts.kind) == ("zorblax", 2048, "model")


def test_values_of_the_wrong_type_are_left_out():
    facts = described(GgufFile([pair("general.architecture", "llama"), pair("general.name", 42)]))
    assert facts.name is None
    assert described(tiny(context_length="long")).context_length is None


def test_no_figure_divides_by_zero():
    model = tiny(context_length=0)
    model.tensors = [TensorEntry("t", [0, 64], data=b"")]
    facts = described(model)
    assert (facts.context_length, facts.parameters, facts.bits_per_weight) == (0, 0, 0.0)


def test_the_largest_of_per_layer_figures_is_told():
    heads = pair("llama.attention.head_count_kv", array(ValueType.INT32, [8, 0, 4]), ValueType.ARRAY)
    assert described(tiny("llama", heads)).head_count_kv == 8


@pytest.mark.parametrize(("file_type", "quant"), [(15, "Q4_K_M"), (15 | 1024, "Q4_K_M"), (38, "MXFP4_MOE")])
def test_the_quant_is_named_by_the_file_type(file_type: int, quant: str):
    assert described(tiny("llama", pair("general.file_type", file_type))).quant == quant


@pytest.mark.parametrize("extra", [(), (pair("general.file_type", 999),)])
def test_without_a_known_file_type_the_tensors_tell_the_quant(extra: tuple[bytes, ...]):
    model = tiny("llama", *extra)
    model.tensors = [
        TensorEntry("a", [256, 64], Q4_K, bytes(144 * 64)),
        TensorEntry("b", [64, 16], F16),
        TensorEntry("c", [65_536]),
    ]
    assert described(model).quant == "Q4_K"


def test_an_empty_template_counts_as_none_and_named_ones_are_given():
    facts = described(
        tiny(
            "llama",
            pair("tokenizer.chat_template", " \n"),
            pair("tokenizer.chat_template.tool_use", "tools"),
            strings("tokenizer.chat_templates", ["tool_use"]),
        )
    )
    assert (facts.has_chat_template, facts.chat_templates) == (False, {"tool_use": "tools"})


def test_a_description_goes_through_msgpack_unchanged(smollm2: Path):
    facts = describe(read_header(smollm2))
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(facts), type=Description) == facts
