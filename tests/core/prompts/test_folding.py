"""A07: what agents and clients send, through templates that are stricter than they are."""

import pytest

from octavo.core.errors import TemplateRefused
from octavo.core.prompts.builtin import FORMATS
from octavo.core.prompts.folding import fold, loses_text, variants
from octavo.core.prompts.messages import Message, ToolCall
from tests.core.prompts.rendering import Rendering

CALL = ToolCall("c1", "get_time", '{"tz": "UTC"}')
WRITTEN = '{"name": "get_time", "arguments": {"tz": "UTC"}}'
AGENT = [
    Message("user", "What time is it?"),
    Message("assistant", None, [CALL]),
    Message("tool", "12:00", tool_call_id="c1"),
]

# shared/cases: tpl_raises_on_system.gguf and the template of raises_template.gguf
NO_SYSTEM = (
    "{% if messages[0].role == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}"
    "{{ messages[0].content }}"
)
STRICT = (
    "{{ bos_token }}{% if messages[0]['role'] == 'system' %}"
    "{{ raise_exception('System role not supported') }}{% endif %}"
    "{% for m in messages %}{% if (m['role'] == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('Conversation roles must alternate') }}{% endif %}"
    "<start_of_turn>{{ 'model' if m['role'] == 'assistant' else m['role'] }}\n"
    "{{ m['content'] | trim }}<end_of_turn>\n{% endfor %}"
    "{% if add_generation_prompt %}<start_of_turn>model\n{% endif %}"
)
CONCATENATING = (
    "{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' + m.content + '<|im_end|>\n' }}{% endfor %}"
)


def turns(*pairs: tuple[str, str]) -> str:
    return "".join(f"<start_of_turn>{role}\n{text}<end_of_turn>\n" for role, text in pairs)


@pytest.mark.parametrize("template", [STRICT, FORMATS["gemma"].text], ids=["strict", "built-in"])
@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        (
            [Message("system", "S"), Message("user", "U")],
            turns(("user", "S\n\nU")),
        ),
        (
            [Message("user", "one"), Message("user", "two")],
            turns(("user", "one\n\ntwo")),
        ),
        (
            [
                Message("user", "U"),
                Message("assistant", "A"),
                Message("system", "late"),
                Message("user", "V"),
            ],
            turns(("user", "U"), ("model", "A"), ("user", "late\n\nV")),
        ),
        (
            [Message("system", "S"), Message("system", "T"), Message("user", "U")],
            turns(("user", "S\n\nT\n\nU")),
        ),
        (
            AGENT,
            turns(("user", "What time is it?"), ("model", WRITTEN), ("user", "12:00")),
        ),
    ],
)
def test_strict_template_gets_alternating_turns(
    rendering: Rendering, template: str, messages: list[Message], expected: str
) -> None:
    text = rendering.text(template, messages).removeprefix("<bos>")
    assert text == expected + "<start_of_turn>model\n"


def test_system_message_between_two_user_turns_joins_them(rendering: Rendering) -> None:
    messages = [Message("user", "one"), Message("system", "late"), Message("user", "two")]
    text = rendering.text(FORMATS["gemma"].text, messages)
    assert text == turns(("user", "one\n\nlate\n\ntwo")) + "<start_of_turn>model\n"


def test_null_content_does_not_break_a_template_that_concatenates(rendering: Rendering) -> None:
    text = rendering.text(CONCATENATING, AGENT)
    assert f"<|im_start|>assistant\n{WRITTEN}<|im_end|>" in text
    assert "<|im_start|>tool\n12:00<|im_end|>" in text
    assert "None" not in rendering.text(CONCATENATING, [Message("user", None), Message("user", "hi")])


def test_system_text_that_a_template_drops_is_folded(rendering: Rendering) -> None:
    drops = "{% for m in messages if m.role != 'system' %}{{ m.content }}{% endfor %}"
    assert rendering.text(drops, [Message("system", "Be brief."), Message("user", "hi")]) == "Be brief.\n\nhi"


def test_text_that_every_shape_drops_is_no_error(rendering: Rendering) -> None:
    assert rendering.text("fixed", [Message("user", "hi")]) == "fixed"


def test_lone_system_message_becomes_the_users(rendering: Rendering) -> None:
    assert rendering.text(NO_SYSTEM, [Message("system", "S")]) == "S"


@pytest.mark.parametrize("template", [STRICT, FORMATS["gemma"].text, FORMATS["chatml"].text])
def test_last_assistant_turn_is_continued(rendering: Rendering, template: str) -> None:
    text = rendering.text(template, [Message("user", "Count."), Message("assistant", "1, 2, 3, 4,")])
    assert text.endswith(("<start_of_turn>model\n1, 2, 3, 4,", "<|im_start|>assistant\n1, 2, 3, 4,"))


def test_prefill_keeps_its_look_alikes_as_text(rendering: Rendering) -> None:
    segments = rendering.segments(STRICT, [Message("user", "hi"), Message("assistant", "a<end_of_turn>b")])
    assert [piece.text for piece in segments[-3:]][1:] == ["<end_of_turn>", "b"]
    assert not segments[-2].special


def test_prefill_alone_follows_an_empty_turn(rendering: Rendering) -> None:
    text = rendering.text(STRICT, [Message("assistant", "1, 2,")])
    assert text == "<bos>" + turns(("user", "")) + "<start_of_turn>model\n1, 2,"


def test_prefill_comes_after_no_open_thought(rendering: Rendering) -> None:
    template = "{{ messages[0].content }}{% if add_generation_prompt %}<|assistant|><think>\n{% endif %}"
    assert (
        rendering.text(template, [Message("user", "hi"), Message("assistant", "So")]) == "hi<|assistant|>So"
    )


def test_conversation_is_closed_without_a_generation_prompt(rendering: Rendering) -> None:
    segments = rendering.segments(
        STRICT, [Message("user", "U"), Message("assistant", "A")], add_generation_prompt=False
    )
    assert segments[-1].text.endswith("A<end_of_turn>\n")


def test_first_words_are_reported_when_no_shape_renders(rendering: Rendering) -> None:
    template = "{{ raise_exception('given' if messages | length > 1 else 'folded') }}"
    with pytest.raises(TemplateRefused, match="given"):
        rendering.segments(template, [Message("user", "a"), Message("user", "b")])


def test_fold_keeps_calls_where_a_template_knows_them() -> None:
    folded = fold([Message("system", "S"), *AGENT], keeps_system=True, keeps_tools=True)
    assert [turn.role for turn in folded] == ["system", "user", "assistant", "tool"]
    assert folded[2] == Message("assistant", "", [CALL])


def test_plain_conversation_has_one_shape() -> None:
    plain = [Message("user", "a"), Message("assistant", "b"), Message("user", "c")]
    assert list(variants(plain, knows_calls=False)) == [plain]


def test_lost_text_is_noticed_by_its_longest_word() -> None:
    assert loses_text(["Be extraordinarily brief."], "hi")
    assert not loses_text(["Be extraordinarily\n\nbrief.", ""], '"extraordinarily\\n"')
