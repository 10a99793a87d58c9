"""The client of the service over both of its ways: a Unix socket, and loopback with a token."""

import asyncio
import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
import pytest

from octavo.core.chats.types import ReplyEnded, ReplySnapshot
from octavo.core.client import ServiceClient
from octavo.core.client.endpoint import read_endpoint
from octavo.core.client.stream import event_bytes
from octavo.core.client.types import ChatPiece, Lease
from octavo.core.errors import (
    ChatNotFound,
    ContextLengthExceeded,
    ModelNotFound,
    ServiceUnavailable,
    Unauthorized,
    WorkerCrashed,
)
from octavo.core.events import ModelLoaded, ModelUnloaded
from tests.fakes import MODEL
from tests.server.support import Served, in_loop, raises, served, until


@pytest.fixture(params=["unix", "loopback"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Run the test over each way to the control door."""
    monkeypatch.setenv("OCTAVO_CONTROL", request.param)
    return str(request.param)


@asynccontextmanager
async def connected(folder: Path) -> AsyncIterator[tuple[Served, ServiceClient]]:
    async with served(folder) as at, await ServiceClient.connect(at.home) as client:
        yield at, client


@in_loop
async def test_models_load_and_unload(octavo_home: Path, way: str) -> None:
    async with connected(octavo_home) as (at, client):
        loaded = await client.load(MODEL, {"context": 512}, identifier="x", ttl_s=5)
        assert loaded.instance_id == "x" and at.runtime.loads[0][1] == {"context": 512}
        (status,) = await client.instances()
        assert (status.instance, status.model, status.ttl_s) == ("x", MODEL, 5)
        assert (await client.figures()).memory_total_bytes == 2
        assert (await client.unload("x")).came_back and await client.instances() == []
        assert await client.models() == []
        assert read_endpoint(at.home).kind == way


@in_loop
async def test_events_and_leases(octavo_home: Path, way: str) -> None:
    async with connected(octavo_home) as (at, client):
        stream = client.events(lease="window")
        assert isinstance(await anext(stream), Lease)
        await client.load(MODEL)
        await client.unload(MODEL)
        kinds = [type(await anext(stream)) for _ in range(4)]
        assert ModelLoaded in kinds and kinds[-1] is ModelUnloaded
        await stream.aclose()
        await until(lambda: at.studio.leases.kinds() == [])


@in_loop
async def test_chats_and_replies(octavo_home: Path, way: str) -> None:
    async with connected(octavo_home) as (_at, client):
        chat = await client.create_chat(title="t", model=MODEL)
        started = await client.reply(chat.id, "hi")
        events = [event async for event in client.follow(started.reply)]
        assert isinstance(events[0], ReplySnapshot) and isinstance(events[-1], ReplyEnded)
        again = await client.reply(chat.id)
        assert again.user_message is None and again.message != started.message
        await client.stop_reply(again.reply)
        assert len(await client.chats()) == 1
        await client.delete_chat(chat.id)
        await raises(ChatNotFound, client.chat(chat.id))


@in_loop
async def test_a_streamed_answer(octavo_home: Path, way: str) -> None:
    async with connected(octavo_home) as (at, client):
        at.runtime.script = ["Hel", "lo\u2028🫩"]
        turns = [{"role": "user", "content": "hi"}]
        pieces = [piece async for piece in client.complete_chat(MODEL, turns, temperature=0)]
        assert "".join(piece.text for piece in pieces) == "Hello\u2028🫩"
        assert pieces[-2].finish_reason == "stop" and pieces[-1].usage
        assert isinstance(pieces[0], ChatPiece)
        at.runtime.script = ["Hel", WorkerCrashed("It died.", model=MODEL)]
        stream = client.complete_chat(MODEL, turns)
        fault = await raises(WorkerCrashed, _drained(stream))
        assert fault.details == {} and fault.message == "It died."


@in_loop
async def test_errors_come_back_as_they_were(octavo_home: Path, way: str) -> None:
    async with connected(octavo_home) as (at, client):
        at.runtime.refusal = ContextLengthExceeded("Too long.", hint="Cut.", n_prompt_tokens=9, n_ctx=8)
        fault = await raises(ContextLengthExceeded, client.load(MODEL))
        assert (fault.message, fault.hint) == ("Too long.", "Cut.")
        assert fault.details == {"n_prompt_tokens": 9, "n_ctx": 8}
        at.runtime.refusal = None
        assert (await raises(ModelNotFound, client.unload("x"))).details == {"candidates": []}


@in_loop
async def test_a_service_that_goes_is_unavailable(octavo_home: Path, way: str) -> None:
    async with served(octavo_home) as at:
        client = await ServiceClient.connect(at.home)
        stream = client.events(lease="window")
        await anext(stream)
    with pytest.raises((ServiceUnavailable, StopAsyncIteration)):
        await anext(stream)
    await raises(ServiceUnavailable, client.health())
    await raises(ServiceUnavailable, ServiceClient.connect(at.home))
    await client.aclose()


@in_loop
async def test_loopback_asks_for_the_token(octavo_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OCTAVO_CONTROL", "loopback")
    async with served(octavo_home) as at:
        endpoint = read_endpoint(at.home)
        token = Path(endpoint.token_file or "")
        assert stat.S_IMODE(token.stat().st_mode) == 0o600
        async with httpx2.AsyncClient(base_url=f"http://{endpoint.address}", trust_env=False) as stranger:
            assert (await stranger.get("/health")).status_code == 401
            wrong = {"Authorization": "Bearer " + "x" * 43}
            assert (await stranger.get("/api/v1/settings", headers=wrong)).status_code == 401
        token.write_text("wrong")
        await raises(Unauthorized, ServiceClient.connect(at.home))


def test_answers_of_another_version_are_an_error_not_a_crash() -> None:
    async def scenario(answer: httpx2.Response) -> None:
        transport = httpx2.MockTransport(lambda request: answer)
        http = httpx2.AsyncClient(transport=transport, base_url="http://x")
        async with ServiceClient(http) as client:
            await raises(Exception, client.health())

    for answer in (
        httpx2.Response(200, content=b"<html>"),
        httpx2.Response(500, content=b"oops"),
        httpx2.Response(404, json={"error": "text only"}),
        httpx2.Response(200, json={"status": 1}),
    ):
        asyncio.run(scenario(answer))


def test_comments_are_skipped_and_done_ends() -> None:
    async def chunks() -> AsyncIterator[bytes]:
        yield b": hello\n\ndata: 1\n"
        yield b"\n: x\n\ndata:2\n\ndata: [DONE]\n\ndata: 3\n\n"

    async def read() -> list[bytes]:
        return [data async for data in event_bytes(chunks())]

    assert asyncio.run(read()) == [b"1", b"2"]


async def _drained(stream: AsyncIterator[object]) -> None:
    async for _piece in stream:
        continue
