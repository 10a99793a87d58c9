"""Search: pages, what is asked of the Hub, and what is looked at here."""

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from octavo.core.errors import InvalidRequest
from octavo.core.hub.search import HubQuery, fits
from octavo.core.hub.types import HubModel, SearchPage
from tests.core.hub.reached import reached
from tests.fixtures.hub_double import HubDouble
from tests.fixtures.hub_repositories import HubRepository
from tests.server.support import in_loop

BILLION = 10**9


@pytest.fixture
def hub() -> Iterator[HubDouble]:
    with HubDouble([_repository(number) for number in range(130)]) as double:
        yield double


def _repository(number: int) -> HubRepository:
    gguf = {"total": number * BILLION, "architecture": "qwen3" if number % 10 == 3 else "llama"}
    info = {"gguf": gguf, "gated": "manual" if number % 2 else False, "downloads": number}
    return HubRepository(f"org{number % 3}/model-{number:03}", {}, info=info)


async def found(folder: Path, hub: HubDouble, query: HubQuery) -> SearchPage:
    async with reached(folder, hub.endpoint) as client:
        return await client.search(query)


@in_loop
async def test_a_search_goes_on_page_by_page(tmp_path: Path, hub: HubDouble) -> None:
    seen: list[str] = []
    page, mark, asked = None, None, 0
    async with reached(tmp_path, hub.endpoint) as client:
        while page is None or mark:
            page = await client.search(HubQuery(text="model", limit=50, page=mark))
            seen, mark, asked = seen + [model.id for model in page.models], page.next_page, asked + 1
    assert (len(seen), len(set(seen)), asked, len(hub.log)) == (130, 130, 3, 3)


@in_loop
async def test_what_is_asked_of_the_hub(tmp_path: Path, hub: HubDouble) -> None:
    query = HubQuery(
        text=" llama ",
        author="org1",
        sort="modified",
        gated=True,
        min_parameters=1_500_000_000,
        max_parameters=8 * BILLION,
    )
    await found(tmp_path, hub, query)
    asked = parse_qs(urlsplit(hub.log[0].path).query)
    assert asked["filter"] == ["gguf"] and asked["search"] == ["llama"] and asked["author"] == ["org1"]
    assert asked["sort"] == ["lastModified"] and asked["gated"] == ["true"]
    assert asked["num_parameters"] == ["min:1B,max:8B"] and "gguf" in asked["expand"]


@in_loop
async def test_a_filter_reads_on_until_enough_fit(tmp_path: Path, hub: HubDouble) -> None:
    page = await found(tmp_path, hub, HubQuery(architecture="QWEN", gated=True, limit=12))
    assert [model.parameters for model in page.models] == [n * BILLION for n in range(3, 130, 10)]
    assert page.next_page is None and len(hub.log) == 2


@in_loop
async def test_sizes_are_exact(tmp_path: Path, hub: HubDouble) -> None:
    page = await found(
        tmp_path, hub, HubQuery(min_parameters=7 * BILLION - 1, max_parameters=9 * BILLION - 1)
    )
    assert [model.parameters for model in page.models] == [7 * BILLION, 8 * BILLION]
    assert [model.gated for model in page.models] == [True, False]


@pytest.mark.parametrize("mark", ["x", "e30=", "W1sicCIsMV1d", "\u00e9"])
@in_loop
async def test_a_page_that_is_none_is_refused(tmp_path: Path, hub: HubDouble, mark: str) -> None:
    with pytest.raises(InvalidRequest):
        await found(tmp_path, hub, HubQuery(page=mark))


@in_loop
async def test_a_next_page_leads_nowhere_else(tmp_path: Path, hub: HubDouble) -> None:
    hub.repositories.clear()
    evil = "W1sidXJsIiwiaHR0cDovL2V2aWwuZXhhbXBsZSJdLFsiY3Vyc29yIiwiMCJdXQ=="  # url and cursor
    assert (await found(tmp_path, hub, HubQuery(page=evil))).models == []
    assert "evil" not in hub.log[0].path and "cursor=0" in hub.log[0].path


def test_what_the_hub_does_not_tell_is_let_through_by_size_only() -> None:
    bare = HubModel(id="a/b", author="a")
    assert fits(bare, HubQuery(min_parameters=5))
    assert not fits(bare, HubQuery(architecture="llama"))
    assert not fits(bare, HubQuery(gated=True))


@in_loop
async def test_an_odd_row_hides_no_other(tmp_path: Path, hub: HubDouble) -> None:
    hub.repositories["org0/model-000"].info["downloads"] = "many"
    hub.repositories["org1/model-001"].info["id"] = "../evil"
    page = await found(tmp_path, hub, HubQuery(limit=10))
    assert len(page.models) == 8


@in_loop
async def test_the_routes_are_those_of_huggingface_hub(tmp_path: Path, hub: HubDouble) -> None:
    api = pytest.importorskip("huggingface_hub").HfApi(endpoint=hub.endpoint, token=False)
    query = HubQuery(text="x", author="org1", gated=False, max_parameters=8 * BILLION, limit=100)
    list(
        api.list_models(
            filter="gguf",
            search="x",
            author="org1",
            gated=False,
            num_parameters="max:8B",
            sort="downloads",
            limit=100,
            expand=["author", "downloads", "likes", "gated", "private", "lastModified", "tags", "gguf"],
        )
    )
    api.model_info("org1/model-001", revision="main", files_metadata=True)
    theirs = [asked.path for asked in hub.log if asked.path.startswith("/api/models")]
    hub.reset()
    async with reached(tmp_path, hub.endpoint) as client:
        await client.search(query)
        await client.repository("org1/model-001")
    ours = [asked.path for asked in hub.log]
    assert [urlsplit(path).path for path in ours] == [urlsplit(path).path for path in theirs]
    assert [parse_qs(urlsplit(path).query) for path in ours] == [
        parse_qs(urlsplit(path).query) for path in theirs
    ]
