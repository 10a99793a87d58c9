"""The cases of group d that concern search, listings, cards and headers, over real HTTP."""

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from octavo.core.config.settings import Hub
from octavo.core.errors import (
    Cancelled,
    DownloadFailed,
    GatedRepository,
    HubFileNotFound,
    HubOffline,
    HubRateLimited,
    HubRefused,
    HubUnreachable,
    InvalidRequest,
    OctavoError,
    RepositoryNotFound,
)
from octavo.core.hub import connection
from octavo.core.hub.search import HubQuery
from octavo.core.hub.types import HubFile
from tests.core.hub.reached import TOKEN, reached
from tests.core.hub.small_proxy import small_proxy
from tests.fixtures.gguf_builder import tiny
from tests.fixtures.hub_double import HubDouble
from tests.fixtures.hub_repositories import COMMIT, MODEL, Faults, HubRepository, case_repositories
from tests.fixtures.hub_sources import Bytes
from tests.server.support import in_loop


@pytest.fixture
def hub() -> Iterator[HubDouble]:
    with HubDouble(case_repositories(Bytes(tiny().build()))) as double:
        yield double


async def refusal(folder: Path, hub: HubDouble, repo: str, **environ: str) -> OctavoError:
    """Give what comes of reading a repository's listing."""
    async with reached(folder, hub.endpoint, **environ) as client:
        with pytest.raises(OctavoError) as fault:
            await client.repository(repo)
    assert fault.value.hint and TOKEN not in str(fault.value.report())
    return fault.value


async def header_of(folder: Path, hub: HubDouble, repo: str, **environ: str) -> object:
    """Read the header of a repository's only choice."""
    async with reached(folder, hub.endpoint, **environ) as client:
        found = await client.repository(repo)
        return await client.header(found, found.choices[0])


@in_loop
async def test_d03_a_gated_repository_tells_where_to_accept_its_terms(tmp_path: Path, hub: HubDouble) -> None:
    without = await refusal(tmp_path, hub, "err/gated")
    assert isinstance(without, GatedRepository)
    assert "octavo login" in without.hint and f"{hub.endpoint}/err/gated" in without.hint
    assert without.details["url"] == f"{hub.endpoint}/err/gated"
    with_token = await refusal(tmp_path, hub, "err/gated", HF_TOKEN=TOKEN)
    assert isinstance(with_token, GatedRepository) and "account of your token" in with_token.message


@in_loop
async def test_d03_a_missing_repository_and_a_missing_file_are_told_apart(
    tmp_path: Path, hub: HubDouble
) -> None:
    assert isinstance(await refusal(tmp_path, hub, "err/notfound"), RepositoryNotFound)
    assert isinstance(await refusal(tmp_path, hub, "no/such"), RepositoryNotFound)
    with pytest.raises(HubFileNotFound) as fault:
        await header_of(tmp_path, hub, "err/nofile")
    assert fault.value.message == f"err/nofile is there, but it has no file {MODEL}."


@in_loop
async def test_d03_a_refusal_is_no_missing_repository(tmp_path: Path, hub: HubDouble) -> None:
    fault = await refusal(tmp_path, hub, "err/forbidden")
    assert isinstance(fault, HubRefused) and not isinstance(fault, GatedRepository)
    assert "octavo login" in fault.hint


@in_loop
async def test_d03_a_rate_limit_tells_how_long(tmp_path: Path, hub: HubDouble) -> None:
    for _ in range(3):
        fault = await refusal(tmp_path, hub, "err/rate")
        assert isinstance(fault, HubRateLimited) and fault.details["retry_after_s"] == 3
    async with reached(tmp_path, hub.endpoint) as client:
        assert (await client.repository("err/rate")).choices


@in_loop
async def test_d03_a_servers_own_trouble_is_tried_again(tmp_path: Path, hub: HubDouble) -> None:
    async with reached(tmp_path, hub.endpoint) as client:
        assert (await client.repository("err/500")).choices
    assert len(hub.log) == 3
    hub.add(HubRepository("err/always", {}, Faults(refusals=[(503, "", None)], refuses_always=True)))
    fault = await refusal(tmp_path, hub, "err/always")
    assert isinstance(fault, HubUnreachable) and "503" in fault.message


@in_loop
async def test_d03_a_page_is_no_header(tmp_path: Path, hub: HubDouble) -> None:
    with pytest.raises(HubUnreachable) as fault:
        await header_of(tmp_path, hub, "bad/html")
    assert "sign in" in fault.value.hint
    hub.add(HubRepository("page/card", {"README.md": Bytes(b"# A model")}, Faults(sends_html=True)))
    async with reached(tmp_path, hub.endpoint) as client:
        with pytest.raises(HubUnreachable, match="web page"):
            await client.card("page/card")


