"""A clock of the service's event loop: does something again and again, and at once when it is woken."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress

_log = logging.getLogger(__name__)


class Clock:
    """Does ``work`` every ``period_s`` seconds, which is asked anew each time; None: only when woken."""

    def __init__(
        self, name: str, work: Callable[[], Awaitable[object]], period_s: Callable[[], float | None]
    ) -> None:
        self._name = name
        self._work = work
        self._period_s = period_s
        self._woken = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin, with the first work at once."""
        self._task = asyncio.create_task(self._run(), name=self._name)

    def wake(self) -> None:
        """Do the work now, or again after what is being done."""
        self._woken.set()

    async def close(self) -> None:
        """End, also in the middle of the work."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            started = loop.time()
            try:
                await self._work()
            except OSError as fault:  # the next time may go well; a view must not stand still for good
                _log.warning("%s: %s", self._name, fault)
            period = self._period_s()
            with suppress(TimeoutError):
                async with asyncio.timeout_at(None if period is None else started + period):
                    await self._woken.wait()
            self._woken.clear()
