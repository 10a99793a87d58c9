"""Watches the memory of the machine and of every loaded model; often while somebody looks, else seldom."""

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from octavo.core.errors import ModelNotFound
from octavo.core.events import MemorySampled, Publish
from octavo.core.memory import probe
from octavo.core.memory.figures import (
    InstanceMemory,
    KvFigures,
    MemoryDetail,
    PagesMoved,
    Pin,
    ProcessFigures,
    SystemFigures,
)
from octavo.core.memory.layout import MapLayout
from octavo.core.runtime.clock import Clock
from octavo.core.runtime.instance import Instance
from octavo.core.runtime.page_moves import PageMoves
from octavo.core.runtime.rates import Meter
from octavo.core.runtime.residency_maps import ResidencyMap

if TYPE_CHECKING:  # numpy is for who looks at a map
    from octavo.core.memory.residency import Snapshot

WATCHED_S = 0.25
QUIET_S = 2.0
SCAN_EVERY_S = 1.0
PROPORTIONAL_EVERY_S = 2.0


@dataclass(frozen=True, slots=True)
class _Reading:
    """What the system told at one time (monotonic); a process that is gone has no figures."""

    at: float
    system: SystemFigures
    processes: dict[int, ProcessFigures | None]
    proportional: dict[int, int | None]


@dataclass(frozen=True, slots=True, eq=False)
class _Watcher:
    """Somebody who looks: at one instance or, with None, at all; with ``residency`` also at its pages."""

    instance: str | None
    residency: bool

    def wants(self, instance: Instance) -> bool:
        """Whether the pages of this instance are to be looked at."""
        return self.residency and self.instance in (None, instance.name, instance.model.id)


class _Track:
    """What is kept of one instance while it is observed."""

    def __init__(self, instance: Instance, publish: Publish) -> None:
        self.meter = Meter()
        self.map = ResidencyMap(instance)
        self.moves = PageMoves(instance, self.map, publish)
        self._proportional: tuple[float, int, int | None] = float("-inf"), 0, None  # at, pid, bytes

    def is_due(self, pid: int, now: float) -> bool:
        """Whether the proportional set may be asked for again."""
        at, known, _ = self._proportional
        return known != pid or now - at >= PROPORTIONAL_EVERY_S

    def process(self, pid: int, reading: _Reading) -> ProcessFigures | None:
        """Give the process's figures with its newest proportional set, unless that is of a time long ago."""
        if pid in reading.proportional:
            self._proportional = reading.at, pid, reading.proportional[pid]
        at, known, proportional = self._proportional
        found = reading.processes.get(pid)
        if found is None or known != pid or reading.at - at > PROPORTIONAL_EVERY_S + WATCHED_S:
            return found
        return msgspec.structs.replace(found, proportional_bytes=proportional)


