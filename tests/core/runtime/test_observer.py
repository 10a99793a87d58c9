"""What the observer tells and keeps, with instances and a system that are made up."""

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from octavo.core.config.load_config import LoadConfig, LoadMode, Resolved
from octavo.core.engine.protocol import Figures, GaveBack, PagesDone
from octavo.core.errors import InstanceBusy, InvalidRequest, ModelNotFound, NoPageControl, SnapshotNotKept
from octavo.core.events import (
    ActionTaken,
    AnyEvent,
    MemoryGivenBack,
    MemorySampled,
    PinChanged,
    WarmProgressed,
)
from octavo.core.memory import probe
from octavo.core.memory.figures import KvFigures, ProcessFigures
from octavo.core.memory.layout import PageRange
from octavo.core.runtime.instance import Instance
from octavo.core.runtime.memory_log import KEPT_GIVEN_BACK, KEPT_REQUESTS, MemoryLog
from octavo.core.runtime.observer import Observer
from octavo.core.runtime.placing import identities
from tests.server.memory_values import PROCESS, REQUEST, SYSTEM

KV = KvFigures(used_cells=10, size_cells=100, size_bytes=1000, committed_bytes=100)


class FakeEngine:
    """A worker that moves no page, but says so."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.ended = asyncio.Event()
        self.figures: Figures | None = None
        self.figures_at = 0.0
        self.moves: list[tuple[str, list[PageRange]]] = []
        self.wait: asyncio.Event | None = None

    def count(self, tokens: int, disk: int) -> None:
        self.figures_at = time.monotonic()
        self.figures = Figures(KV, 1, 0, tokens, 0, disk_bytes_total=disk, major_faults_total=tokens)

    async def warm(self, ranges: list[PageRange], on_progress: Callable[[int, int], None]) -> PagesDone:
        total = sum(one.stop - one.start for one in ranges)
        for part in range(1, 101):
            on_progress(total * part // 100, total)
        return await self._done("warm", ranges)

    async def drop(self, ranges: list[PageRange]) -> PagesDone:
        return await self._done("drop", ranges)

    async def pin(self, ranges: list[PageRange]) -> PagesDone:
        return await self._done("pin", ranges)

    async def _done(self, verb: str, ranges: list[PageRange]) -> PagesDone:
        self.moves.append((verb, ranges))
        if self.wait is not None:
            await self.wait.wait()
        return PagesDone("r1", sum(one.stop - one.start for one in ranges), "touch", "no lock")


class FakeInstance:
    """What the observer asks of an instance; one request runs and two wait."""

    def __init__(
        self, name: str, path: Path, engine: FakeEngine, mode: LoadMode, publish: Callable[[AnyEvent], None]
    ) -> None:
        self.name = name
        self.model = SimpleNamespace(id=f"acme/{name}", path=path, size_bytes=path.stat().st_size)
        self.resolved = Resolved(LoadConfig(load_mode=mode), {})
        self.engine = engine
        self.ready = SimpleNamespace(page_control="", load_disk_bytes=5)
        self.report = None
        self.state, self.fault = "ready", ""
        self.file_identities = identities([str(path)])
        self.running, self.queued = 1, 2
        self.idle_since = 0.0
        self.memory = MemoryLog(name, f"acme/{name}", 0, publish)


class World:
    """An observer over made-up instances of a real file, and what it told."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.events: list[AnyEvent] = []
        self.instances: list[Instance] = []
        self.observer = Observer(lambda: self.instances, self.events.append)

    def add(self, name: str, pid: int = 7, mode: LoadMode = LoadMode.MMAP) -> "FakeInstance":
        """Load a model under a name."""
        made = FakeInstance(name, self.path, FakeEngine(pid), mode, self.events.append)
        self.instances.append(cast(Instance, made))
        return made

    def told(self, kind: type) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]


