"""Pages of a loaded model, moved by hand: brought into memory, dropped, or kept there."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence

from octavo.core.engine.client import Engine
from octavo.core.engine.protocol import PagesDone
from octavo.core.errors import InstanceBusy, NoPageControl
from octavo.core.events import Publish, WarmProgressed
from octavo.core.memory.figures import PagesMoved, Pin
from octavo.core.memory.layout import OTHER, MapLayout
from octavo.core.runtime.instance import Instance
from octavo.core.runtime.residency_maps import ResidencyMap

TELL_EVERY_S = 0.25


class PageMoves:
    """Warms, drops and pins pages of one instance. ``layers`` None is always the whole model.

    All raise ``NoPageControl`` where pages can't be moved, ``InstanceBusy`` while the model does not answer,
    and ``InvalidRequest`` for layers that it has not.
    """

    def __init__(self, instance: Instance, pages: ResidencyMap, publish: Publish) -> None:
        self._instance = instance
        self._map = pages
        self._publish = publish
        self._pinning = asyncio.Lock()

    async def warm(self, layers: Sequence[int] | None) -> PagesMoved:
        """Bring pages into memory, telling how far it is; cancelling the call stops it."""
        engine, layout = await self._ready()
        ranges = layout.ranges(layers)
        progress = _Progress(self._instance, self._publish)
        return await self._moved(lambda: engine.warm(ranges, progress.note))

    async def drop(self, layers: Sequence[int] | None) -> PagesMoved:
        """Drop pages from memory. Raises ``PagesArePinned``."""
        engine, layout = await self._ready()
        ranges = layout.ranges(layers)
        return await self._moved(lambda: engine.drop(ranges))

    async def pin(self, layers: Sequence[int] | None, *, is_on: bool) -> Pin | None:
        """Keep pages in memory beside those that are kept already, or let go of some; give what is kept.

        A whole model of which some layers are let go keeps all the rest.
        """
        async with self._pinning:
            engine, layout = await self._ready()
            layout.ranges(layers)  # raises for layers that it lacks
            kept = _kept_after(self._instance.memory.pin, layers, {OTHER, *layout.layers}, is_on=is_on)
            ranges = [] if kept == [] else layout.ranges(kept)
            done = await engine.pin(ranges)
            self._instance.memory.change_pin(_pin_of(done, kept) if ranges else None)
            return self._instance.memory.pin

    async def _ready(self) -> tuple[Engine, MapLayout]:
        """Give the engine that moves pages, and where they are; raises when it can't."""
        instance = self._instance
        self._map.require_mapped()
        if instance.state != "ready" or instance.engine is None or instance.ready is None:
            hint = "Its next request starts it again." if instance.state == "crashed" else "Try again."
            raise InstanceBusy(f"{instance.name} does not answer now ({instance.state}).", hint=hint)
        if instance.ready.page_control:
            raise NoPageControl(
                f"The pages of {instance.name} can't be moved: {instance.ready.page_control}",
                model=instance.model.id,
            )
        return instance.engine, await self._map.layout()

    async def _moved(self, move: Callable[[], Awaitable[PagesDone]]) -> PagesMoved:
        """Move pages; look before and after what the page cache holds of the files."""
        before = await self._map.newest(max_age_s=0)
        started = time.monotonic()
        done = await move()
        seconds = time.monotonic() - started
        after = await self._map.newest(max_age_s=0)
        return PagesMoved(
            instance=self._instance.name,
            page_bytes=done.page_bytes,
            resident_before_bytes=before.resident_bytes,
            resident_after_bytes=after.resident_bytes,
            seconds=seconds,
        )


class _Progress:
    """Tells how far a warm-up is, at most four times a second, and its end."""

    def __init__(self, instance: Instance, publish: Publish) -> None:
        self._instance = instance
        self._publish = publish
        self._told_at = float("-inf")

    def note(self, done: int, total: int) -> None:
        # a model that is warmed for a request to come is in use: its time to live starts anew
        now = self._instance.idle_since = time.monotonic()
        if now - self._told_at < TELL_EVERY_S and done < total:
            return
        self._told_at = now
        self._publish(
            WarmProgressed(
                instance=self._instance.name,
                model=self._instance.model.id,
                done_bytes=done,
                total_bytes=total,
            )
        )


def _kept_after(
    pin: Pin | None, layers: Sequence[int] | None, every: set[int], *, is_on: bool
) -> list[int] | None:
    """Give the layers that are kept after a wish, None for the whole model."""
    before = set() if pin is None else every if pin.layers is None else set(pin.layers)
    if not is_on:
        return [] if layers is None else sorted(before - set(layers))
    is_whole = layers is None or (pin is not None and pin.layers is None)
    return None if is_whole else sorted(before | set(layers or ()))


def _pin_of(done: PagesDone, layers: list[int] | None) -> Pin:
    return Pin(kind=done.kind or "touch", pinned_bytes=done.page_bytes, layers=layers, reason=done.reason)
