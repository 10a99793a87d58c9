"""Imports on real file systems that are small, full or read-only."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from octavo.core.errors import StorageFailed
from octavo.core.library import ImportMode, plan_import, run_import, space
from tests.core.library.import_scene import fill, mounted, person_at, remount, tree
from tests.fixtures.import_units import small_set, starter_set

MB = 1 << 20


@pytest.fixture(autouse=True)
def person(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    person_at(tmp_path / "home", monkeypatch)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 300 MB."""
    with mounted(tmp_path / "disk", "size=300m") as folder:
        yield folder


def test_d04_a_disk_that_is_too_small_is_told_beforehand(smollm2: Path, tmp_path: Path):
    files = starter_set(smollm2, tmp_path / "sources")
    with mounted(tmp_path / "disk", "size=20m") as disk:
        with pytest.raises(StorageFailed, match="not enough room") as caught:
            plan_import(files[0], disk / "models", "p/m")
        needed = sum(path.stat().st_size for path in files)
        assert caught.value.details["needed_bytes"] == needed and tree(disk) == []


def test_d04_the_margin_counts(disk: Path, tmp_path: Path):
    files = small_set(tmp_path / "sources")
    fill(disk, space.SPACE_MARGIN - MB)
    with pytest.raises(StorageFailed, match="must stay free"):
        plan_import(files[0], disk / "models", "p/m")
    plan_import(files[0], disk / "models", "p/m", ImportMode.SYMLINK)


@pytest.mark.parametrize("mode", [ImportMode.MOVE, ImportMode.COPY])
def test_d04_a_disk_that_fills_up_meanwhile_is_told_and_nothing_is_left(
    mode: ImportMode, smollm2: Path, disk: Path, tmp_path: Path
):
    files = starter_set(smollm2, tmp_path / "sources")
    before = [path.read_bytes() for path in files]
    plan = plan_import(files[0], disk / "models", "p/m", mode)

    def others_write(_done: int, _total: int) -> None:
        if not (disk / "filler").exists():
            fill(disk, 10 * MB)

    with pytest.raises(StorageFailed, match="is full") as caught:
        run_import(plan, others_write)
    assert caught.value.details["needed_bytes"] == plan.size_bytes
    assert tree(disk) == ["filler"] and [path.read_bytes() for path in files] == before


def test_d04_a_disk_that_filled_up_since_the_plan_is_told(disk: Path, tmp_path: Path):
    files = small_set(tmp_path / "sources")
    plan = plan_import(files[0], disk / "models", "p/m")
    fill(disk, MB)
    with pytest.raises(StorageFailed, match="not enough room"):
        run_import(plan)
    assert tree(disk) == ["filler"] and all(path.exists() for path in files)


def test_b12_a_read_only_target_is_told(disk: Path, tmp_path: Path):
    files = small_set(tmp_path / "sources")
    root = disk / "models"
    root.mkdir()
    remount(disk, "ro")
    with pytest.raises(StorageFailed, match="read-only"):
        run_import(plan_import(files[0], root, "p/m"))
    assert tree(disk) == ["models"] and all(path.exists() for path in files)


def test_b12_a_read_only_source_is_copied_and_moved_only_by_mistake(disk: Path, tmp_path: Path):
    files = small_set(disk / "sources")
    remount(disk, "ro")
    with pytest.raises(StorageFailed, match="can't be moved"):
        plan_import(files[0], tmp_path / "models", "p/m", ImportMode.MOVE)
    plan = plan_import(files[0], tmp_path / "models", "p/m")
    assert plan.mode is ImportMode.COPY and "can't be written" in plan.reason
    assert run_import(plan).read_bytes() == files[0].read_bytes()


def test_b12_a_move_to_another_disk_keeps_its_bytes_and_times(disk: Path, tmp_path: Path):
    files = small_set(disk / "sources")
    contents = [path.read_bytes() for path in files]
    os.utime(files[0], ns=(1, 10**18))
    plan = plan_import(files[2], tmp_path / "models", "p/m")
    assert plan.mode is ImportMode.MOVE and plan.copies_bytes
    run_import(plan)
    targets = [tmp_path / "models" / "p" / "m" / path.name for path in files]
    assert [path.read_bytes() for path in targets] == contents and not any(path.exists() for path in files)
    assert targets[0].stat().st_mtime_ns == 10**18
