"""The machine on Linux: this one, and others as they were recorded."""

import errno
import json
import os
import sys
import timeit
from pathlib import Path

import psutil
import pytest

from octavo.core.memory import probe
from octavo.core.memory.figures import GroupFigures, Pressure
from octavo.core.memory.probe import linux
from tests.core.memory.probe.children import MIB
from tests.fixtures.cgroups import memory_group, run_inside

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="it reads Linux's /proc")

MEMINFO = """MemTotal:       16000 kB
MemFree:         2000 kB
MemAvailable:    9000 kB
Buffers:          300 kB
Cached:          5000 kB
SwapTotal:       4000 kB
SwapFree:        3000 kB
Shmem:            200 kB
HugePages_Total:       0
"""
VMSTAT = "pgmajfault 3\npswpin 10\npswpout 20\nworkingset_refault_anon 1\nworkingset_refault_file 30\n"
PRESSURE = """some avg10=1.50 avg60=2.25 avg300=0.10 total=58365101
full avg10=0.50 avg60=1.00 avg300=0.05 total=42689173
"""
PAGE = os.sysconf("SC_PAGE_SIZE")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Lay out the /proc of a machine without pressure figures and without cgroups."""
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/meminfo").write_text(MEMINFO)
    (tmp_path / "proc/vmstat").write_text(VMSTAT)
    (tmp_path / "proc/self/cgroup").write_text("")
    return tmp_path


def group(folder: Path, **files: object) -> None:
    """Write the files of a cgroup, ``_`` for the dot in their names."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, value in files.items():
        (folder / name.replace("_", ".", 1)).write_text(f"{value}\n")


def test_recorded_text_is_understood(root: Path) -> None:
    figures = probe.system(root)
    assert (figures.total_bytes, figures.available_bytes) == (16000 * 1024, 9000 * 1024)
    assert figures.cached_bytes == (5000 + 300 - 200) * 1024
    assert figures.swap_used_bytes == 1000 * 1024
    assert (figures.swapped_in_bytes, figures.swapped_out_bytes) == (10 * PAGE, 20 * PAGE)
    assert figures.refault_bytes == 30 * PAGE
    assert (figures.pressure, figures.group) == (None, None)


def test_before_linux_5_9_refaults_have_another_name(root: Path) -> None:
    (root / "proc/vmstat").write_text("workingset_refault 7\n")
    figures = probe.system(root)
    assert (figures.refault_bytes, figures.swapped_in_bytes) == (7 * PAGE, None)


def test_without_counters_nothing_is_told(root: Path) -> None:
    (root / "proc/vmstat").unlink()
    assert probe.system(root).refault_bytes is None


def test_pressure_is_told_where_the_kernel_has_it(root: Path) -> None:
    (root / "proc/pressure").mkdir()
    (root / "proc/pressure/memory").write_text(PRESSURE)
    told = probe.system(root).pressure
    assert told == Pressure(some_avg10=1.5, some_avg60=2.25, full_avg10=0.5, full_avg60=1.0)


def test_pressure_that_is_switched_off_is_none(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def read(path: Path) -> bytes:
        if path.parts[-2:] == ("pressure", "memory"):
            raise OSError(errno.EOPNOTSUPP, "PSI is off")
        return path.read_bytes()

    monkeypatch.setattr(linux, "read_once", read)
    assert probe.system(root).pressure is None


def test_a_v1_group_is_told_with_its_cache(root: Path) -> None:
    (root / "proc/self/cgroup").write_text("4:memory:/job\n")
    stat = f"total_inactive_file {100 * MIB}\ntotal_active_file {50 * MIB}"
    folder = root / "sys/fs/cgroup/memory/job"
    group(folder, memory_limit_in_bytes=600 * MIB, memory_usage_in_bytes=400 * MIB, memory_stat=stat)
    assert probe.system(root).group == GroupFigures(
        limit_bytes=600 * MIB, used_bytes=400 * MIB, cached_bytes=150 * MIB
    )


def test_of_v2_groups_the_one_that_leaves_least_is_told(root: Path) -> None:
    (root / "proc/self/cgroup").write_text("0::/a/b\n")
    above, own = root / "sys/fs/cgroup/a", root / "sys/fs/cgroup/a/b"
    stat = f"anon 1\ninactive_file {10 * MIB}\nactive_file 0"
    group(above, memory_max=900 * MIB, memory_current=850 * MIB, memory_stat=stat)
    group(own, memory_max=500 * MIB, memory_current=100 * MIB, memory_stat="inactive_file 0\nactive_file 0")
    assert probe.system(root).group == GroupFigures(
        limit_bytes=900 * MIB, used_bytes=850 * MIB, cached_bytes=10 * MIB
    )


def test_more_cache_than_usage_is_all_of_it(root: Path) -> None:
    (root / "proc/self/cgroup").write_text("0::/a\n")
    folder = root / "sys/fs/cgroup/a"
    group(folder, memory_max=9 * MIB, memory_current=MIB, memory_stat=f"inactive_file {2 * MIB}")
    assert probe.system(root).group == GroupFigures(limit_bytes=9 * MIB, used_bytes=MIB, cached_bytes=MIB)


def test_a_group_without_a_limit_is_none(root: Path) -> None:
    (root / "proc/self/cgroup").write_text("0::/a\n")
    group(root / "sys/fs/cgroup/a", memory_max="max", memory_current=5)
    assert probe.system(root).group is None


def test_inside_a_real_group_it_is_told() -> None:
    program = "import json; from octavo.core.memory import probe; from msgspec import to_builtins as plain\n"
    program += "kept = b'x' * (64 << 20); print(json.dumps(plain(probe.system().group)))"
    with memory_group(300_000_000) as folder:
        printed = run_inside(folder, [sys.executable, "-c", program], dict(os.environ), 60)
    told = json.loads(printed)
    assert 299_000_000 < told["limit_bytes"] <= 300_000_000
    assert 64 * MIB < told["used_bytes"] - told["cached_bytes"] < 200 * MIB


def test_this_machine_agrees_with_psutil() -> None:
    figures, told = probe.system(), psutil.virtual_memory()
    assert figures.total_bytes == told.total
    assert figures.available_bytes == pytest.approx(told.available, abs=512 * MIB)
    assert 0 <= figures.cached_bytes < figures.total_bytes
    assert figures.swap_used_bytes == pytest.approx(psutil.swap_memory().used, abs=64 * MIB)
    assert figures.refault_bytes is not None
    assert (figures.pressure is None) == (not _pressure_is_on())


def test_what_a_sample_of_the_machine_costs() -> None:
    cost = min(timeit.repeat(probe.system, number=20, repeat=5)) / 20
    print(f"a sample of the machine takes {cost * 1e6:.0f} µs")
    assert cost < (0.002 if os.environ.get("OCTAVO_MEASURE") else 0.1)


def _pressure_is_on() -> bool:
    try:
        return bool(Path("/proc/pressure/memory").read_bytes())
    except OSError:
        return False
