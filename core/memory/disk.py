"""How fast a disk gives a model's bytes: measured once per device, with direct I/O on the model's own file.

A token of a model that doesn't fit reads its pages through faults; the kernel reads them in blocks of its
read-ahead. So blocks of that size are read here past the page cache, one after the other, at places spread
over the file; the slow and the fast ones give the band. Bandwidths are bytes per second.
"""

import contextlib
import mmap
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec

from octavo.core.config.settings import write_atomically
from octavo.core.memory.types import Bandwidth

if sys.platform != "win32":
    import fcntl

CACHE_NAME = "disks.msgpack"
MEASURE_S = 0.6
MOST_BYTES = 1 << 30
SMALLEST_BLOCK, LARGEST_BLOCK = 128 << 10, 4 << 20
RUNS = 8
ALIGNMENT = 4096
# a number that can only come from a cache of the host or a broken clock
TOP_SPEED = 64e9
# what is assumed where nothing can be measured (a remote file): between a hard disk and a fast SSD
UNKNOWN = Bandwidth(low=150e6, high=450e6)


class Disks:
    """The bandwidths that were measured, kept in a file of the cache folder, by device."""

    def __init__(self, cache: Path) -> None:
        self._path = cache / CACHE_NAME

    def bandwidth(self, file: Path) -> Bandwidth:
        """Give what is known of the file's device; measure it when nothing is (blocks for up to 2 s)."""
        known = self._known()
        device = _device(file)
        if device is None:
            return UNKNOWN
        if device not in known:
            measured = measure(file)
            if measured is None:
                return UNKNOWN
            known[device] = measured
            with contextlib.suppress(Exception):  # a cache that can't be written is measured again
                write_atomically(self._path, msgspec.msgpack.encode(known))
        return known[device]

    def _known(self) -> dict[str, Bandwidth]:
        try:
            return msgspec.msgpack.decode(self._path.read_bytes(), type=dict[str, Bandwidth])
        except (OSError, msgspec.DecodeError):
            return {}


def measure(file: Path, seconds: float = MEASURE_S) -> Bandwidth | None:
    """Read from ``file`` past the page cache for about ``seconds``; None when that can't be done."""
    if not hasattr(os, "preadv"):
        return None
    block = block_size(file)
    try:
        with _direct(file) as (descriptor, size):
            if size < 2 * block:
                return None
            rates = [_rate(descriptor, places, block, seconds / RUNS) for places in _spread(size, block)]
    except OSError:
        return None
    rates = sorted(rate for rate in rates if 0 < rate < TOP_SPEED)
    return Bandwidth(low=rates[len(rates) // 4], high=rates[-1 - len(rates) // 8]) if rates else None


def block_size(file: Path) -> int:
    """Give the bytes of the kernel's read-ahead on the file's device (queue-sysfs.rst, read_ahead_kb)."""
    try:
        device = file.stat().st_dev
        parts = Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}")
        queues = [parts / "queue", parts.resolve().parent / "queue", parts / "bdi"]
        text = next((queue / "read_ahead_kb").read_text() for queue in queues if queue.is_dir())
        wished = int(text) << 10
    except (OSError, StopIteration, ValueError):
        wished = 0
    return min(max(wished, SMALLEST_BLOCK), LARGEST_BLOCK)


@contextlib.contextmanager
def _direct(file: Path) -> Iterator[tuple[int, int]]:
    """Open a file past the page cache; where O_DIRECT is refused, its cached pages are dropped."""
    descriptor = os.open(file, os.O_RDONLY | getattr(os, "O_DIRECT", 0))
    try:
        os.preadv(descriptor, [mmap.mmap(-1, ALIGNMENT)], 0)
    except OSError:
        os.close(descriptor)
        descriptor = os.open(file, os.O_RDONLY)
    if sys.platform == "darwin":
        fcntl.fcntl(descriptor, 48, 1)  # F_NOCACHE (sys/fcntl.h)
    try:
        yield descriptor, os.fstat(descriptor).st_size
    finally:
        os.close(descriptor)


def _spread(size: int, block: int) -> list[Iterator[int]]:
    """Give for each run the places that it reads: consecutive blocks from a start of its own."""
    blocks = size // block
    starts = [blocks * run // RUNS for run in range(RUNS)]
    return [((start + step) % blocks * block for step in range(MOST_BYTES // block)) for start in starts]


def _rate(descriptor: int, places: Iterator[int], block: int, seconds: float) -> float:
    """Read for ``seconds``; give bytes per second."""
    room = mmap.mmap(-1, block)  # page-aligned, as O_DIRECT wants it
    done, started = 0, time.perf_counter()
    for place in places:
        _forget(descriptor, place, block)
        done += os.preadv(descriptor, [room], place)
        if time.perf_counter() - started >= seconds:
            break
    return done / max(time.perf_counter() - started, 1e-9)


def _forget(descriptor: int, place: int, block: int) -> None:
    """Drop a range of our own file from the page cache; no effect on pages that a process has mapped."""
    if hasattr(os, "posix_fadvise") and not _is_direct(descriptor):
        os.posix_fadvise(descriptor, place, block, os.POSIX_FADV_DONTNEED)


def _is_direct(descriptor: int) -> bool:
    return bool(fcntl.fcntl(descriptor, fcntl.F_GETFL) & getattr(os, "O_DIRECT", 0))


def _device(file: Path) -> str | None:
    """Name the device that the file lies on; stays the same when it is mounted elsewhere."""
    try:
        device = file.stat().st_dev
    except OSError:
        return None
    if not hasattr(os, "major"):
        return str(device)
    return f"{os.major(device)}:{os.minor(device)}"