class System:
    """What is asked of the system, counted."""

    def __init__(self) -> None:
        self.gone: set[int] = set()
        self.samples = 0
        self.proportional: list[float] = []
        self.threads: set[int] = set()

    def process(self, pid: int) -> ProcessFigures | None:
        self.samples += 1
        self.threads.add(threading.get_ident())
        figures = msgspec.structs.replace(PROCESS, pid=pid, proportional_bytes=None)
        return None if pid in self.gone else figures

    def proportional_of(self, pid: int) -> int | None:
        self.proportional.append(time.monotonic())
        return None if pid in self.gone else 1000 + pid


@pytest.fixture
def system(monkeypatch: pytest.MonkeyPatch) -> System:
    """A system that knows every process."""
    made = System()
    monkeypatch.setattr(probe, "process", made.process)
    monkeypatch.setattr(probe, "proportional", made.proportional_of)
    monkeypatch.setattr(probe, "system", lambda: SYSTEM)
    return made


def play(path: Path, scene: Callable[[World], Awaitable[None]]) -> None:
    async def run() -> None:
        world = World(path)
        try:
            async with asyncio.timeout(30):
                await scene(world)
        finally:
            await world.observer.close()

    asyncio.run(run())


def test_a_sample_holds_each_process_and_its_rates(smollm2: Path, system: System) -> None:
    async def scene(world: World) -> None:
        one, two = world.add("one", 7), world.add("two", 8)
        system.gone.add(8)
        one.engine.count(0, 0)
        world.observer.sampled()
        await asyncio.sleep(0.3)
        one.engine.count(30, 3000)
        sample = world.observer.sampled()
        first, second = sample.instances
        assert sample.system == SYSTEM
        assert (first.instance, first.model, first.active, first.queued) == ("one", "acme/one", 1, 2)
        assert first.process is not None and first.process.pid == 7
        assert first.kv == KV
        assert 30 / 0.6 < first.tokens_per_s <= 30 / 0.3
        assert first.disk_bytes_per_s == pytest.approx(100 * first.tokens_per_s)
        assert (first.disk_bytes_per_token, first.major_faults_per_token) == (100.0, 1.0)
        assert second.process is None and second.kv is None and second.tokens_per_s == 0
        assert two.name == second.instance

    play(smollm2, scene)


def test_a_worker_that_died_has_no_process(smollm2: Path, system: System) -> None:
    async def scene(world: World) -> None:
        one = world.add("one")
        one.engine.count(5, 5)
        one.engine.ended.set()
        (found,) = world.observer.sampled().instances
        assert found.process is None and found.kv is None
        assert system.samples == 0

    play(smollm2, scene)


def test_the_newest_sample_serves_for_a_quarter_of_a_second(smollm2: Path, system: System) -> None:
    async def scene(world: World) -> None:
        world.add("one")
        first = world.observer.sampled()
        assert world.observer.sampled() is first
        await asyncio.sleep(0.26)
        assert world.observer.sampled() is not first
        assert system.samples == 2

    play(smollm2, scene)


def test_watching_raises_the_rate_at_once_and_leaving_lowers_it(smollm2: Path, system: System) -> None:
    async def scene(world: World) -> None:
        world.add("one")
        await world.observer.start()
        await asyncio.sleep(0.5)
        assert len(world.told(MemorySampled)) == 1
        assert system.proportional == []
        with world.observer.watch(residency=False):
            await asyncio.sleep(0.05)
            assert len(world.told(MemorySampled)) == 2
            await asyncio.sleep(2.1)
        watched = len(world.told(MemorySampled)) - 1
        assert 7 <= watched <= 10
        assert len(system.proportional) == 2  # at most every two seconds
        assert threading.get_ident() not in system.threads
        newest = world.told(MemorySampled)[-1].instances[0]
        assert newest.process.proportional_bytes == 1007
        assert newest.residency is None
        await asyncio.sleep(0.6)
        assert len(world.told(MemorySampled)) - 1 - watched <= 1

    play(smollm2, scene)


