"""What there is: the system, cgroups of both kinds, and what loaded models hold."""

import json
import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from octavo.core.memory import budget
from octavo.core.memory.budget import GIB, Claim, fixed, measure, memory_groups
from tests.fixtures.cgroups import memory_group, run_inside

MIB = 1 << 20


def v1(root: Path, path: str, limit: int, used: int, cached: int) -> None:
    """Write what cgroup v1 shows."""
    folder = root / "sys/fs/cgroup/memory" / path.lstrip("/")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "memory.limit_in_bytes").write_text(f"{limit}\n")
    (folder / "memory.usage_in_bytes").write_text(f"{used}\n")
    halves = cached // 2, cached - cached // 2
    (folder / "memory.stat").write_text(
        f"cache 9\ninactive_file 1\ntotal_inactive_file {halves[0]}\ntotal_active_file {halves[1]}\n"
    )


def v2(root: Path, path: str, limit: str, used: int, cached: int) -> None:
    """Write what cgroup v2 shows."""
    folder = root / "sys/fs/cgroup" / path.lstrip("/")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "memory.max").write_text(f"{limit}\n")
    (folder / "memory.current").write_text(f"{used}\n")
    (folder / "memory.stat").write_text(f"anon 5\ninactive_file {cached}\nactive_file 0\n")


def belongs(root: Path, line: str) -> Path:
    """Write which cgroup the process is in."""
    (root / "proc/self").mkdir(parents=True, exist_ok=True)
    (root / "proc/self/cgroup").write_text(f"{line}\n")
    return root


def test_a_v1_group_counts_without_its_page_cache(tmp_path: Path) -> None:
    v1(tmp_path, "/task/job", 600 * MIB, 500 * MIB, 400 * MIB)
    v1(tmp_path, "/", 1 << 62, 9, 0)
    (group,) = memory_groups(belongs(tmp_path, "4:memory:/task/job"))
    assert (group.limit_bytes, group.used_bytes, group.left_bytes) == (600 * MIB, 100 * MIB, 500 * MIB)


def test_a_v2_group_and_those_above_it_count(tmp_path: Path) -> None:
    v2(tmp_path, "/a", str(900 * MIB), 300 * MIB, 100 * MIB)
    v2(tmp_path, "/a/b", "max", 10, 0)
    groups = list(memory_groups(belongs(tmp_path, "0::/a/b")))
    assert [group.left_bytes for group in groups] == [700 * MIB]
    (tmp_path / "sys/fs/cgroup/a/b/memory.high").write_text(str(50 * MIB))
    assert sorted(group.left_bytes for group in memory_groups(tmp_path))[0] == 50 * MIB - 10


def test_in_a_container_the_mount_itself_is_the_group(tmp_path: Path) -> None:
    v1(tmp_path, "/", 600 * MIB, 100 * MIB, 0)
    (group,) = memory_groups(belongs(tmp_path, "4:memory:/docker/0123"))
    assert group.left_bytes == 500 * MIB


def test_the_smaller_of_system_and_cgroup_is_the_budget(tmp_path: Path) -> None:
    v1(tmp_path, "/job", 600 * MIB, 100 * MIB, 0)
    found = measure(keep_free_bytes=0, root=belongs(tmp_path, "4:memory:/job"))
    assert (found.budget_bytes, found.available_bytes, found.limited_by) == (500 * MIB, 500 * MIB, "cgroup")
    assert found.total_bytes == 600 * MIB


def test_what_is_kept_free_is_the_systems(tmp_path: Path) -> None:
    free = psutil.virtual_memory().available
    found = measure(keep_free_bytes=GIB, root=tmp_path)
    assert found.limited_by == "system"
    assert found.budget_bytes == pytest.approx(free - GIB, abs=200 * MIB)
    assert measure(keep_free_bytes=1 << 50, root=tmp_path).budget_bytes == 0


def test_promises_of_loaded_models_are_taken_off_and_idle_ones_come_back(tmp_path: Path) -> None:
    before = measure(keep_free_bytes=0, root=tmp_path)
    busy = Claim(private_bytes=3 * GIB, taken_bytes=GIB, mapped_bytes=GIB)
    found = measure(keep_free_bytes=0, claims=[busy], root=tmp_path)
    assert (found.promised_bytes, found.mapped_in_use_bytes) == (2 * GIB, GIB)
    assert found.budget_bytes == pytest.approx(before.budget_bytes - 2 * GIB, abs=200 * MIB)
    idle = Claim(3 * GIB, GIB, GIB, may_leave=True)
    found = measure(keep_free_bytes=0, claims=[idle], root=tmp_path)
    assert (found.reclaimable_bytes, found.mapped_in_use_bytes) == (3 * GIB, 0)
    assert found.budget_bytes == pytest.approx(before.budget_bytes + GIB, abs=200 * MIB)


def test_a_set_limit_is_for_all_models_together(tmp_path: Path) -> None:
    claims = [Claim(100 * MIB, 80 * MIB), Claim(50 * MIB, 60 * MIB, may_leave=True)]
    found = measure(keep_free_bytes=0, claims=claims, most_bytes=400 * MIB, root=tmp_path)
    assert (found.budget_bytes, found.limited_by) == (300 * MIB, "setting")
    assert fixed(7).budget_bytes == 7


def test_no_cgroups_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget.sys, "platform", "win32")
    assert list(memory_groups(belongs(tmp_path, "4:memory:/job"))) == []


PROGRAM = """
import json, sys, mmap
from octavo.core.memory.budget import measure
before = measure(keep_free_bytes=0)
file = open(sys.argv[1], "rb")
mapped = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
total = sum(mapped[place] for place in range(0, len(mapped), 4096))
after = measure(keep_free_bytes=0)
print(json.dumps([before.budget_bytes, after.budget_bytes, after.limited_by, after.total_bytes]))
"""


def test_c06_inside_a_real_cgroup_its_limit_counts_and_mapped_pages_do_not(tmp_path: Path) -> None:
    file = tmp_path / "pages"
    file.write_bytes(os.urandom(100 * MIB))
    os.sync()
    subprocess.run([sys.executable, "-c", "import octavo.core.memory.budget"], check=True)  # warm its pages
    descriptor = os.open(file, os.O_RDONLY)
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(descriptor)
    with memory_group(600_000_000) as group:
        printed = run_inside(group, [sys.executable, "-c", PROGRAM, str(file)], dict(os.environ), 60)
    before, after, limited_by, total = json.loads(printed)
    print(f"budget in a cgroup of 600 MB: {before:,} B before, {after:,} B after mapping 100 MiB")
    assert limited_by == "cgroup"
    assert 599_000_000 < total <= 600_000_000
    assert 500_000_000 < before < 600_000_000
    assert abs(after - before) < 8 * MIB
