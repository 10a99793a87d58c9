import re
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from octavo.core.prompts.lookalikes import (
    choose_marks,
    control_tokens,
    joined,
    protect_all,
    split_segments,
    strings,
)
from octavo.core.prompts.messages import Message, Segment
from tests.core.prompts.rendering import CONTROL, Rendering

ALPHABET = "<>|[]/ab \n\ue000\ue001가"
TOKENS = st.lists(st.text(ALPHABET, min_size=1, max_size=5), max_size=6)
TURNS = st.lists(st.text(ALPHABET, max_size=30), min_size=1, max_size=4)


def render(contents: list[str], tokens: list[str], separator: str) -> tuple[list[Segment], str]:
    """Do by hand what the helper does with a template that writes contents one after the other."""
    known, marks = control_tokens(tokens), choose_marks([*contents, separator])
    written = separator.join(known.protect(content, marks) for content in contents)
    return split_segments(written, marks), separator.join(contents)


@given(contents=TURNS, tokens=TOKENS, separator=st.sampled_from(["", "#", "#\n"]))
@example(contents=["a<", "b>"], tokens=["<b>"], separator="")
@example(contents=["aab"], tokens=["a", "aab", "ab"], separator="")
def test_segments_join_to_the_plain_text_and_no_look_alike_is_special(
    contents: list[str], tokens: list[str], separator: str
) -> None:
    segments, plain = render(contents, tokens, separator)
    assert "".join(segment.text for segment in segments) == plain
    look_alikes = [token for token in tokens if token.strip()]
    for segment in segments:
        assert not segment.special or not any(token in segment.text for token in look_alikes)


@given(contents=TURNS, tokens=TOKENS)
def test_neighbouring_segments_differ_and_none_is_empty(contents: list[str], tokens: list[str]) -> None:
    segments, _ = render(contents, tokens, "#")
    assert all(segment.text for segment in segments)
    assert all(one.special != two.special for one, two in pairwise(segments))


@given(
    tokens=st.lists(st.text(ALPHABET, min_size=1, max_size=5), min_size=1),
    text=st.text(ALPHABET, max_size=60),
)
def test_pattern_finds_what_a_plain_alternation_finds(tokens: list[str], text: str) -> None:
    known = [token for token in tokens if token.strip()]
    longest_first = sorted(map(re.escape, known), key=len, reverse=True)
    plain = re.compile("|".join(longest_first) or r"(?!)")
    found = control_tokens(tokens).pattern.findall(text)
    assert found == [match.group() for match in plain.finditer(text)]


@pytest.mark.parametrize("template", ["{% for m in messages %}{{ m.content }}{% endfor %}"])
def test_helper_gives_what_plain_rendering_gives(rendering: Rendering, template: str) -> None:
    @given(
        content=st.text(st.sampled_from([*CONTROL, "<", "a", " ", "\ue000", "한"]).map(lambda part: part[0]))
    )
    def check(content: str) -> None:
        assert rendering.text(template, [Message("user", content)]) == content

    check()


def test_marks_avoid_what_the_texts_hold() -> None:
    marks = choose_marks(["".join(map(chr, range(0xE000, 0xF900)))])
    assert ord(marks.start) >= 0xF0000


def test_protection_reaches_into_json() -> None:
    tokens, marks = control_tokens(["<a>"]), choose_marks([])
    value = protect_all({"k<a>": ["x<a>y", 1, None]}, tokens, marks)
    assert sum(text.count(marks.start) for text in strings(value)) == 2


def test_mark_without_its_partner_is_dropped() -> None:
    marks = choose_marks([])
    text = f"a{marks.start}<b{marks.start}<c>{marks.end}d{marks.end}"
    assert split_segments(text, marks) == [
        Segment("a<b", special=True),
        Segment("<c>", special=False),
        Segment("d", special=True),
    ]


def test_many_look_alikes_in_a_row_are_one_segment() -> None:
    assert joined([Segment("x", special=False)] * 100_000) == [Segment("x" * 100_000, special=False)]


def test_no_control_tokens_protect_nothing() -> None:
    assert control_tokens([]).protect("<eos>", choose_marks([])) == "<eos>"
