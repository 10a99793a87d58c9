"""Which repository a file came from: the one that has a file of that name, the best known first."""

from pathlib import Path

import pytest

from octavo.core.errors import HubOffline
from octavo.core.hub.origin import origin_of, proposer
from octavo.core.hub.types import Access
from tests.core.hub.reached import reached
from tests.fixtures.hub_double import HubDouble
from tests.fixtures.hub_repositories import HubRepository
from tests.fixtures.hub_sources import Bytes
from tests.server.support import in_loop

NAME = "Tiny-Model-1B-Q4_K_M.gguf"


def double() -> HubDouble:
    return HubDouble(
        [
            HubRepository("someone/Tiny-Model-1B-GGUF", {NAME: Bytes(b"x" * 100)}, info={"downloads": 900}),
            HubRepository(
                "bartowski/Tiny-Model-1B-GGUF", {NAME.lower(): Bytes(b"x" * 100)}, info={"downloads": 5}
            ),
            HubRepository("other/Tiny-Model-1B-Q8", {"else.gguf": Bytes(b"x" * 100)}),
        ]
    )


@in_loop
async def test_the_known_publisher_is_taken(tmp_path: Path) -> None:
    with double() as hub:
        async with reached(tmp_path, hub.endpoint) as client:
            assert await origin_of(client, NAME) == ("bartowski", "Tiny-Model-1B-GGUF")


@in_loop
async def test_a_file_that_nobody_has_comes_from_nowhere(tmp_path: Path) -> None:
    with double() as hub:
        async with reached(tmp_path, hub.endpoint) as client:
            assert await origin_of(client, "Tiny-Model-1B-Q6_K.gguf") is None


def test_it_is_asked_from_a_thread_without_a_loop(tmp_path: Path) -> None:
    with double() as hub:
        propose = proposer(lambda: Access(endpoint=hub.endpoint), tmp_path)
        assert propose(NAME) == ("bartowski", "Tiny-Model-1B-GGUF")


def test_offline_says_so_and_asks_nothing(tmp_path: Path) -> None:
    with double() as hub:
        with pytest.raises(HubOffline):
            proposer(lambda: Access(endpoint=hub.endpoint, is_offline=True), tmp_path)(NAME)
        assert not hub.log