def test_maps_are_looked_at_only_while_somebody_watches_them(smollm2: Path, system: System) -> None:
    async def scene(world: World) -> None:
        for name in ("one", "two"):
            world.add(name)
        await world.observer.start()
        await asyncio.sleep(0.3)
        assert world.observer.history("one") == []
        with world.observer.watch(residency=False), world.observer.watch("acme/one"):
            while not world.observer.history("one"):
                await asyncio.sleep(0.02)
            assert world.observer.history("two") == []
        assert world.observer.history("two") == []
        with world.observer.watch():
            while not world.observer.history("two"):
                await asyncio.sleep(0.02)

    play(smollm2, scene)


def test_a_watched_map_is_looked_at_each_second(smollm2: Path, system: System) -> None:
    async def scene(world: World) -> None:
        world.add("one")
        await world.observer.start()
        with world.observer.watch("one"):
            seen: set[float] = set()
            ends = time.monotonic() + 3.3
            while time.monotonic() < ends:
                found = world.observer.sampled().instances[0].residency
                seen |= {found.at} if found else set()
                await asyncio.sleep(0.05)
        assert 3 <= len(seen) <= 4

    play(smollm2, scene)


def test_maps_and_files_go_with_the_instance(smollm2: Path, system: System) -> None:
    async def scene(world: World) -> None:
        one = world.add("one")
        snapshot = await world.observer.residency("one")
        assert await world.observer.residency("one", snapshot.generation) is snapshot
        with pytest.raises(SnapshotNotKept):
            await world.observer.residency("one", 99)
        track = world.observer._tracks[one]
        world.instances.clear()
        world.observer.forget(one)
        assert world.observer._tracks == {}
        assert track.map.summary() is None and track.map.history() == []
        with pytest.raises(ModelNotFound):
            world.observer.history("one")

    play(smollm2, scene)


def test_one_that_went_without_a_word_is_forgotten_by_the_next_sample(smollm2: Path, system: System) -> None:
    async def scene(world: World) -> None:
        world.add("one")
        await world.observer.residency("one")
        world.instances.clear()
        await asyncio.sleep(0.26)
        world.observer.sampled()
        assert world.observer._tracks == {}

    play(smollm2, scene)


def test_details_hold_what_was_noted(smollm2: Path, system: System) -> None:
    async def scene(world: World) -> None:
        one = world.add("one")
        one.memory.requests.append(REQUEST)
        one.memory.note_given_back(GaveBack("kv_tail", 1 << 20, "1 MiB of unused KV"))
        (found,) = await world.observer.details()
        assert found == msgspec.structs.replace(
            await world.observer.detail("acme/one"), process=found.process, residency=found.residency
        )
        assert found.process is not None and found.process.proportional_bytes == 1007
        assert found.requests == [REQUEST] and found.load_disk_bytes == 5
        assert [given.text for given in found.given_back] == ["1 MiB of unused KV"]
        assert found.layers[0].layer is None and found.layers[-1].layer == 29
        layout = await world.observer.layout("one")
        assert sum(layer.total_bytes for layer in found.layers) == sum(t.nbytes for t in layout.tensors)

    play(smollm2, scene)


def test_weights_in_private_memory_have_no_map(smollm2: Path, system: System) -> None:
    async def scene(world: World) -> None:
        world.add("one", mode=LoadMode.NONE)
        with pytest.raises(NoPageControl):
            await world.observer.residency("one")
        with pytest.raises(NoPageControl):
            await world.observer.warm("one")
        detail = await world.observer.detail("one")
        assert detail.residency is not None and detail.layers == []
        assert (detail.residency.resident_bytes, detail.residency.reason) == (
            None,
            "its weights were read into private memory",
        )
        assert (await world.observer.layout("one")).layers == list(range(30))

    play(smollm2, scene)


def test_a_warm_up_tells_how_far_it_is_but_not_too_often(smollm2: Path, system: System) -> None:
    async def scene(world: World) -> None:
        one = world.add("one")
        layout = await world.observer.layout("one")
        moved = await world.observer.warm("one", [3])
        assert one.engine.moves == [("warm", layout.ranges([3]))]
        told = world.told(WarmProgressed)
        assert len(told) == 2  # of a hundred within a moment: the first and the last
        assert told[-1].done_bytes == told[-1].total_bytes == moved.page_bytes
        assert moved.instance == "one" and 0 <= moved.seconds < 1
        assert moved.resident_before_bytes is not None
        assert one.idle_since > 0

    play(smollm2, scene)


