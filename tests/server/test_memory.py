"""The routes of the memory, their stream, and what of it the other streams are told."""

import asyncio
import json
from pathlib import Path

import pytest

from octavo.core.errors import InvalidRequest, ModelNotFound, PagesArePinned, SnapshotNotKept
from octavo.core.events import (
    ActionTaken,
    AnyEvent,
    ChatChanged,
    MemoryGivenBack,
    PinChanged,
    WarmProgressed,
)
from octavo.core.memory.figures import GivenBack
from octavo.server import hub as hubs
from octavo.server.hub import Hub
from tests.fake_observer import LAYOUT, snapshot
from tests.fakes import MODEL
from tests.server.memory_values import AT, MIB, SYSTEM, detail_of, memory_of, sample
from tests.server.support import Served, in_loop, raises, served, until

GIVEN = GivenBack(at=AT, kind="kv_tail", freed_bytes=MIB, text="1 MiB of unused KV")
SLASHED = "acme/deep/name"

TOLD = MemoryGivenBack(instance=MODEL, model=MODEL, given=GIVEN)
WARMED = WarmProgressed(instance=MODEL, model=MODEL, done_bytes=1, total_bytes=2)
UNPINNED = PinChanged(instance=MODEL, model=MODEL, pin=None)


@in_loop
async def test_all_that_is_known_of_one_and_of_all(octavo_home: Path) -> None:
    async with served(octavo_home) as at:
        await at.client.load(MODEL)
        await at.client.load("acme/other", identifier=SLASHED)
        told = await at.client.memory()
        assert told.system == SYSTEM
        assert [detail.instance for detail in told.instances] == [MODEL, SLASHED]
        assert await at.client.memory_of(SLASHED) == detail_of(SLASHED)
        assert await at.client.memory_of(MODEL) == told.instances[0]
        over_http = await at.public.get(f"/api/v1/memory/{SLASHED}")
        assert over_http.json()["instance"] == SLASHED


@in_loop
async def test_names_may_look_like_routes(octavo_home: Path) -> None:
    async with served(octavo_home) as at:
        for name in ("pub/layout", "a/warm", "stream/residency"):
            await at.client.load(MODEL, identifier=name)
            assert await at.client.memory_layout(name) == LAYOUT
            assert (await at.client.warm(name)).instance == name
            assert await at.client.residency(name)


@in_loop
async def test_what_is_not_loaded_is_404_everywhere(octavo_home: Path) -> None:
    async with served(octavo_home) as at:
        for path in ("", "/layout", "/residency", "/history"):
            assert (await at.public.get(f"/api/v1/memory/no/pe{path}")).status_code == 404
        for move in ("warm", "drop", "pin"):
            answer = await at.public.post(f"/api/v1/memory/no/pe/{move}")
            assert answer.status_code == 404 and answer.json()["error"]["code"] == "model_not_found"
        await raises(ModelNotFound, at.client.memory_of("nope"))
        assert (await at.public.post("/api/v1/memory/nope/melt")).status_code == 405
        assert (await at.public.delete("/api/v1/memory")).status_code == 405


@in_loop
async def test_a_map_is_bytes_and_said_once(octavo_home: Path) -> None:
    async with served(octavo_home) as at:
        await at.client.load(MODEL)
        route = f"/api/v1/memory/{MODEL}/residency"
        answer = await at.public.get(route)
        assert answer.content == bytes([254, 127, 255])
        assert answer.headers["content-type"] == "application/octet-stream"
        about = {name: answer.headers[f"octavo-{name}"] for name in ("generation", "at", "cells")}
        assert about == {"generation": "3", "at": f"{AT + 3:.3f}", "cells": "3"}
        assert answer.headers["octavo-resident-bytes"] == "unknown"
        for known in (
            {"If-None-Match": answer.headers["etag"]},
            {"If-None-Match": '"x", ' + answer.headers["etag"]},
        ):
            again = await at.public.get(route, headers=known)
            assert again.status_code == 304 and not again.content
            assert again.headers["octavo-generation"] == "3"
        assert (await at.public.get(route, headers={"If-None-Match": '"3"'})).status_code == 200
        assert (await at.public.get(f"{route}?since=3")).status_code == 304
        assert (await at.public.get(f"{route}?since=2")).status_code == 200
        refused = await at.public.get(f"{route}?since=x")
        assert refused.status_code == 400 and refused.json()["error"]["param"] == "since"


@in_loop
async def test_a_client_reads_maps_and_kept_ones(octavo_home: Path) -> None:
    async with served(octavo_home) as at:
        await at.client.load(MODEL)
        assert await at.client.residency(MODEL) == (3, snapshot().cells.tobytes())
        assert await at.client.residency(MODEL, 3) is None
        assert await at.client.residency(MODEL, 2) is not None
        kept = await at.client.residency_history(MODEL)
        assert [(each.generation, each.at) for each in kept] == [(one, AT + one) for one in (1, 2, 3)]
        first = await at.client.residency(MODEL, generation=1)
        assert first is not None and first[0] == 1
        await raises(SnapshotNotKept, at.client.residency(MODEL, generation=99))


