"""What a worker counts of itself at every decode step: files are kept open, a read costs a few microseconds.

Sources: proc(5) for /proc/self/io; getrusage(2); the kernel's Documentation/scheduler/sched-stats.rst for
/proc/PID/task/TID/schedstat. Nothing here needs psutil or numpy.
"""

import sys
import threading
import time
from typing import NamedTuple, Protocol

from octavo.core.memory.probe.procfs import KeptFile, disk_bytes

if sys.platform != "win32":
    import resource


class Counts(NamedTuple):
    """Counters of this process, ever growing; None where they are not told.

    ``disk_bytes`` were read from a disk by all threads, page faults included; ``minor_faults`` needed no
    disk and ``major_faults`` did (both since the process began). ``off_cpu_s`` is how long the one thread
    that made the counters stood still since then.
    """

    disk_bytes: int | None
    minor_faults: int | None
    major_faults: int | None
    off_cpu_s: float | None


class DiskCounter(Protocol):
    """Where disk bytes are read from."""

    def read(self) -> int | None:
        """Give the bytes read from a disk so far."""

    def close(self) -> None:
        """Let go of what is held open."""


class DiskFile:
    """The bytes read from a disk that one ``io`` file of Linux counts, kept open; elsewhere None."""

    def __init__(self, path: str) -> None:
        self._file = KeptFile(path)

    def read(self) -> int | None:
        """Give the bytes so far; see `octavo.core.memory.probe.procfs.disk_bytes` for what counts."""
        text = self._file.read()
        return None if text is None else disk_bytes(text)

    def close(self) -> None:
        """Close the file; what is read afterwards is None."""
        self._file.close()


class ThreadDisk(DiskFile):
    """The bytes that one thread reads from a disk, apart from those of the whole process.

    The thread that is measured must make it, for the kernel ties the open file to that; any thread of the
    process may read it while that one lives. Only Linux tells (None elsewhere).
    """

    def __init__(self) -> None:
        super().__init__("/proc/thread-self/io")


class OwnCounters:
    """This process's counters, and how long one thread stood still.

    The thread that is measured makes it and reads it: to another, its waiting for a CPU would look like
    standing still. Close it at the end. Not for use after a fork: the files stay the parent's.
    """

    def __init__(self) -> None:
        self._disk = _process_disk()
        self._off_cpu = _OffCpu()

    def read(self) -> Counts:
        """Take one sample."""
        return Counts(self._disk.read(), *_faults(), self._off_cpu.read())

    def close(self) -> None:
        """Close the files; what they told is None from then on."""
        self._disk.close()
        self._off_cpu.close()


class _OffCpu:
    """How long a thread neither ran nor waited for a CPU: it was blocked, on a disk, a lock or a sleep.

    That is the clock, less the time it ran, less the time it was runnable. schedstat has both, but the
    time that a running thread ran lags there by up to a tick (4.1 ms measured at 250 Hz), so that comes from
    the thread's CPU clock, which is exact; a wait ends before the thread runs, so it is exact as it is. In
    a virtual machine, time that the host took (steal) looks like standing still.
    """

    def __init__(self) -> None:
        self._file = KeptFile("/proc/thread-self/schedstat")
        self._most_ns = 0
        told = self._file.read()
        # a thread that runs was given a CPU once; where not even that is counted (no CONFIG_SCHED_INFO), no
        # waits are
        self._is_told = told is not None and told.split()[2] != b"0"
        if self._is_told:
            self._clock = time.pthread_getcpuclockid(threading.get_ident())
            self._start_ns = self._now_ns() or 0

    def read(self) -> float | None:
        """Give the seconds since it was made."""
        now = self._now_ns() if self._is_told else None
        if now is None:
            return None
        self._most_ns = max(self._most_ns, now - self._start_ns)
        return self._most_ns / 1e9

    def close(self) -> None:
        """Close the file; what is read afterwards is None."""
        self._file.close()

    def _now_ns(self) -> int | None:
        # the clock comes first: what passes between the three is then missed for once, and never made up
        now, ran = time.monotonic_ns(), time.clock_gettime_ns(self._clock)
        told = self._file.read()
        return None if told is None else now - ran - int(told.split()[1])


def _process_disk() -> DiskCounter:
    if sys.platform == "darwin":
        from octavo.core.memory.probe import macos

        return macos.OwnDisk()
    return DiskFile("/proc/self/io")


def _faults() -> tuple[int | None, int | None]:
    """Give minor and major faults of all threads; Windows counts both as one."""
    if sys.platform == "win32":
        return None, None
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_minflt, usage.ru_majflt
