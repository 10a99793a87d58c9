"""Names that a model may be loaded under."""

import pytest

from octavo.core.errors import InvalidRequest
from octavo.core.runtime.instance import checked_name


@pytest.mark.parametrize("name", ["mine", "a/b c", "한글", 'x"y\\z'])
def test_what_can_be_shown_and_typed_is_a_name(name: str) -> None:
    assert checked_name(name) == name


@pytest.mark.parametrize("name", ["a\x1b[2Jb", "ev\x1b]0;pwn\x07il", "a\nb", "\u202eb", "   ", "x" * 201])
def test_what_could_steer_a_terminal_is_none(name: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        checked_name(name)
    assert refused.value.details["param"] == "identifier"
    assert refused.value.message.isprintable()