@in_loop
async def test_d03_a_page_is_no_listing(tmp_path: Path) -> None:
    with answering(
        b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 6\r\n\r\n<html>"
    ) as endpoint:
        async with reached(tmp_path, endpoint) as client:
            with pytest.raises(HubUnreachable, match="web page"):
                await client.search(HubQuery())
    for body in (b"[]", b'{"id": 3}', b"\xff", b"[" * 4000):
        answer = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)
        with answering(answer) as endpoint:
            async with reached(tmp_path, endpoint) as client:
                with pytest.raises(HubUnreachable):
                    await client.repository("a/b")


@in_loop
async def test_d03_nobody_there_is_told(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        endpoint = f"http://127.0.0.1:{free.getsockname()[1]}"
    async with reached(tmp_path, endpoint) as client:
        with pytest.raises(HubUnreachable, match="refuses the connection"):
            await client.search(HubQuery())
    async with reached(tmp_path, "http://no-such-host.invalid") as client:
        with pytest.raises(HubUnreachable, match="can't be resolved"):
            await client.search(HubQuery())


@in_loop
async def test_a_silent_server_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "DEADLINE_S", 0.5)
    with answering(b"") as endpoint:
        async with reached(tmp_path, endpoint) as client:
            with pytest.raises(HubUnreachable, match="in time"):
                await client.search(HubQuery())


@in_loop
async def test_a_search_can_be_cancelled(tmp_path: Path) -> None:
    with answering(b"") as endpoint:
        async with reached(tmp_path, endpoint) as client:
            task = asyncio.create_task(client.search(HubQuery()))
            await asyncio.sleep(0.2)
            task.cancel()
            began = time.monotonic()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert time.monotonic() - began < 2


@in_loop
async def test_a_header_can_be_cancelled(tmp_path: Path, hub: HubDouble) -> None:
    stalling = HubRepository("a/b", {MODEL: Bytes(tiny().build())}, Faults(stalls_at_half=True))
    hub.add(stalling)
    task = asyncio.create_task(header_of(tmp_path, hub, "a/b"))
    while not hub.gets("a/b"):
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.1)
    task.cancel()
    began = time.monotonic()
    with pytest.raises((asyncio.CancelledError, Cancelled)):
        await task
    assert time.monotonic() - began < 2


@pytest.mark.parametrize("slash", ["", "/"])
@in_loop
async def test_d06_a_mirror_is_reached_with_and_without_a_slash(
    tmp_path: Path, hub: HubDouble, slash: str
) -> None:
    async with reached(tmp_path, hub.endpoint + slash) as client:
        found = await client.repository("ok/plain")
        await client.header(found, found.choices[0])
        await client.search(HubQuery(text="ok"))
    assert found.revision == COMMIT
    assert all("//" not in asked.path for asked in hub.log)


@in_loop
async def test_d06_the_cdn_sees_no_token(tmp_path: Path, hub: HubDouble) -> None:
    await header_of(tmp_path, hub, "ok/redirect", HF_TOKEN=TOKEN)
    ours = [asked for asked in hub.log if not asked.is_cdn]
    cdn = [asked for asked in hub.log if asked.is_cdn]
    assert ours and all(asked.authorization == f"Bearer {TOKEN}" for asked in ours)
    assert cdn and all(asked.authorization is None for asked in cdn)


@in_loop
async def test_d06_offline_asks_nothing(tmp_path: Path, hub: HubDouble) -> None:
    for settings, environ in ((None, {"HF_HUB_OFFLINE": "1"}), (Hub(offline=True), {})):
        async with reached(tmp_path, hub.endpoint, settings, **environ, HF_TOKEN=TOKEN) as client:
            for work in (
                client.search(HubQuery(text="x")),
                client.repository("ok/plain"),
                client.card("ok/plain"),
                client.account(),
                client.account(TOKEN),
            ):
                with pytest.raises(HubOffline):
                    await work
    assert hub.log == []


@in_loop
async def test_d06_a_proxy_carries_everything(tmp_path: Path, hub: HubDouble) -> None:
    with small_proxy() as proxy:
        named = proxy.address.replace("http://", "http://me:secret@")
        async with reached(tmp_path, hub.endpoint, HTTP_PROXY=named, HF_TOKEN=TOKEN) as client:
            found = await client.repository("ok/redirect")
            await client.header(found, found.choices[0])
        through = len(proxy.asked)
        assert through == len(hub.log) and all(said and said.startswith("Basic ") for said in proxy.said)
        async with reached(tmp_path, hub.endpoint, HTTP_PROXY=named, NO_PROXY="127.0.0.1") as client:
            await client.repository("ok/plain")
        assert len(proxy.asked) == through
        async with reached(tmp_path, hub.endpoint, Hub(proxy=proxy.address)) as client:
            await client.repository("ok/plain")
        assert len(proxy.asked) == through + 1


