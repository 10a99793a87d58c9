import pytest

from octavo.core.prompts.builtin import FORMATS, built_in, choose
from octavo.core.prompts.messages import Message
from tests.core.prompts.rendering import Rendering

GEMMA = ["<bos>", "<eos>", "<start_of_turn>", "<end_of_turn>"]


def test_gemma_without_a_template_gets_gemmas_format(rendering: Rendering) -> None:
    """A01: by architecture and vocabulary; one BOS, and ``<end_of_turn>`` ends a turn."""
    choice = choose("gemma3", GEMMA, None)
    assert (choice.name, choice.source) == ("gemma", "built-in")
    assert choice.end_of_turn == ["<end_of_turn>"]
    assert rendering.text(choice.text, [Message("user", "hi")]) == (
        "<start_of_turn>user\nhi<end_of_turn>\n<start_of_turn>model\n"
    )


def test_models_own_template_wins() -> None:
    choice = choose("gemma3", GEMMA, "{{ bos_token }}<start_of_turn>{{ messages }}<end_of_turn>")
    assert (choice.source, choice.end_of_turn) == ("model", ["<end_of_turn>"])


@pytest.mark.parametrize("blank", ["", " \n"])
def test_empty_template_counts_as_missing(blank: str) -> None:
    assert choose("llama", [], blank).source == "built-in"


@pytest.mark.parametrize(
    ("architecture", "tokens", "name"),
    [
        ("qwen3", ["<|im_start|>", "<|im_end|>"], "chatml"),
        ("llama", ["<|start_header_id|>", "<|eot_id|>"], "llama3"),
        ("llama", ["[INST]", "[/INST]"], "mistral"),
        ("phi3", ["<|user|>", "<|assistant|>", "<|end|>", "<|im_start|>", "<|im_end|>"], "phi3"),
        ("gemma3", [], "chatml"),
        ("unheard-of", [], "chatml"),
    ],
)
def test_vocabulary_decides(architecture: str, tokens: list[str], name: str) -> None:
    assert choose(architecture, tokens, None).name == name


def test_harmony_parts_do_not_end_a_turn() -> None:
    choice = choose("gpt-oss", ["<|end|>", "<|return|>"], "<|start|>{{ messages }}<|end|><|return|>")
    assert choice.end_of_turn == ["<|return|>"]


@pytest.mark.parametrize("name", sorted(FORMATS))
def test_built_in_templates_render_a_conversation(rendering: Rendering, name: str) -> None:
    turns = [
        Message("system", "Sys."),
        Message("user", "One."),
        Message("assistant", "Two."),
        Message("user", "Three."),
    ]
    text = rendering.text(built_in(name).text, turns)
    places = [text.index(turn.content or "") for turn in turns]
    assert places == sorted(places)
    assert "<bos>" not in text
