"""One process on Linux, against what is done in it and against what others say."""

import os
import shutil
import subprocess
import sys
import time
import timeit
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from octavo.core.memory import probe
from octavo.core.memory.figures import ProcessFigures
from octavo.core.memory.probe import linux
from tests.core.memory.probe.children import MIB, Child, child, disk_folder
from tests.fixtures.cgroups import forget_pages

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="it reads Linux's /proc")

STAT = "42 (a) R (b) S 1 42 42 0 -1 4194560 1234 5 67 8 250 50 1 1 20 0 3 0 100 1 2"
STATUS = """Name:\ta) R (b
State:\tS (sleeping)
VmRSS:\t    1100 kB
RssAnon:\t     600 kB
RssFile:\t     400 kB
RssShmem:\t     100 kB
VmSwap:\t      50 kB
Threads:\t3
"""


@pytest.fixture
def one() -> Iterator[Child]:
    """Lend a child process."""
    with child() as made:
        yield made


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """Lend a folder on a real disk."""
    with disk_folder(tmp_path) as folder:
        yield folder


def sample(pid: int) -> ProcessFigures:
    """Take a sample of a process that is there."""
    figures = probe.process(pid)
    assert figures is not None
    return figures


def recorded(root: Path, io: str | None = "rchar: 9\nread_bytes: 4096\nwrite_bytes: 7\n") -> Path:
    """Write what Linux shows of process 42."""
    folder = root / "proc/42"
    folder.mkdir(parents=True)
    (folder / "stat").write_text(STAT)
    (folder / "status").write_text(STATUS)
    if io is not None:
        (folder / "io").write_text(io)
    return root


def test_recorded_text_is_understood_whatever_the_name(tmp_path: Path) -> None:
    assert linux.process(42, recorded(tmp_path)) == ProcessFigures(
        pid=42,
        private_bytes=600 * 1024,
        file_bytes=400 * 1024,
        shared_bytes=100 * 1024,
        swap_bytes=50 * 1024,
        minor_faults=1234,
        major_faults=67,
        disk_bytes=4096,
        threads=3,
        cpu_s=300 / os.sysconf("SC_CLK_TCK"),
    )


def test_a_kernel_that_does_not_count_disk_bytes(tmp_path: Path) -> None:
    figures = linux.process(42, recorded(tmp_path, io=None))
    assert figures is not None
    assert figures.disk_bytes is None


def test_another_users_disk_bytes_are_not_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def read(path: str) -> bytes:
        if path.endswith("/io"):
            raise PermissionError(path)
        return Path(path).read_bytes()

    monkeypatch.setattr(linux, "read_once", read)
    figures = linux.process(42, recorded(tmp_path))
    assert figures is not None
    assert figures.disk_bytes is None


def test_the_resident_set_is_what_psutil_says(one: Child) -> None:
    one.run("kept = bytearray(b'x') * (32 << 20)")
    told = psutil.Process(one.pid).memory_info()
    figures = sample(one.pid)
    assert figures.resident_bytes == pytest.approx(told.rss, abs=MIB)
    assert figures.file_bytes + figures.shared_bytes == pytest.approx(told.shared, abs=MIB)


def test_anonymous_memory_is_private(one: Child) -> None:
    before = sample(one.pid)
    one.run("kept = mmap.mmap(-1, 40 << 20, flags=mmap.MAP_PRIVATE); kept.write(b'x' * (40 << 20))")
    after = sample(one.pid)
    # the bytes that are written are themselves made first, and may or may not have been given back
    assert 40 * MIB <= after.private_bytes - before.private_bytes < 82 * MIB
    assert after.file_bytes - before.file_bytes < 2 * MIB
    assert after.minor_faults is not None
    assert before.minor_faults is not None
    assert after.minor_faults > before.minor_faults


def test_shared_memory_is_told_apart(one: Child) -> None:
    before = sample(one.pid)
    one.run("kept = mmap.mmap(-1, 20 << 20, flags=mmap.MAP_SHARED); kept[::4096] = b'x' * (20 << 8)")
    assert sample(one.pid).shared_bytes - before.shared_bytes == pytest.approx(20 * MIB, abs=MIB)