@in_loop
async def test_d06_a_proxy_that_is_gone_is_told(tmp_path: Path, hub: HubDouble) -> None:
    async with reached(tmp_path, hub.endpoint, Hub(proxy="http://me:secret@127.0.0.1:1")) as client:
        with pytest.raises(HubUnreachable) as fault:
            await client.repository("ok/plain")
    assert "secret" not in str(fault.value.report()) and hub.log == []


@in_loop
async def test_d07_a_hostile_listing_is_hidden_and_counted(tmp_path: Path, hub: HubDouble) -> None:
    async with reached(tmp_path, hub.endpoint) as client:
        found = await client.repository("err/traversal")
        assert [choice.files[0].path for choice in found.choices] == ["good.gguf"]
        assert found.hidden_files == 6
        for repo in ("../../evil.gguf", "ok", "ok/plain/x", "ok/..", "ok/pl\0ain"):
            with pytest.raises(InvalidRequest):
                await client.repository(repo)
    assert len(hub.log) == 1


@in_loop
async def test_d10_quants_in_subfolders_over_http(tmp_path: Path, hub: HubDouble) -> None:
    async with reached(tmp_path, hub.endpoint) as client:
        found = await client.repository("ok/subfolder")
        card = await client.card("ok/subfolder")
    sizes = {choice.name: choice.size_bytes for choice in found.choices}
    assert sizes == {"Q4_K_M": 400_001, "UD-Q2_K_XL": 200_002, "old/model": 200_003, "new/model": 200_004}
    digests = {file.sha256 for choice in found.choices for file in choice.files}
    assert None not in digests and len(digests) == 5
    assert (card.text, card.front_matter) == ("# A model\n", "license: mit")


@pytest.mark.parametrize(
    ("repo", "kind"),
    [
        ("bad/size", DownloadFailed),
        ("bad/wrongrange", HubUnreachable),
        ("bad/gzip", None),
        ("bad/norange", None),
    ],
)
@in_loop
async def test_a_header_that_is_served_badly(
    tmp_path: Path, hub: HubDouble, repo: str, kind: type[OctavoError] | None
) -> None:
    if kind is None:  # a small header is in the first bytes, however they come; no gzip was asked for
        assert await header_of(tmp_path, hub, repo)
        return
    with pytest.raises(kind):
        await header_of(tmp_path, hub, repo)


@in_loop
async def test_a_connection_that_breaks_is_tried_again(tmp_path: Path, hub: HubDouble) -> None:
    assert await header_of(tmp_path, hub, "bad/cut")


@in_loop
async def test_a_headers_second_reading_asks_nothing(tmp_path: Path, hub: HubDouble) -> None:
    async with reached(tmp_path, hub.endpoint) as client:
        found = await client.repository("ok/plain")
        first = await client.header(found, found.choices[0])
        asked = len(hub.log)
        again = await asyncio.gather(*(client.header(found, found.choices[0]) for _ in range(5)))
    async with reached(tmp_path, hub.endpoint) as client:
        assert await client.header(found, found.choices[0]) == first == again[0]
    assert len(hub.log) == asked


@in_loop
async def test_an_account_is_asked_for(tmp_path: Path, hub: HubDouble) -> None:
    async with reached(tmp_path, hub.endpoint) as client:
        assert await client.account(TOKEN) == "tester"
        with pytest.raises(HubRefused):
            await client.account()


def test_a_file_without_a_size_is_left_out() -> None:
    from octavo.core.hub.listing import ListedFile, ListedLfs, hub_file

    assert hub_file(ListedFile("x.gguf")) is None
    assert hub_file(ListedFile("x.gguf", -1)) is None
    assert hub_file(ListedFile("x.gguf", 134, ListedLfs("A" * 64, None, 99))) == HubFile(
        path="x.gguf", size_bytes=99, sha256="a" * 64
    )


class answering:
    """A server that gives each connection these bytes; with none it keeps silent."""

    def __init__(self, answer: bytes) -> None:
        self._answer = answer
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._open: list[socket.socket] = []
        self._thread = threading.Thread(target=self._serve)

    def __enter__(self) -> str:
        self._thread.start()
        return f"http://127.0.0.1:{self._socket.getsockname()[1]}"

    def __exit__(self, *_fault: object) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join(5)
        self._socket.close()
        for each in self._open:
            each.close()

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self._socket.accept()
            except OSError:
                return
            self._open.append(client)
            if self._answer:
                client.recv(65536)
                client.sendall(self._answer)
                client.shutdown(socket.SHUT_WR)
