"""The imports under way: each works in a thread, and can be called off."""

import asyncio
import threading
import time
from collections.abc import Callable
from typing import TypeVar

from octavo.core.errors import ServiceUnavailable

Result = TypeVar("Result")

TOLD_EACH_S = 0.25
"""Seconds between two reports of progress."""


class RunningImports:
    """Runs imports and calls them off, by name; it belongs to the service's event loop."""

    def __init__(self) -> None:
        self._called_off: list[tuple[str | None, threading.Event]] = []
        self._closed = False

    async def run(self, name: str | None, work: Callable[[Callable[[], bool]], Result]) -> Result:
        """Do ``work`` in a thread; it is given what tells that it was called off.

        Cancelling this calls it off, and waits until it has cleared up.
        """
        if self._closed:
            raise ServiceUnavailable("The service ends.")
        called_off = threading.Event()
        self._called_off.append((name, called_off))
        running = asyncio.ensure_future(asyncio.to_thread(work, called_off.is_set))
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            called_off.set()
            await asyncio.gather(running, return_exceptions=True)
            raise
        finally:
            self._called_off.remove((name, called_off))

    def call_off(self, name: str) -> bool:
        """Call off all imports of this name; tells whether there were any."""
        found = [called_off for its_name, called_off in self._called_off if its_name == name]
        for called_off in found:
            called_off.set()
        return bool(found)

    def close(self) -> None:
        """Call off all imports, and refuse new ones."""
        self._closed = True
        for _name, called_off in self._called_off:
            called_off.set()


class Throttled:
    """Passes progress on, at most every ``TOLD_EACH_S``, and its end; called from one thread."""

    def __init__(self, tell: Callable[[int, int], None]) -> None:
        self._tell = tell
        self._told_at = float("-inf")

    def __call__(self, done: int, total: int) -> None:
        """Report ``done`` bytes of ``total``."""
        now = time.monotonic()
        if done >= total or now - self._told_at >= TOLD_EACH_S:
            self._told_at = now
            self._tell(done, total)
