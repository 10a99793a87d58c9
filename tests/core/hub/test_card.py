"""A card's text: front matter apart, a size at most, and anything a stranger may write."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from octavo.core.hub.card import MOST_BYTES, split_card
from tests.core.hub.reached import reached
from tests.fixtures.hub_double import HubDouble
from tests.fixtures.hub_repositories import HubRepository
from tests.fixtures.hub_sources import Bytes
from tests.server.support import in_loop


@pytest.mark.parametrize(
    ("data", "text", "front"),
    [
        (b"---\nlicense: mit\n---\n# A model\n", "# A model\n", "license: mit"),
        (b"\xef\xbb\xbf---\r\na: 1\r\n---\r\n\r\ntext", "text", "a: 1"),
        (b"---\n---\ntext", "text", ""),
        (b"# no front matter\n---\nrule", "# no front matter\n---\nrule", ""),
        (b"---\nnever ends", "---\nnever ends", ""),
        (b"---\na: --- b\n---", "", "a: --- b"),
        (b"<script>alert(1)</script>", "<script>alert(1)</script>", ""),
        (b"\xff\xfe", "\ufffd\ufffd", ""),
        (b"", "", ""),
    ],
)
def test_front_matter_is_split_off(data: bytes, text: str, front: str) -> None:
    card = split_card(data)
    assert (card.text, card.front_matter) == (text, front)


@given(st.binary(max_size=200))
def test_any_bytes_make_a_card(data: bytes) -> None:
    split_card(b"---\n" + data)


@in_loop
async def test_a_card_without_end_is_cut_and_none_is_empty(tmp_path: Path) -> None:
    long = HubRepository("a/long", {"README.md": Bytes(b"x" * (4 << 20))})
    with HubDouble([long, HubRepository("a/none", {})]) as hub:
        async with reached(tmp_path, hub.endpoint) as client:
            card = await client.card("a/long")
            assert len(card.text) == MOST_BYTES and card.is_cut
            assert (await client.card("a/none")).text == ""