def test_a_mapped_file_is_file_bytes_and_its_reading_disk_bytes(one: Child, disk: Path) -> None:
    file = disk / "pages"
    file.write_bytes(os.urandom(24 * MIB))
    forget_pages(file)
    before = sample(one.pid)
    one.run(f"kept = mmap.mmap(os.open({str(file)!r}, os.O_RDONLY), 0, prot=mmap.PROT_READ); kept[::4096]")
    after = sample(one.pid)
    assert after.file_bytes - before.file_bytes == pytest.approx(24 * MIB, abs=2 * MIB)
    assert after.private_bytes - before.private_bytes < 2 * MIB
    assert after.disk_bytes is not None
    assert before.disk_bytes is not None
    assert 23 * MIB < after.disk_bytes - before.disk_bytes < 26 * MIB
    assert after.major_faults is not None
    assert before.major_faults is not None
    assert after.major_faults > before.major_faults


def test_read_bytes_count_only_what_the_page_cache_had_not(one: Child, disk: Path) -> None:
    file = disk / "read"
    file.write_bytes(os.urandom(16 * MIB))
    forget_pages(file)
    read = f"file = os.open({str(file)!r}, os.O_RDONLY); os.read(file, 16 << 20); os.close(file)"
    before = sample(one.pid).disk_bytes
    one.run(read)
    once = sample(one.pid).disk_bytes
    one.run(read)
    twice = sample(one.pid).disk_bytes
    assert None not in (before, once, twice)
    assert 15 * MIB < (once or 0) - (before or 0) < 18 * MIB
    assert (twice or 0) - (once or 0) < 2 * MIB


def test_threads_and_times_are_counted(one: Child) -> None:
    before = sample(one.pid)
    one.run("gate = threading.Event(); [threading.Thread(target=gate.wait).start() for _ in range(3)]")
    assert sample(one.pid).threads == before.threads + 3
    one.run("gate.set(); [i for i in range(10_000_000)]")
    assert sample(one.pid).cpu_s > before.cpu_s


def test_the_proportional_set_is_psutils(one: Child) -> None:
    one.run("kept = bytearray(b'x') * (16 << 20)")
    told = probe.proportional(one.pid)
    assert told is not None
    assert told == pytest.approx(psutil.Process(one.pid).memory_full_info().pss, abs=MIB)
    assert told <= sample(one.pid).resident_bytes + MIB


def test_an_unfit_name_hides_nothing(tmp_path: Path) -> None:
    program = tmp_path / "x) S (y"
    shutil.copy(shutil.which("sleep") or "sleep", program)
    running = subprocess.Popen([program, "60"])
    try:
        while Path(f"/proc/{running.pid}/comm").read_text() != "x) S (y\n":
            time.sleep(0.01)
        figures = sample(running.pid)
        assert (figures.threads, figures.pid) == (1, running.pid)
        assert 0 <= figures.cpu_s < 30
    finally:
        running.kill()
        running.wait()


def test_a_zombie_and_a_gone_process_are_none() -> None:
    running = subprocess.Popen([sys.executable, "-Sc", ""])
    os.waitid(os.P_PID, running.pid, os.WEXITED | os.WNOWAIT)
    assert probe.process(running.pid) is None
    assert probe.proportional(running.pid) is None
    running.wait()
    assert probe.process(running.pid) is None
    assert probe.proportional(running.pid) is None


def test_a_sample_is_cheap_however_much_is_mapped(one: Child, tmp_path: Path) -> None:
    strict = bool(os.environ.get("OCTAVO_MEASURE"))
    touched = 4 << 30 if strict else 256 * MIB
    file = tmp_path / "sparse"
    with file.open("wb") as opened:
        opened.truncate(4 << 30)
    one.run(f"kept = mmap.mmap(os.open({str(file)!r}, os.O_RDONLY), 0, prot=mmap.PROT_READ)")
    one.run(f"[kept[place] for place in range(0, {touched}, 4096)] and None")
    costs = sorted(timeit.repeat(lambda: probe.process(one.pid), number=1, repeat=200))
    rollup = timeit.timeit(lambda: probe.proportional(one.pid), number=5) / 5
    print(
        f"4 GiB mapped, {touched >> 20} MiB resident: a sample takes {costs[100] * 1e6:.0f} µs (p99 ", end=""
    )
    print(f"{costs[198] * 1e6:.0f} µs), the proportional set {rollup * 1e3:.1f} ms")
    assert sample(one.pid).file_bytes >= touched
    assert costs[100] < (0.002 if strict else 0.05)