def test_a_drop_names_whole_files_or_layers(smollm2: Path, system: System) -> None:
    async def scene(world: World) -> None:
        one = world.add("one")
        moved = await world.observer.drop("one")
        assert moved.page_bytes == smollm2.stat().st_size
        with pytest.raises(InvalidRequest):
            await world.observer.drop("one", [0, 30])
        assert len(one.engine.moves) == 1

    play(smollm2, scene)


def test_pins_add_up_and_are_let_go_of(smollm2: Path, system: System) -> None:
    async def scene(world: World) -> None:
        one, observer = world.add("one"), world.observer
        layout = await observer.layout("one")
        pin = await observer.pin("one", [1])
        assert pin is not None and (pin.layers, pin.kind, pin.reason) == ([1], "touch", "no lock")
        pin = await observer.pin("one", [0])
        assert pin is not None and pin.layers == [0, 1]
        assert one.engine.moves[-1] == ("pin", layout.ranges([0, 1]))
        assert (await observer.detail("one")).pin == pin
        pin = await observer.pin("one", [1, 7], is_on=False)
        assert pin is not None and pin.layers == [0]
        pin = await observer.pin("one")
        assert pin is not None and pin.layers is None
        assert await observer.pin("one", [5]) == pin
        pin = await observer.pin("one", [5], is_on=False)
        assert pin is not None and pin.layers == [layer for layer in range(-1, 30) if layer != 5]
        assert await observer.pin("one", is_on=False) is None
        assert one.engine.moves[-1] == ("pin", [])
        assert [event.pin and event.pin.layers for event in world.told(PinChanged)] == [
            [1],
            [0, 1],
            [0],
            None,
            [layer for layer in range(-1, 30) if layer != 5],
            None,
        ]

    play(smollm2, scene)


@pytest.mark.parametrize("state", ["loading", "crashed", "unloading"])
def test_pages_of_a_model_that_does_not_answer_are_not_moved(
    smollm2: Path, system: System, state: str
) -> None:
    async def scene(world: World) -> None:
        world.add("one").state = state
        for move in (world.observer.warm, world.observer.drop, world.observer.pin):
            with pytest.raises(InstanceBusy):
                await move("one")

    play(smollm2, scene)


def test_a_system_that_moves_no_pages_says_why(smollm2: Path, system: System) -> None:
    async def scene(world: World) -> None:
        one = world.add("one")
        one.ready.page_control = "not on this system"
        with pytest.raises(NoPageControl, match="not on this system"):
            await world.observer.drop("one")
        assert (await world.observer.detail("one")).page_control == "not on this system"

    play(smollm2, scene)


def test_what_is_given_back_is_told_logged_and_kept(caplog: pytest.LogCaptureFixture) -> None:
    events: list[AnyEvent] = []
    log = MemoryLog("mine", "acme/one", 0, events.append)
    with caplog.at_level("INFO", "octavo.core.runtime.memory_log"):
        log.note_given_back(GaveBack("kv_tail", 708 << 20, "708 MiB of unused KV"))
    given, action = events
    assert isinstance(given, MemoryGivenBack) and isinstance(action, ActionTaken)
    assert (given.instance, given.model, given.given.freed_bytes) == ("mine", "acme/one", 708 << 20)
    assert action.text == "mine gave back 708 MiB of unused KV."
    assert caplog.messages == ["mine gave back 708 MiB of unused KV"]
    for number in range(KEPT_GIVEN_BACK):
        log.note_given_back(GaveBack("kv_tail", number, "more"))
        log.requests.append(REQUEST)
    assert [given.freed_bytes for given in log.given_back] == list(range(KEPT_GIVEN_BACK))
    assert len(log.requests) == KEPT_REQUESTS
