"""One connection that fetches segment after segment of a file, on a thread of its own."""

import contextlib
import random
import socket
import threading

import httpx2

from octavo.core.errors import DownloadFailed, OctavoError
from octavo.core.hub.downloads.origin import Changed, Lost, Origin
from octavo.core.hub.downloads.pace import Pace
from octavo.core.hub.downloads.part import Part
from octavo.core.hub.downloads.plan import Plan

_BREATH_S = 0.2

Fault = Lost | Changed | OctavoError | OSError


class Fetcher:
    """Fetches until nothing is left for it, it is stopped, or a try brought not a single byte (``fault``)."""

    def __init__(self, origin: Origin, plan: Plan, part: Part, pace: Pace) -> None:
        self._origin = origin
        self._plan = plan
        self._part = part
        self._pace = pace
        self._stopped = threading.Event()
        self._response: httpx2.Response | None = None
        self.fault: Fault | None = None
        self.has_answer = False
        self._at = 0
        self._thread = threading.Thread(target=self._run, name="fetcher", daemon=True)
        self._thread.start()

    @property
    def is_alive(self) -> bool:
        """Tell whether it fetches."""
        return self._thread.is_alive()

    def stop(self) -> None:
        """End soon: what it waits for is broken off."""
        self._stopped.set()
        response = self._response
        stream = response.extensions.get("network_stream") if response is not None else None
        connection = stream.get_extra_info("socket") if stream is not None else None
        if isinstance(connection, socket.socket):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def join(self, timeout_s: float) -> None:
        """Wait for its end."""
        self._thread.join(timeout_s)

    def _run(self) -> None:
        try:
            while not self._stopped.is_set() and not self._part.is_whole and (span := self._plan.take()):
                self._fetch_all(*span)
        except (Lost, Changed, OctavoError, OSError) as fault:
            self.fault = fault

    def _fetch_all(self, start: int, end: int) -> None:
        self._at = start
        while self._at < end and not self._part.is_whole and not self._stopped.is_set():
            before, had = self._at, self._part.done_bytes
            try:
                self._receive(self._at, end)
            except Lost:
                gained = self._at > before if self._origin.knows_ranges else self._part.done_bytes > had
                if not gained:
                    raise
                self._stopped.wait(random.uniform(0, _BREATH_S))

    def _receive(self, start: int, end: int) -> None:
        """Write what comes from one answer; ``_at`` follows."""
        with self._origin.open(start, end) as (response, self._at):
            self._response = response
            self.has_answer = True
            end = end if self._origin.knows_ranges else self._part.size
            for piece in response.iter_raw():
                if self._stopped.is_set():
                    return
                self._part.write(self._at, memoryview(piece)[: end - self._at])
                self._at = min(self._at + len(piece), end)
                if pause := self._pace.pause_s(len(piece)):
                    self._stopped.wait(pause)
        if self._at < end:
            raise Lost(DownloadFailed("The connection ended before all bytes had come.", hint="Try again."))