@in_loop
async def test_pages_move_as_asked(octavo_home: Path) -> None:
    async with served(octavo_home) as at:
        await at.client.load(MODEL)
        warmed = await at.client.warm(MODEL, [0, 1])
        assert (warmed.resident_before_bytes, warmed.resident_after_bytes) == (0, 2 * MIB)
        await at.client.drop(MODEL)
        pin = await at.client.pin(MODEL, [1])
        assert pin and pin.kind == "mlock" and (await at.client.memory_of(MODEL)).pin == pin
        assert await at.client.pin(MODEL, is_on=False) is None
        plain = await at.public.post(f"/api/v1/memory/{MODEL}/pin", json={"layers": None, "on": None})
        assert plain.json()["pin"]["pinned_bytes"] == 2 * MIB
        moves = [(verb, layers) for verb, _instance, layers in at.runtime.observer.moves]
        assert moves == [("warm", [0, 1]), ("drop", None), ("pin", [1]), ("unpin", None), ("pin", None)]
        at.runtime.observer.refusal = PagesArePinned("They are pinned.")
        await raises(PagesArePinned, at.client.drop(MODEL, [1]))


@pytest.mark.parametrize("layers", [[], [-2], "0-3", [1.5]])
def test_layers_that_cannot_be_are_refused(octavo_home: Path, layers: object) -> None:
    @in_loop
    async def scenario() -> None:
        async with served(octavo_home) as at:
            await at.client.load(MODEL)
            for move in ("warm", "drop", "pin"):
                await raises(InvalidRequest, getattr(at.client, move)(MODEL, layers))
            assert not at.runtime.observer.moves

    scenario()


@in_loop
async def test_a_client_that_leaves_stops_its_warm_up(octavo_home: Path) -> None:
    async with served(octavo_home) as at:
        await at.client.load(MODEL)
        at.runtime.observer.move_wait = asyncio.Event()
        warming = asyncio.create_task(at.client.warm(MODEL))
        await until(lambda: bool(at.runtime.observer.moves))
        warming.cancel()
        await until(lambda: at.runtime.observer.cancelled == 1, 2)


@in_loop
async def test_the_stream_watches_while_it_is_open(octavo_home: Path) -> None:
    async with served(octavo_home) as at:
        await at.client.load(MODEL)
        for residency in (False, True):
            stream = at.client.memory_stream(residency=residency)
            assert await anext(stream) == at.runtime.observer.sampled()
            assert at.runtime.observer.watchers == [(None, residency)]
            for event in (ActionTaken(text="no"), ChatChanged(chat="no"), TOLD, WARMED, UNPINNED, sample()):
                at.studio.hub.publish(event)
            assert [await anext(stream) for _ in range(4)] == [TOLD, WARMED, UNPINNED, sample()]
            await stream.aclose()
            await until(lambda: not at.runtime.observer.watchers and not at.studio.hub._followers)


@in_loop
async def test_a_stream_over_the_public_port_ends_with_its_client(octavo_home: Path) -> None:
    async with served(octavo_home) as at:
        async with at.public.stream("GET", "/api/v1/memory/stream?residency=0") as response:
            assert b"memory_sampled" in await anext(response.aiter_bytes())
            assert at.runtime.observer.watchers == [(None, False)]
        await until(lambda: not at.runtime.observer.watchers)


@in_loop
async def test_the_stream_ends_with_the_service(octavo_home: Path) -> None:
    async with served(octavo_home) as at:
        stream = at.client.memory_stream()
        await anext(stream)
        at.studio.stop()
        assert [event async for event in stream] == []
        await until(lambda: not at.runtime.observer.watchers)


@in_loop
async def test_looking_holds_no_service(octavo_home: Path) -> None:
    async with served(octavo_home) as at:
        stream = at.client.memory_stream()
        await anext(stream)
        await at.studio.public.close()
        assert at.studio.leases.kinds() == []
        await stream.aclose()


@pytest.mark.parametrize("lease", ["?lease=window", ""])
def test_samples_go_to_nobody_who_follows_the_news(octavo_home: Path, lease: str) -> None:
    @in_loop
    async def scenario() -> None:
        async with served(octavo_home) as at:
            assert await _first_kinds(at, lease) == ["memory_given_back", "pin_changed", "warm_progressed"]

    scenario()


async def _first_kinds(at: Served, lease: str) -> list[str]:
    """Publish samples among facts, and give the kinds of the first three events that come."""
    kinds: list[str] = []
    async with at.control.stream("GET", f"/api/v1/events{lease}") as response:
        await until(lambda: len(at.studio.hub._followers) == 1)
        for event in (sample(), TOLD, sample(), UNPINNED, sample(), WARMED):
            at.studio.hub.publish(event)
        async for line in response.aiter_lines():
            kind = json.loads(line[6:])["event"] if line.startswith("data: ") else "lease"
            kinds += [kind] if kind != "lease" else []
            if len(kinds) == 3:
                break
    return kinds


@in_loop
async def test_a_slow_follower_loses_samples_and_progress_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hubs, "QUEUE_LIMIT", 4)
    hub = Hub()
    stream = hub.follow(lambda event: isinstance(event, hubs.MEMORY))
    first = asyncio.ensure_future(anext(stream))
    await asyncio.sleep(0)
    fleeting: list[AnyEvent] = [sample(memory_of("m")), WARMED]
    for _ in range(3):
        hub.publish(TOLD)
        for event in fleeting * 5:
            hub.publish(event)
    got = [await first]
    hub.close()
    got += [frame async for frame in stream]
    assert sum(b"memory_given_back" in frame for frame in got) == 3 and len(got) <= 4


def test_a_sample_of_many_models_is_small() -> None:
    models = [memory_of(f"acme/model-{number}") for number in range(8)]
    assert len(hubs.frame_of(sample(*models))) < 10_000