class Observer:
    """Samples, maps of pages, and what may be done with pages; belongs to the runtime's event loop.

    Where ``instance`` is asked for, it is an instance's name or the id of a loaded model; anything else
    raises ``ModelNotFound``.
    """

    def __init__(self, instances: Callable[[], Sequence[Instance]], publish: Publish) -> None:
        self._instances = instances
        self._publish = publish
        self._tracks: dict[Instance, _Track] = {}
        self._watchers: list[_Watcher] = []
        self._newest: tuple[float, MemorySampled] | None = None
        self._samples = Clock("memory samples", self._sample, self._period_s)
        self._scans = Clock("residency maps", self._scan_watched, self._scan_period_s)

    async def start(self) -> None:
        """Begin to sample."""
        self._samples.start()
        self._scans.start()

    async def close(self) -> None:
        """End sampling and let go of all that was kept."""
        await self._samples.close()
        await self._scans.close()
        for instance in list(self._tracks):
            self.forget(instance)

    def forget(self, instance: Instance) -> None:
        """Let go of what was kept of an instance that is no more."""
        track = self._tracks.pop(instance, None)
        if track is not None:
            track.map.close()

    @contextmanager
    def watch(self, instance: str | None = None, *, residency: bool = True) -> Iterator[None]:
        """Have samples taken four times a second while this lasts, instead of every two seconds.

        With ``residency``, the pages of this instance (None: of all) are looked at once a second, too.
        """
        watcher = _Watcher(instance, residency)
        self._watchers.append(watcher)
        self._samples.wake()
        self._scans.wake()
        try:
            yield
        finally:
            self._watchers.remove(watcher)

    # ---- samples

    def sampled(self) -> MemorySampled:
        """Give the newest sample, taken now when it is older than a quarter of a second."""
        known = self._newest
        if known is not None and time.monotonic() - known[0] < WATCHED_S:
            return known[1]
        return self._note(_read(self._pids()))

    async def details(self) -> list[MemoryDetail]:
        """Give all that is known of every instance, the proportional sets and maps of now included."""
        instances = list(self._instances())
        sample = await self._take(instances)
        return [await self._detail(one, sample) for one in instances if one in self._tracks]

    async def detail(self, instance: str) -> MemoryDetail:
        """Give all that is known of one instance."""
        sample = await self._take([self._named(instance)])
        return await self._detail(self._named(instance), sample)

    # ---- pages

    async def layout(self, instance: str) -> MapLayout:
        """Give where the tensors lie in a model's files, and the cells of its map."""
        return await self._track_of(instance).map.layout()

    async def residency(self, instance: str, generation: int | None = None) -> "Snapshot":
        """Give the newest map, made now when it is older than a second, or one that is kept.

        Raises ``SnapshotNotKept``, and ``NoPageControl`` for weights that are private memory.
        """
        pages = self._track_of(instance).map
        return await pages.newest() if generation is None else pages.kept(generation)

    def history(self, instance: str) -> list[tuple[int, float]]:
        """Give (generation, seconds since the epoch) of the maps that are kept, oldest first."""
        return self._track_of(instance).map.history()

    async def warm(self, instance: str, layers: list[int] | None = None) -> PagesMoved:
        """Bring pages into memory; see ``PageMoves`` for the errors. Cancelling the call stops it."""
        return await self._track_of(instance).moves.warm(layers)

    async def drop(self, instance: str, layers: list[int] | None = None) -> PagesMoved:
        """Drop pages from memory; raises ``PagesArePinned`` for those that are kept."""
        return await self._track_of(instance).moves.drop(layers)

    async def pin(self, instance: str, layers: list[int] | None = None, *, is_on: bool = True) -> Pin | None:
        """Keep pages in memory beside those that are kept already, or let go of them; give what is kept."""
        return await self._track_of(instance).moves.pin(layers, is_on=is_on)

    # ---- finding

    def _named(self, name: str) -> Instance:
        instances = {one.name: one for one in self._instances()}
        found = instances.get(name) or next((one for one in instances.values() if one.model.id == name), None)
        if found is None:
            raise _unknown(name, instances)
        return found

    def _track_of(self, name: str) -> _Track:
        return self._track(self._named(name))

    def _track(self, instance: Instance) -> _Track:
        if instance not in self._tracks:
            self._tracks[instance] = _Track(instance, self._publish)
        return self._tracks[instance]

    def _pids(self) -> list[int]:
        return [pid for one in self._instances() if (pid := pid_of(one)) is not None]

    # ---- sampling

    def _period_s(self) -> float:
        return WATCHED_S if self._watchers else QUIET_S

    def _scan_period_s(self) -> float | None:
        """Give the time between two looks at the maps: none without a watcher, longer for large models."""
        if not any(watcher.residency for watcher in self._watchers):
            return None
        return max([SCAN_EVERY_S, *(track.map.rest_s for track in self._tracks.values())])

    async def _sample(self) -> None:
        self._publish(await self._take(self._instances() if self._watchers else ()))

    async def _take(self, proportional_of: Iterable[Instance]) -> MemorySampled:
        """Take a sample off the event loop, with the proportional sets of these, where they are due."""
        now = time.monotonic()
        pids = ((pid_of(one), self._track(one)) for one in proportional_of)
        due = [pid for pid, track in pids if pid is not None and track.is_due(pid, now)]
        return self._note(await asyncio.to_thread(_read, self._pids(), due))

    def _note(self, reading: _Reading) -> MemorySampled:
        for gone in set(self._tracks).difference(self._instances()):
            self.forget(gone)
        sample = MemorySampled(
            at=time.time(),
            system=reading.system,
            instances=[self._memory(one, reading) for one in self._instances()],
        )
        self._newest = reading.at, sample
        return sample

    def _memory(self, instance: Instance, reading: _Reading) -> InstanceMemory:
        track, pid = self._track(instance), pid_of(instance)
        figures = instance.engine.figures if instance.engine and pid is not None else None
        rates = track.meter.after(reading.at, pid, figures)
        return InstanceMemory(
            instance=instance.name,
            model=instance.model.id,
            process=track.process(pid, reading) if pid is not None else None,
            kv=_aged(instance) if figures else None,
            tokens_total=figures.tokens_total if figures else 0,
            tokens_per_s=rates.tokens_per_s,
            disk_bytes_per_s=rates.disk_bytes_per_s,
            disk_bytes_per_token=rates.disk_bytes_per_token,
            major_faults_per_token=rates.major_faults_per_token,
            active=instance.running,
            queued=instance.queued,
            residency=track.map.summary(),
            pin=instance.memory.pin,
            state=instance.state,
            fault=instance.fault,
        )

    # ---- maps

    async def _scan_watched(self) -> None:
        for instance in list(self._instances()):
            if any(watcher.wants(instance) for watcher in self._watchers):
                # the age counts from a scan's end and the clock from its start
                await self._track(instance).map.look(SCAN_EVERY_S / 2)

    async def _detail(self, instance: Instance, sample: MemorySampled) -> MemoryDetail:
        memory = {one.instance: one for one in sample.instances}.get(instance.name)
        if memory is None:  # it was loaded while the sample was taken
            raise _unknown(instance.name, [one.instance for one in sample.instances])
        pages = self._track(instance).map
        await pages.look(SCAN_EVERY_S)
        fields = msgspec.structs.asdict(memory) | {"residency": pages.summary()}
        log, report, ready = instance.memory, instance.report, instance.ready
        return MemoryDetail(
            **fields,
            predicted=report.estimate.components if report else None,
            actual=log.actual,
            layers=pages.by_layer(),
            requests=list(log.requests),
            given_back=list(log.given_back),
            load_disk_bytes=ready.load_disk_bytes if ready else None,
            page_control=ready.page_control if ready else "",
        )


