"""Warm, drop and pin pages of the model's files, on a thread of its own beside the decoding.

Nothing here changes what llama.cpp reads: a page that is dropped comes back from the file at its next use.
"""

import contextlib
import errno
import os
import queue
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence

from octavo.core.engine import madvise
from octavo.core.engine.maps import FileMaps, inward, outward
from octavo.core.engine.protocol import AnyReport, Drop, Failed, PagesDone, PagesProgressed, Pin, Warm
from octavo.core.errors import Cancelled, NoPageControl, OctavoError, PagesArePinned, UnreadableFile
from octavo.core.memory.layout import PageRange
from octavo.core.memory.probe import ThreadDisk

CHUNK_BYTES = 8 << 20
TOUCH_EVERY_S = 1.0

NOT_HERE = "this system's calls for pages are not known to Octavo"
NOT_MAPPED = "its weights are not mapped from the file, but copied into memory"

Task = Warm | Drop | Pin
Send = Callable[[AnyReport], None]


class PageControl:
    """Carries out one task after the other; pinned pages that can't be locked are touched in between.

    ``is_loaded_locked``: llama.cpp has locked all weights, and nothing of that may be undone here.
    """

    def __init__(self, maps: FileMaps, send: Send, *, is_loaded_locked: bool = False) -> None:
        self._maps = maps
        self._is_loaded_locked = is_loaded_locked
        self._send = send
        self._tasks: queue.SimpleQueue[Task] = queue.SimpleQueue()
        self._cancelled: set[str] = set()
        self._pinned: list[PageRange] = []
        self._is_locked = False
        self._disk: ThreadDisk | None = None
        self.refusal = NOT_MAPPED if maps.is_empty else "" if madvise.is_supported else NOT_HERE
        if not self.refusal:
            threading.Thread(target=self._run, name="pages", daemon=True).start()

    @property
    def disk_bytes(self) -> int:
        """What this thread itself read from a disk; no request caused it."""
        return (self._disk.read() if self._disk else None) or 0

    def begin(self, task: Task) -> None:
        """Queue a task; its end is told by a report."""
        if self.refusal:
            error = NoPageControl(
                f"Pages can't be moved: {self.refusal}.", hint="Load it with load mode mmap."
            )
            self._send(Failed(task.request, error.report()))
        else:
            self._tasks.put(task)

    def cancel(self, request: str) -> None:
        """Stop a task that waits or runs; an id that is not one of them is harmless."""
        self._cancelled.add(request)

    def _run(self) -> None:
        self._disk = ThreadDisk()
        while True:
            try:
                task = self._tasks.get(timeout=TOUCH_EVERY_S if self._touches else None)
            except queue.Empty:
                self._touch()
                continue
            self._carry_out(task)
            self._cancelled.discard(task.request)

    @property
    def _touches(self) -> bool:
        return bool(self._pinned) and not self._is_locked

    def _carry_out(self, task: Task) -> None:
        try:
            match task:
                case Warm():
                    done = self._warm(task)
                case Drop():
                    done = self._drop(task)
                case Pin():
                    done = self._pin(task)
            self._send(done)
        except OctavoError as error:
            self._send(Failed(task.request, error.report()))
        except OSError as fault:
            told = UnreadableFile(f"The model's pages can't be moved: {fault.strerror}.", hint="See the log.")
            self._send(Failed(task.request, told.report()))

    # ---- warm

    def _warm(self, task: Warm) -> PagesDone:
        ranges = [outward(pages) for pages in task.ranges]
        total, done = _size(ranges), 0
        for chunk in _chunks(ranges):
            if task.request in self._cancelled:
                raise Cancelled("The warm-up was called off.")
            self._populate(chunk)
            done += chunk.stop - chunk.start
            self._send(PagesProgressed(task.request, done, total))
        return PagesDone(task.request, total)

    def _populate(self, chunk: PageRange) -> None:
        """Bring a chunk into memory and into this process's map; the part that is not mapped has no use."""
        for address, length in self._maps.spans(chunk):
            try:
                madvise.advise(address, length, madvise.POPULATE_READ)
            except OSError:  # a kernel before 5.14, or a file that was cut: reading tells which
                self._read(chunk)

    def _read(self, chunk: PageRange) -> None:
        if not os.pread(self._maps.descriptor(chunk.file), chunk.stop - chunk.start, chunk.start):
            raise UnreadableFile("The model's file is shorter than it was.", hint="Load it again.")

    # ---- drop

    def _drop(self, task: Drop) -> PagesDone:
        ranges = [inward(pages, self._maps.size(pages.file)) for pages in task.ranges]
        if _overlap(ranges, self._pinned):
            raise PagesArePinned("These pages are pinned.", hint="Let go of them first (unpin).")
        try:
            for pages in ranges:
                drop(self._maps, pages)
        except OSError as fault:
            if fault.errno != errno.EINVAL:
                raise
            raise PagesArePinned(
                "The weights are locked in memory by their load mode.", hint="Load it with load mode mmap."
            ) from fault
        return PagesDone(task.request, _size(ranges))

    # ---- pin

    def _pin(self, task: Pin) -> PagesDone:
        if self._is_loaded_locked:
            raise PagesArePinned(
                "All weights are locked in memory already, by their load mode.",
                hint="Load it with load mode mmap to pin parts.",
            )
        self._let_go()
        self._pinned = [outward(pages) for pages in task.ranges]
        if not self._pinned:
            return PagesDone(task.request, 0)
        try:
            self._lock()
        except OSError as fault:
            self._touch()
            reason = f"the system refused to lock so much memory ({fault.strerror}; see ulimit -l)"
            return PagesDone(task.request, self._pinned_bytes, "touch", reason)
        return PagesDone(task.request, self._pinned_bytes, "mlock")

    @property
    def _pinned_bytes(self) -> int:
        return sum(length for _, length in self._spans(self._pinned))

    def _lock(self) -> None:
        locked: list[tuple[int, int]] = []
        try:
            for address, length in self._spans(_chunks(self._pinned)):
                madvise.lock(address, length)
                locked.append((address, length))
        except OSError:
            for address, length in locked:
                madvise.unlock(address, length)
            raise
        self._is_locked = True

    def _let_go(self) -> None:
        if self._is_locked:
            for address, length in self._spans(self._pinned):
                madvise.unlock(address, length)
        self._pinned, self._is_locked = [], False

    def _touch(self) -> None:
        for chunk in _chunks(self._pinned):
            if not self._tasks.empty():
                return
            self._populate(chunk)

    def _spans(self, ranges: Iterable[PageRange]) -> Iterator[tuple[int, int]]:
        for pages in ranges:
            yield from self._maps.spans(pages)


