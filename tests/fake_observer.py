"""The observer's stand-in: fixed figures of what the fake runtime has loaded, and what it was asked to do."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from octavo.core.errors import ModelNotFound, OctavoError, SnapshotNotKept
from octavo.core.events import InstanceStatus, MemorySampled, PinChanged, Publish, WarmProgressed
from octavo.core.memory.figures import MemoryDetail, PagesMoved, Pin
from octavo.core.memory.layout import MapLayout, MapTensor
from octavo.core.memory.residency import Snapshot
from tests.server.memory_values import AT, MIB, detail_of, memory_of, sample

LAYOUT = MapLayout(
    tensors=[
        MapTensor(
            name=name,
            layer=layer,
            type="Q4_1",
            shape=(64, 64),
            file=0,
            offset=4096 + MIB * cell,
            nbytes=MIB,
            experts=0,
            first_cell=cell,
        )
        for cell, (name, layer) in enumerate(
            [("token_embd.weight", None), ("blk.0.attn_q.weight", 0), ("blk.1.attn_q.weight", 1)]
        )
    ],
    cells=3,
    files=["fake.gguf"],
    file_bytes=[4096 + 3 * MIB],
)
GENERATIONS = (1, 2, 3)
"""The maps that are kept; the newest is the last."""


def snapshot(generation: int = GENERATIONS[-1]) -> Snapshot:
    """Make a map of which the first cell is full, the second half there and the third unknown."""
    cells = np.array([254, 127, 255], np.uint8)
    tensor_bytes = np.array([MIB, MIB // 2, -1], np.int64)
    return Snapshot(generation, AT + generation, cells, tensor_bytes, None, LAYOUT.total_bytes, "made up")


class FakeObserver:
    """Gives what ``tests.server.memory_values`` makes up for each loaded model.

    ``watchers`` are (instance, residency) of those that look now; ``moves`` what was asked for, as (verb,
    instance, layers). ``refusal`` is raised by every move; a move waits until ``move_wait`` is set.
    """

    def __init__(self, instances: Callable[[], Sequence[InstanceStatus]], publish: Publish) -> None:
        self.watchers: list[tuple[str | None, bool]] = []
        self.moves: list[tuple[str, str, list[int] | None]] = []
        self.refusal: OctavoError | None = None
        self.move_wait: asyncio.Event | None = None
        self.cancelled = 0
        self._pins: dict[str, Pin] = {}
        self._instances = instances
        self._publish = publish

    async def start(self) -> None:
        """Start nothing."""

    async def close(self) -> None:
        """End nothing."""

    @contextmanager
    def watch(self, instance: str | None = None, *, residency: bool = True) -> Iterator[None]:
        """Note who looks."""
        self.watchers.append((instance, residency))
        try:
            yield
        finally:
            self.watchers.remove((instance, residency))

    def sampled(self) -> MemorySampled:
        """Give the same figures of each loaded model."""
        return sample(*(memory_of(one.instance, pin=self._pin(one)) for one in self._instances()))

    async def details(self) -> list[MemoryDetail]:
        """Give the same details of each loaded model."""
        return [detail_of(one.instance, pin=self._pin(one)) for one in self._instances()]

    async def detail(self, instance: str) -> MemoryDetail:
        """Give the details of one."""
        found = self._named(instance)
        return detail_of(found.instance, pin=self._pin(found))

    async def layout(self, instance: str) -> MapLayout:
        """Give three cells."""
        self._named(instance)
        return LAYOUT

    async def residency(self, instance: str, generation: int | None = None) -> Snapshot:
        """Give a map that is kept."""
        self._named(instance)
        if generation is not None and generation not in GENERATIONS:
            raise SnapshotNotKept(f"Snapshot {generation} is not kept.", generation=generation)
        return snapshot(generation or GENERATIONS[-1])

    def history(self, instance: str) -> list[tuple[int, float]]:
        """List the maps that are kept."""
        self._named(instance)
        return [(generation, AT + generation) for generation in GENERATIONS]

    async def warm(self, instance: str, layers: list[int] | None = None) -> PagesMoved:
        """Say that it is half done, and end."""
        found = self._named(instance)
        for done in (MIB, 2 * MIB):
            self._publish(
                WarmProgressed(
                    instance=found.instance, model=found.model, done_bytes=done, total_bytes=2 * MIB
                )
            )
        return await self._moved("warm", found, layers, before=0, after=2 * MIB)

    async def drop(self, instance: str, layers: list[int] | None = None) -> PagesMoved:
        """End at once."""
        return await self._moved("drop", self._named(instance), layers, before=2 * MIB, after=0)

    async def pin(self, instance: str, layers: list[int] | None = None, *, is_on: bool = True) -> Pin | None:
        """Keep or let go at once."""
        found = self._named(instance)
        await self._moved("pin" if is_on else "unpin", found, layers, before=0, after=0)
        pin = Pin(kind="mlock", pinned_bytes=2 * MIB, layers=layers) if is_on else None
        self._pins.pop(found.instance, None)
        if pin is not None:
            self._pins[found.instance] = pin
        self._publish(PinChanged(instance=found.instance, model=found.model, pin=pin))
        return pin

    async def _moved(
        self, verb: str, found: InstanceStatus, layers: list[int] | None, *, before: int, after: int
    ) -> PagesMoved:
        self.moves.append((verb, found.instance, layers))
        if self.refusal is not None:
            raise self.refusal
        if self.move_wait is not None:
            try:
                await self.move_wait.wait()
            except asyncio.CancelledError:
                self.cancelled += 1
                raise
        return PagesMoved(
            instance=found.instance,
            page_bytes=2 * MIB,
            resident_before_bytes=before,
            resident_after_bytes=after,
            seconds=0.5,
        )

    def _pin(self, instance: InstanceStatus) -> Pin | None:
        return self._pins.get(instance.instance)

    def _named(self, name: str) -> InstanceStatus:
        loaded = list(self._instances())
        for found in loaded:
            if name in (found.instance, found.model):
                return found
        raise ModelNotFound(
            f"Nothing is loaded under the name {name!r}.", candidates=[one.instance for one in loaded]
        )
