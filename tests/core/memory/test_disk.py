"""Disk bandwidth: past the page cache, once per device, in less than 2 s."""

import os
import time
from pathlib import Path

import pytest

from octavo.core.memory import disk
from octavo.core.memory.disk import LARGEST_BLOCK, SMALLEST_BLOCK, UNKNOWN, Disks, block_size, measure
from octavo.core.memory.types import Bandwidth

MIB = 1 << 20


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of 64 MiB on the disk."""
    path = tmp_path_factory.mktemp("disk") / "weights"
    path.write_bytes(os.urandom(64 * MIB))
    os.sync()
    return path


def test_it_takes_less_than_2_s_and_leaves_the_page_cache_alone(file: Path) -> None:
    started = time.monotonic()
    found = measure(file)
    took = time.monotonic() - started
    assert found is not None
    print(f"disk: {found.low / 1e6:.0f}–{found.high / 1e6:.0f} MB/s in {took:.2f} s")
    assert took < 2
    assert 0 < found.low <= found.high


def test_it_is_measured_once_per_device(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Path] = []

    def pretend(path: Path) -> Bandwidth:
        asked.append(path)
        return Bandwidth(1e6, 2e6)

    monkeypatch.setattr(disk, "measure", pretend)
    assert Disks(tmp_path).bandwidth(file) == Disks(tmp_path).bandwidth(file) == Bandwidth(1e6, 2e6)
    assert asked == [file]


def test_where_direct_reads_are_refused_it_reads_and_forgets(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk.os, "O_DIRECT", 0, raising=False)
    found = measure(file)
    assert found is not None and found.low > 0


def test_what_can_not_be_measured_has_a_cautious_value(tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.write_bytes(b"x")
    assert measure(small) is None
    assert Disks(tmp_path / "cache").bandwidth(small) == UNKNOWN
    assert Disks(tmp_path / "cache").bandwidth(tmp_path / "missing") == UNKNOWN


def test_a_damaged_cache_is_measured_anew(file: Path, tmp_path: Path) -> None:
    (tmp_path / disk.CACHE_NAME).write_bytes(b"\xc1 no msgpack")
    assert Disks(tmp_path).bandwidth(file).high > 0


def test_the_block_is_the_kernels_read_ahead(file: Path) -> None:
    assert SMALLEST_BLOCK <= block_size(file) <= LARGEST_BLOCK
    assert block_size(file / "missing") == SMALLEST_BLOCK
