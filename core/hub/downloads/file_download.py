"""One file: rounds of connections until all bytes are there, with pauses, and the check at the end."""

import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from octavo.core.errors import ChecksumMismatch, DownloadFailed, ErrorReport, FileChangedOnHub
from octavo.core.hub.downloads.digest import Digest
from octavo.core.hub.downloads.fetcher import Fetcher
from octavo.core.hub.downloads.origin import Changed, Lost, Origin, sha256_of
from octavo.core.hub.downloads.pace import Pace
from octavo.core.hub.downloads.part import Entry, Part, read_at
from octavo.core.hub.downloads.plan import PARALLEL_FROM_BYTES, Plan
from octavo.core.hub.downloads.protocol import Patience
from octavo.core.hub.types import DownloadState, HubFile

_TICK_S = 0.02
_STOP_S = 2.0
_SAVE_EVERY_S = 1.0
_LEAST_UNSAVED, _MOST_UNSAVED = 512 << 10, 64 << 20
_UNSAVED_SHARE = 200
_MOST_CHANGES = 3


class Stopped(Exception):
    """The download was told to stop."""


@dataclass
class Surroundings:
    """What a file's download shares with the others of its set. ``tell`` never waits."""

    pace: Pace
    patience: Patience
    connections: int
    tell: Callable[[DownloadState, ErrorReport | None, float | None], None]
    stopped: threading.Event
    notes: list[str] = field(default_factory=list)
    restarts: int = 0


class FileDownload:
    """Brings one part file to its end: whole, and the one that the Hub names."""

    def __init__(self, file: HubFile, part: Part, origin: Origin, around: Surroundings) -> None:
        self._file = file
        self._part = part
        self._origin = origin
        self._around = around
        self._plan = Plan(part.size, part.ranges())
        self._saved_at = time.monotonic()
        self._digest: Digest | None = None
        part.entry.sha256 = part.entry.sha256 or file.sha256

    def run(self) -> bool:
        """Download and check; gives whether a published SHA-256 was there to check against.

        Raises ``Stopped``, ``ChecksumMismatch`` (the bytes are deleted), any other ``OctavoError`` that
        ends the download, or ``OSError`` of the disk.
        """
        if self._part.entry.is_verified:
            return True
        self._begin_digest()
        try:
            self._fetch()
            return self._verify()
        finally:
            self._end_digest()

    # ---- fetching

    def _fetch(self) -> None:
        tries = changes = 0
        while not self._part.is_whole:
            before = self._part.done_bytes
            self._plan.give_back(self._part.ranges())
            try:
                lost = self._round()
            except Changed as change:
                changes += 1
                self._begin_anew(change, changes)
                continue
            if self._part.is_whole:
                return
            tries = 1 if self._part.done_bytes > before else tries + 1
            self._wait(lost, tries)

    def _round(self) -> Lost | None:
        """Let connections fetch until none can go on; gives what kept the last ones."""
        fetchers = [self._fetcher()]
        try:
            while any(fetcher.is_alive for fetcher in fetchers):
                self._stop_if_told()
                if any(fetcher.fault and not isinstance(fetcher.fault, Lost) for fetcher in fetchers):
                    break
                if len(fetchers) < self._most_connections() and fetchers[0].has_answer:
                    fetchers.append(self._fetcher())
                self._save_if_due()
                self._around.tell("running", None, None)
                self._around.stopped.wait(_TICK_S)
        finally:
            self._end(fetchers)
        faults = [fetcher.fault for fetcher in fetchers if fetcher.fault is not None]
        for fault in faults:
            if not isinstance(fault, Lost):
                raise fault
        return next((fault for fault in faults if isinstance(fault, Lost)), None)

    def _fetcher(self) -> Fetcher:
        return Fetcher(self._origin, self._plan, self._part, self._around.pace)

    def _most_connections(self) -> int:
        is_worth_it = self._part.size >= PARALLEL_FROM_BYTES and self._origin.knows_ranges
        return self._around.connections if is_worth_it else 1

    def _end(self, fetchers: list[Fetcher]) -> None:
        for fetcher in fetchers:
            fetcher.stop()
        give_up = time.monotonic() + _STOP_S
        for fetcher in fetchers:
            fetcher.join(max(give_up - time.monotonic(), 0))
        self._save()

    def _save_if_due(self) -> None:
        unsaved = self._part.unsaved_bytes
        limit = min(max(self._part.size // _UNSAVED_SHARE, _LEAST_UNSAVED), _MOST_UNSAVED)
        if unsaved >= limit or (unsaved and time.monotonic() - self._saved_at > _SAVE_EVERY_S):
            self._save()

    def _save(self) -> None:
        if self._part.unsaved_bytes:
            self._part.checkpoint()
        self._saved_at = time.monotonic()

    def _wait(self, lost: Lost | None, tries: int) -> None:
        """Pause before the next try; raises what went wrong after too many."""
        if lost is None:
            return
        patience = self._around.patience
        if tries > patience.tries:
            raise lost.error
        pause = min(patience.first_wait_s * 2 ** (tries - 1), patience.longest_wait_s)
        # some jitter, so that not all who were cut off come back at the same moment
        pause *= random.uniform(0.5, 1.0)
        if lost.retry_after_s is not None:
            pause = lost.retry_after_s * random.uniform(1.0, 1.1)
        self._around.tell("waiting", lost.error.report(), time.time() + pause)
        self._around.stopped.wait(pause)
        self._stop_if_told()

    def _begin_anew(self, change: Changed, changes: int) -> None:
        text = f"{self._file.path} has changed on the Hub while it was downloaded"
        if changes > _MOST_CHANGES:
            raise FileChangedOnHub(f"{text}, again and again.", hint="Try again later.", file=self._file.path)
        sha256 = sha256_of(change.linked_etag) or self._file.sha256
        self._end_digest()
        self._part.restart(Entry(size=self._part.size, sha256=sha256))
        self._around.restarts += 1
        self._around.notes.append(f"{text}; it was begun anew.")
        self._begin_digest()

    def _stop_if_told(self) -> None:
        if self._around.stopped.is_set():
            raise Stopped

    # ---- checking

    def _verify(self) -> bool:
        if self._digest is None:
            self._check_kind()
            return False
        while (found := self._digest.result(_TICK_S)) is None:
            self._stop_if_told()
            self._around.tell("verifying", None, None)
        if found != self._part.entry.sha256:
            self._part.remove()
            self._around.restarts += 1
            raise ChecksumMismatch(
                f"{self._file.path} came whole, but its SHA-256 is not the one that the Hub names "
                "(checksum mismatch). What had come was deleted.",
                hint="Download it again; if it stays so, tell its publisher.",
                file=self._file.path,
                expected=self._part.entry.sha256,
                found=found,
            )
        self._part.entry.is_verified = True
        self._part.checkpoint()
        return True

    def _check_kind(self) -> None:
        """Where the Hub names no SHA-256, look at least that a model is one."""
        if self._file.path.lower().endswith(".gguf") and read_at(self._part.file, 4, 0) != b"GGUF":
            self._part.remove()
            self._around.restarts += 1
            raise DownloadFailed(
                f"What came in the place of {self._file.path} is no GGUF file; it was deleted.",
                hint="Look at the Hub's address (HF_ENDPOINT), or tell its publisher.",
                file=self._file.path,
            )

    def _begin_digest(self) -> None:
        self._digest = Digest(self._part) if self._part.entry.sha256 else None

    def _end_digest(self) -> None:
        if self._digest is not None:
            self._digest.close()
            self._digest = None
