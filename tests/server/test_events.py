"""Events, leases, and the end of a service that nobody needs."""

import asyncio
from pathlib import Path

import pytest

from octavo.core.client.types import Lease
from octavo.core.events import ActionTaken, ChatChanged, FiguresSampled, ModelLoaded
from octavo.server import hub as hubs
from octavo.server.hub import Hub
from octavo.server.leases import nobody_needs
from octavo.server.service import holders
from tests.fakes import MODEL
from tests.server.support import in_loop, served, until


@in_loop
async def test_events_reach_every_follower(octavo_home: Path) -> None:
    async with served(octavo_home) as at:
        follower = at.client.events()
        first = asyncio.ensure_future(anext(follower))
        await until(lambda: len(at.studio.hub._followers) == 1)
        at.studio.hub.publish(ActionTaken(text="흐름 🫩"))
        assert await first == ActionTaken(text="흐름 🫩")
        await follower.aclose()
        await until(lambda: not at.studio.hub._followers)


@in_loop
async def test_the_public_door_tells_nothing_of_chats(octavo_home: Path) -> None:
    async with served(octavo_home) as at, at.public.stream("GET", "/api/v1/events") as response:
        await until(lambda: len(at.studio.hub._followers) == 1)
        at.studio.hub.publish(ChatChanged(chat="secret"))
        at.studio.hub.publish(ActionTaken(text="open"))
        assert b"open" in await anext(response.aiter_bytes())


@in_loop
async def test_a_slow_follower_loses_figures_but_no_facts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hubs, "QUEUE_LIMIT", 4)
    hub = Hub()
    stream = hub.follow()
    first = asyncio.ensure_future(anext(stream))
    await asyncio.sleep(0)
    figures = FiguresSampled(at=0, instances=[], memory_total_bytes=1, memory_available_bytes=1)
    for number in range(3):
        hub.publish(ActionTaken(text=str(number)))
        for _ in range(10):
            hub.publish(figures)
    got = [await first]
    hub.close()
    got += [frame async for frame in stream]
    assert sum(b"action_taken" in frame for frame in got) == 3 and len(got) <= 4


@in_loop
async def test_a_follower_that_would_miss_facts_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hubs, "QUEUE_LIMIT", 4)
    hub = Hub()
    stream = hub.follow()
    first = asyncio.ensure_future(anext(stream))
    await asyncio.sleep(0)
    for number in range(50):
        hub.publish(ActionTaken(text=str(number)))
    assert first.done() or await first
    assert len([frame async for frame in stream]) < 10


@in_loop
async def test_publishing_from_another_thread_is_safe() -> None:
    hub = Hub()
    stream = hub.follow()
    first = asyncio.ensure_future(anext(stream))
    await asyncio.sleep(0)
    await asyncio.to_thread(hub.publish, ActionTaken(text="x"))
    assert b"action_taken" in await first
    await stream.aclose()


@in_loop
async def test_a_lease_ends_with_its_stream_and_takes_its_models_along(octavo_home: Path) -> None:
    async with served(octavo_home) as at:
        stream = at.client.events(lease="window")
        lease = await anext(stream)
        assert isinstance(lease, Lease) and at.studio.leases.kinds() == ["window"]
        await at.client.load(MODEL, {"context": 512}, lease=lease.lease)
        seen = await anext(stream)
        while not isinstance(seen, ModelLoaded):
            seen = await anext(stream)
        assert at.runtime.loads == [(MODEL, {"context": 512}, lease.lease)]
        await stream.aclose()
        await until(lambda: at.runtime.released == [lease.lease])
        assert at.studio.leases.kinds() == [] and at.runtime.instances() == []


@in_loop
async def test_who_keeps_the_service(octavo_home: Path) -> None:
    async with served(octavo_home) as at:

        class Door:
            in_flight = 0

        def kept_by() -> list[str]:
            return holders(at.studio, Door())  # type: ignore[arg-type]

        assert kept_by() == ["public port"]
        await at.studio.public.close()
        assert kept_by() == []
        await at.client.load(MODEL, ttl_s=60)
        assert kept_by() == []
        await at.client.load("acme/kept")
        assert kept_by() == ["model acme/kept"]
        await at.client.unload("acme/kept")
        at.studio.leases.open("window")
        assert kept_by() == ["window"]


@in_loop
async def test_the_grace_begins_anew_with_each_holder() -> None:
    held: list[str] = ["window"]
    waiting = asyncio.create_task(nobody_needs(lambda: held, 0.2))
    await asyncio.sleep(0.4)
    assert not waiting.done()
    held.clear()
    await asyncio.sleep(0.12)
    held.append("again")
    await asyncio.sleep(0.3)
    assert not waiting.done()
    held.clear()
    await asyncio.wait_for(waiting, 2)
