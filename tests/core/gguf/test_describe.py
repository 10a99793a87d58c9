"""What a header tells a person, of the two real models and of odd ones."""

from pathlib import Path

import msgspec
import pytest

from octavo.core.gguf import Capabilities, Description, Projector, ValueType, describe, read_header
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


def moe(*names: str, experts: int = 8, used: int = 2) -> GgufFile:
    model = tiny("qwen3moe", expert_count=experts, expert_used_count=used, expert_feed_forward_length=32)
    model.tensors += [TensorEntry(name, [64, 32, experts], F16) for name in names]
    return model


def test_active_parameters_count_the_experts_that_a_token_is_sent_to():
    facts = described(
        moe("blk.0.ffn_up_exps.weight", "blk.0.ffn_gate_exps.weight", "blk.0.ffn_down_exps.weight")
    )
    dense, routed = 64 * 64 + 64, 3 * 64 * 32 * 8
    assert (facts.parameters, facts.active_parameters) == (dense + routed, dense + routed // 4)
    assert (facts.expert_count, facts.expert_used_count, facts.expert_feed_forward_length) == (8, 2, 32)


def test_shared_experts_and_routers_are_always_active():
    model = moe()
    model.tensors += [
        TensorEntry(f"blk.0.{name}.weight", [64, 32]) for name in ("ffn_up_shexp", "ffn_gate_inp")
    ]
    facts = described(model)
    assert facts.active_parameters == facts.parameters


def test_experts_of_old_files_have_a_tensor_each():
    model = moe()
    model.tensors += [TensorEntry(f"blk.0.ffn_up.{number}.weight", [64, 32]) for number in range(8)]
    facts = described(model)
    assert facts.parameters - facts.active_parameters == 64 * 32 * 6


@pytest.mark.parametrize(("experts", "used"), [(0, 0), (8, 9), (8, 8)])
def test_odd_expert_counts_leave_all_parameters_active(experts: int, used: int):
    model = tiny("qwen3moe", expert_count=experts, expert_used_count=used)
    model.tensors.append(TensorEntry("blk.0.ffn_up_exps.weight", [64, 32, 8], F16))
    facts = described(model)
    assert facts.active_parameters == facts.parameters


def test_a_dense_model_is_all_active(smollm2: Path):
    facts = describe(read_header(smollm2))
    assert facts.active_parameters == facts.parameters and facts.capabilities == Capabilities()


def test_per_layer_figures_are_kept():
    heads = pair("llama.attention.head_count_kv", array(ValueType.INT32, [8, 0, 4]), ValueType.ARRAY)
    windows = pair(
        "llama.attention.sliding_window_pattern", array(ValueType.BOOL, [1, 0, 1]), ValueType.ARRAY
    )
    layers = described(tiny("llama", heads, windows)).per_layer
    assert (layers.head_count_kv, layers.sliding_window_pattern, layers.head_count) == (
        (8, 0, 4),
        (1, 0, 1),
        (),
    )


@pytest.mark.parametrize(
    ("template", "able"),
    [
        ("{{ messages }}", Capabilities()),
        ("Here are tools: {{ messages[0].content }}", Capabilities()),
        ("{%- if tools %}{{ tools | tojson }}{% endif %}", Capabilities(tools=True)),
        ("{% if x %}\n{%- for t in builtin_tools %}{{ t }}{% endfor %}{% endif %}", Capabilities(tools=True)),
        ("{% if enable_thinking is false %}<think>\n\n</think>{% endif %}", Capabilities(reasoning=True)),
        ("{% set x = message.reasoning_content %}", Capabilities(reasoning=True)),
        ("<|start|>assistant<|channel|>analysis", Capabilities(reasoning=True)),
        ("{% if item['type'] == 'image' %}<start_of_image>{% endif %}", Capabilities(vision=True)),
    ],
)
def test_a_template_tells_what_the_model_can_do(template: str, able: Capabilities):
    assert described(tiny("llama", pair("tokenizer.chat_template", template))).capabilities == able


def test_b07_a_projector_tells_what_it_reads_and_for_which_width():
    model = tiny(
        "clip",
        pair("general.type", "mmproj"),
        pair("clip.has_vision_encoder", True),
        pair("clip.projector_type", "gemma3"),
        pair("clip.vision.projection_dim", 640),
    )
    facts = described(model)
    assert (facts.projector, facts.capabilities) == (Projector("gemma3", 640), Capabilities(vision=True))
    assert described(tiny()).projector is None