def _aged(instance: Instance) -> KvFigures | None:
    """Give the newest figures of the cache with the time since then: an idle worker tells nothing new."""
    engine = instance.engine
    if engine is None or engine.figures is None:
        return None
    age_s, kv = time.monotonic() - engine.figures_at, engine.figures.kv
    slots = [
        slot if slot.idle_s is None else msgspec.structs.replace(slot, idle_s=slot.idle_s + age_s)
        for slot in kv.slots
    ]
    return msgspec.structs.replace(kv, slots=slots)


def _unknown(name: str, loaded: Iterable[str]) -> ModelNotFound:
    return ModelNotFound(
        f"Nothing is loaded under the name {name!r}.",
        hint="octavo ps lists what is.",
        candidates=list(loaded),
    )


def pid_of(instance: Instance) -> int | None:
    """Give the process of an instance's worker, while it lives."""
    engine = instance.engine
    return engine.pid if engine is not None and not engine.ended.is_set() else None


def _read(pids: Iterable[int], proportional_of: Iterable[int] = ()) -> _Reading:
    """Ask the system; blocks for well under 2 ms a process, and for longer for each proportional set."""
    return _Reading(
        at=time.monotonic(),
        system=probe.system(),
        processes={pid: probe.process(pid) for pid in pids},
        proportional={pid: probe.proportional(pid) for pid in proportional_of},
    )
