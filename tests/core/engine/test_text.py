"""Whole characters only, and stop strings that never leak."""

import itertools
import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from octavo.core.engine.text import Characters, StopStrings

TRICKY = st.text(
    st.one_of(
        st.sampled_from("🫩👨‍👩‍👧한글각éñ́͛𝔘字\u200d"),
        st.characters(exclude_categories=("Cs",)),
    ),
    max_size=40,
)


def cut(data: bytes, borders: list[int]) -> list[bytes]:
    """Split ``data`` at the given places."""
    places = sorted({min(border, len(data)) for border in borders} | {0, len(data)})
    return [data[start:stop] for start, stop in itertools.pairwise(places)]


@given(TRICKY, st.lists(st.integers(0, 200), max_size=60))
def test_any_byte_split_gives_whole_characters_and_the_same_text(text: str, borders: list[int]) -> None:
    characters = Characters()
    pieces = [characters.feed(part) for part in cut(text.encode(), borders)]
    assert "".join(pieces) == text
    for piece in pieces:
        piece.encode()  # a half character could not be encoded
        assert "\ufffd" not in piece or "\ufffd" in text


def test_an_unfinished_character_waits_and_is_never_shown() -> None:
    characters = Characters()
    assert characters.feed("한".encode()[:2]) == ""
    assert characters.feed("한".encode()[2:] + "글".encode()[:1]) == "한"


def test_bytes_that_are_no_utf8_become_marks_and_do_not_eat_what_follows() -> None:
    assert Characters().feed(b"\xff\xfea") == "\ufffd\ufffda"


def test_decomposed_hangul_stays_decomposed() -> None:
    text = unicodedata.normalize("NFD", "각")
    characters = Characters()
    assert "".join(characters.feed(bytes([byte])) for byte in text.encode()) == text


@given(st.text("abc한🫩", max_size=60), st.lists(st.text("abc한🫩", max_size=5), max_size=4), st.data())
def test_a_stop_string_never_leaks_over_borders(text: str, stops: list[str], data: st.DataObject) -> None:
    filter_ = StopStrings(stops)
    shown, at = "", 0
    while at < len(text) and filter_.met is None:
        size = data.draw(st.integers(1, 4))
        shown += filter_.feed(text[at : at + size])
        at += size
    whole = [stop for stop in stops if stop]
    if filter_.met is None:
        assert shown + filter_.end() == text
    else:
        assert text.startswith(shown + filter_.met)
    assert not any(stop in shown for stop in whole)


def test_held_back_text_is_given_at_the_end() -> None:
    filter_ = StopStrings(["7, 9"])
    assert filter_.feed(" 5, 6, 7,") == " 5, 6, "
    assert filter_.end() == "7,"


def test_empty_stop_strings_are_ignored() -> None:
    filter_ = StopStrings(["", ""])
    assert filter_.feed("text") == "text"
    assert filter_.met is None
