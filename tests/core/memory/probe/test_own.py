"""What a process counts of itself, and a thread of itself."""

import mmap
import os
import subprocess
import sys
import threading
import time
import timeit
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from octavo.core.memory.probe import Counts, OwnCounters, ThreadDisk, own
from octavo.core.memory.probe.procfs import KeptFile
from tests.core.memory.probe.children import MIB, disk_folder
from tests.fixtures.cgroups import forget_pages

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="it reads Linux's /proc")

LIGHT = (
    "import octavo.core.memory.probe, sys; print(sorted({'psutil', 'numpy', 'pydantic'} & set(sys.modules)))"
)


@pytest.fixture
def counters() -> Iterator[OwnCounters]:
    """Lend the counters of this process and thread."""
    made = OwnCounters()
    yield made
    made.close()


@pytest.fixture
def dropped(tmp_path: Path) -> Iterator[Path]:
    """Lend a file of 16 MiB on a real disk that the page cache does not have."""
    with disk_folder(tmp_path) as folder:
        file = folder / "dropped"
        file.write_bytes(os.urandom(16 * MIB))
        forget_pages(file)
        yield file


def during(counters: OwnCounters, act: Callable[[], object]) -> Counts:
    """Do something, and tell by how much each counter grew."""
    before = counters.read()
    act()
    after = counters.read()
    pairs = zip(before, after, strict=True)
    return Counts(*(b - a if a is not None and b is not None else None for a, b in pairs))  # type: ignore[arg-type]


def in_thread(act: Callable[[], None]) -> None:
    """Do something in another thread and wait for it."""
    thread = threading.Thread(target=act)
    thread.start()
    thread.join()


def busy(seconds: float) -> None:
    """Compute until this thread has run so long."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def touch(file: Path) -> None:
    """Map a file and touch each of its pages."""
    with file.open("rb") as opened, mmap.mmap(opened.fileno(), 0, prot=mmap.PROT_READ) as mapped:
        sum(mapped[place] for place in range(0, len(mapped), mmap.PAGESIZE))


def test_a_worker_stays_small() -> None:
    done = subprocess.run([sys.executable, "-c", LIGHT], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_reading_a_dropped_file_counts(counters: OwnCounters, dropped: Path) -> None:
    grown = during(counters, dropped.read_bytes)
    assert grown.disk_bytes is not None
    assert 15 * MIB < grown.disk_bytes < 18 * MIB
    assert grown.off_cpu_s is not None
    assert grown.off_cpu_s > 0


def test_touching_a_dropped_file_takes_major_faults(counters: OwnCounters, dropped: Path) -> None:
    grown = during(counters, lambda: touch(dropped))
    assert grown.major_faults is not None
    assert grown.major_faults > 0
    assert grown.disk_bytes is not None
    assert 15 * MIB < grown.disk_bytes < 18 * MIB


def test_fresh_memory_takes_minor_faults(counters: OwnCounters) -> None:
    with mmap.mmap(-1, 8 * MIB, flags=mmap.MAP_PRIVATE) as fresh:
        grown = during(counters, lambda: fresh.write(bytes(8 * MIB)))
    assert grown.minor_faults is not None
    assert grown.minor_faults > 0


def test_a_sleep_is_off_the_cpu(counters: OwnCounters) -> None:
    grown = during(counters, lambda: time.sleep(0.2))
    assert grown.off_cpu_s is not None
    assert 0.19 < grown.off_cpu_s < 5


def test_computing_is_not_off_the_cpu(counters: OwnCounters) -> None:
    grown = during(counters, lambda: busy(0.5))
    print(f"off the CPU during half a second of computing: {(grown.off_cpu_s or 0) * 1e3:.3f} ms")
    # a host that takes the virtual CPU away looks like standing still; here that is 1 %
    assert grown.off_cpu_s is not None
    assert grown.off_cpu_s < 0.25


def test_waiting_for_a_cpu_is_not_standing_still() -> None:
    grown: list[float | None] = []
    program = "import os\nos.sched_setaffinity(0, [min(os.sched_getaffinity(0))])\nwhile True: pass"
    rival = subprocess.Popen([sys.executable, "-Sc", program])

    def compete() -> None:
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        counters = OwnCounters()
        grown.append(during(counters, lambda: busy(0.5)).off_cpu_s)
        counters.close()

    try:
        in_thread(compete)
    finally:
        rival.kill()
        rival.wait()
    print(f"off the CPU during half a second of computing beside a rival: {(grown[0] or 0) * 1e3:.3f} ms")
    assert grown[0] is not None
    assert grown[0] < 0.25


def test_it_never_shrinks(counters: OwnCounters) -> None:
    samples = [counters.read() for _ in range(2000)]
    for before, after in pairwise(samples):
        assert all((a or 0) <= (b or 0) for a, b in zip(before, after, strict=True))


def test_a_threads_own_reading_is_told_apart(counters: OwnCounters, dropped: Path) -> None:
    mine = ThreadDisk()
    its: list[int] = []

    def read() -> None:
        disk = ThreadDisk()
        before = disk.read() or 0
        dropped.read_bytes()
        its.append((disk.read() or 0) - before)
        disk.close()

    before = mine.read()
    grown = during(counters, lambda: in_thread(read))
    assert before is not None
    assert (mine.read() or 0) - before < MIB
    assert 15 * MIB < its[0] < 18 * MIB
    assert grown.disk_bytes is not None
    assert grown.disk_bytes >= its[0]
    mine.close()


def test_closed_counters_tell_nothing_and_leave_nothing_open() -> None:
    before = len(os.listdir("/proc/self/fd"))
    counters, disk = OwnCounters(), ThreadDisk()
    assert len(os.listdir("/proc/self/fd")) == before + 3
    for _ in range(2):
        counters.close()
        disk.close()
    assert len(os.listdir("/proc/self/fd")) == before
    assert (counters.read().disk_bytes, counters.read().off_cpu_s, disk.read()) == (None, None, None)


@pytest.mark.parametrize("schedstat", ["0 0 0\n", None])
def test_a_kernel_that_does_not_count_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, schedstat: str | None
) -> None:
    if schedstat is not None:
        (tmp_path / "schedstat").write_text(schedstat)
    monkeypatch.setattr(own, "KeptFile", lambda path: KeptFile(str(tmp_path / Path(path).name)))
    counters = OwnCounters()
    told = counters.read()
    counters.close()
    assert (told.disk_bytes, told.off_cpu_s) == (None, None)
    assert told.minor_faults is not None


def test_windows_counts_no_faults_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own.sys, "platform", "win32")
    counters = OwnCounters()
    told = counters.read()
    counters.close()
    assert (told.minor_faults, told.major_faults) == (None, None)


def test_what_a_read_costs(counters: OwnCounters) -> None:
    disk = ThreadDisk()
    cost = min(timeit.repeat(counters.read, number=1000, repeat=5)) / 1000
    thread_cost = min(timeit.repeat(disk.read, number=1000, repeat=5)) / 1000
    disk.close()
    print(f"a read of the counters takes {cost * 1e6:.1f} µs, of a thread's {thread_cost * 1e6:.1f} µs")
    assert cost < (50e-6 if os.environ.get("OCTAVO_MEASURE") else 2e-3)