def drop(maps: FileMaps, pages: PageRange) -> None:
    """Drop whole pages of a file from this process's map and, where nobody else maps them, from the cache.

    Raises ``OSError``, with EINVAL for what is locked.
    """
    for address, length in maps.spans(pages):
        # read-ahead makes folios of up to 2 MiB, which fadvise drops whole or not at all; this splits them
        with contextlib.suppress(OSError):  # a kernel before 5.4, or a file that is not ours
            madvise.advise(address, length, madvise.PAGEOUT)
        madvise.advise(address, length, madvise.DONTNEED)
    descriptor = maps.descriptor(pages.file)
    os.fdatasync(descriptor)  # pages of a file that was just written can't be dropped before
    os.posix_fadvise(descriptor, pages.start, pages.stop - pages.start, os.POSIX_FADV_DONTNEED)


def _chunks(ranges: Iterable[PageRange]) -> Iterator[PageRange]:
    for pages in ranges:
        for start in range(pages.start, pages.stop, CHUNK_BYTES):
            yield PageRange(file=pages.file, start=start, stop=min(start + CHUNK_BYTES, pages.stop))


def _size(ranges: Iterable[PageRange]) -> int:
    return sum(max(pages.stop - pages.start, 0) for pages in ranges)


def _overlap(ours: Sequence[PageRange], theirs: Sequence[PageRange]) -> bool:
    return any(
        one.file == other.file and one.start < other.stop and other.start < one.stop
        for one in ours
        for other in theirs
    )
