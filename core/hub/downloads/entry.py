"""One download as the queue keeps it: what is told of it, and how the helper's reports change that."""

from typing import Any

import msgspec

from octavo.core.errors import ErrorReport
from octavo.core.hub.downloads.protocol import Report
from octavo.core.hub.downloads.speed import Speed
from octavo.core.hub.types import Download, DownloadState

LIVE = frozenset({"queued", "running", "waiting", "verifying"})
"""The states in which a download holds the service."""


class Entry:
    """A download in the queue. ``is_active``: the helper has it; ``is_stopping``: it was told to let go."""

    def __init__(self, download: Download) -> None:
        self.download = download
        self.is_active = False
        self.is_stopping = False
        self._speed = Speed()
        self._restarts = 0
        self._crashes = 0
        self._reported_bytes = 0

    @property
    def is_live(self) -> bool:
        """Tell whether it is queued or at work."""
        return self.download.state in LIVE

    @property
    def is_held_offline(self) -> bool:
        """Tell whether it is paused only because we are offline."""
        error = self.download.error
        return self.download.state == "paused" and error is not None and error.code == "hub_offline"

    def set(self, **fields: Any) -> None:
        """Replace fields of what is told."""
        self.download = msgspec.structs.replace(self.download, **fields)

    def take_over(self, other: "Entry") -> None:
        """Stand in for an entry of the same places, which the helper may still have."""
        self.is_active, self.is_stopping = other.is_active, other.is_stopping

    def begin(self) -> None:
        """Note that the helper has it from now on."""
        self.is_active, self.is_stopping = True, False
        self._restarts = 0
        self._speed.stop()

    def count(self, report: Report) -> None:
        """Take over how many bytes are there: never fewer, save when some were dropped."""
        done = min(report.done_bytes, self.download.total_bytes)
        if report.done_bytes > self._reported_bytes:
            self._crashes = 0
        self._reported_bytes = report.done_bytes
        if report.restarts > self._restarts:
            self._restarts = report.restarts
        else:
            done = max(done, self.download.done_bytes)
        self.set(done_bytes=done)

    def follow(self, report: Report) -> None:
        """Take over how the helper gets on."""
        left: float | None = None
        if report.state == "running":
            self._speed.note(report.done_bytes)
            left = self._speed.seconds_left(self.download.total_bytes - self.download.done_bytes)
        else:
            self._speed.stop()
        self.set(
            state=report.state,
            bytes_per_s=round(self._speed.bytes_per_s, 1),
            seconds_left=left,
            retry_at=report.retry_at,
            error=report.error,
            notes=report.notes,
        )

    def crashes_in_vain(self) -> int:
        """Count a death of the helper; gives how many there were since the last byte that came."""
        self._crashes += 1
        return self._crashes

    def queued(self) -> Download:
        """Give the download as it waits for its turn."""
        return self._resting("queued", None)

    def ended(
        self, state: DownloadState, error: ErrorReport | None = None, notes: list[str] | None = None
    ) -> Download:
        """Give the download as nobody works on it any more."""
        self._speed.stop()
        return msgspec.structs.replace(self._resting(state, error), notes=notes or self.download.notes)

    def finish(self, report: Report) -> None:
        """Note that all files have their names."""
        self.set(done_bytes=self.download.total_bytes, is_verified=report.is_verified)
        self.download = self.ended("done", None, report.notes)

    def _resting(self, state: DownloadState, error: ErrorReport | None) -> Download:
        return msgspec.structs.replace(
            self.download, state=state, error=error, bytes_per_s=0.0, seconds_left=None, retry_at=None
        )
