import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from octavo.core.errors import InvalidRequest
from octavo.core.hub.downloads.pace import Pace
from octavo.core.hub.downloads.part import SLOT_BYTES, Entry, Part
from octavo.core.hub.downloads.places import identity, part_of, targets
from octavo.core.hub.downloads.plan import PARALLEL_FROM_BYTES, Plan
from octavo.core.hub.downloads.ranges import Ranges
from octavo.core.hub.downloads.speed import Speed
from octavo.core.hub.types import DownloadWish, HubFile

SIZE = 1000
SPANS = st.lists(st.tuples(st.integers(0, 200), st.integers(0, 60)).map(lambda s: (s[0], s[0] + s[1])))


def opened(path: Path, size: int = SIZE) -> Part:
    """Open a part file that nobody else has."""
    part = Part.open(path, size)
    assert part is not None
    return part


def wish(*paths: str) -> DownloadWish:
    """Wish for files of these paths."""
    files = [HubFile(path=path, size_bytes=1) for path in paths]
    return DownloadWish(repo="o/r", revision="main", name="q", files=files, publisher="o", model="r")


@given(SPANS)
def test_ranges_hold_what_was_added(spans: list[tuple[int, int]]) -> None:
    ranges = Ranges(spans)
    there = {place for start, end in spans for place in range(start, end)}
    assert {place for start, end in ranges for place in range(start, end)} == there
    assert ranges.total == len(there)
    assert list(ranges) == sorted(ranges) and all(
        a[1] < b[0] for a, b in zip(ranges, list(ranges)[1:], strict=False)
    )
    gaps = {place for start, end in ranges.missing(300) for place in range(start, end)}
    assert gaps == set(range(300)) - there
    assert ranges.prefix == next(place for place in range(301) if place not in there)


@given(SPANS)
def test_a_plan_gives_each_missing_byte_once(spans: list[tuple[int, int]]) -> None:
    plan, size = Plan(300, Ranges(spans)), 300
    taken: list[int] = []
    while span := plan.take():
        taken += range(*span)
    assert len(taken) == len(set(taken)) and set(taken) == {
        place for start, end in Ranges(spans).missing(size) for place in range(start, end)
    }


def test_a_big_file_is_planned_in_segments() -> None:
    plan = Plan(10 * PARALLEL_FROM_BYTES, Ranges())
    first, second = plan.take(), plan.take()
    assert first is not None and second is not None
    assert first[1] == second[0] and 16 << 20 <= first[1] - first[0] <= 64 << 20


def test_a_part_keeps_what_is_durable_and_nothing_else(tmp_path: Path) -> None:
    part = opened(tmp_path / "part")
    part.reserve()
    part.entry.etag = '"a"'
    part.write(100, memoryview(b"x" * 50))
    part.checkpoint()
    part.write(500, memoryview(b"y" * 50))
    part.close()  # without a checkpoint
    part = opened(tmp_path / "part")
    assert list(part.ranges()) == [(100, 150)] and part.entry.etag == '"a"'
    part.close()


@pytest.mark.parametrize("damage", [0, 10, 16, 24, 30])
def test_a_torn_slot_leaves_the_one_before(tmp_path: Path, damage: int) -> None:
    part = opened(tmp_path / "part")
    part.reserve()
    part.write(0, memoryview(b"x" * 10))
    part.checkpoint()
    part.write(10, memoryview(b"x" * 10))
    part.checkpoint()
    newest = SIZE + part._number % 2 * SLOT_BYTES
    byte = os.pread(part.file, 1, newest + damage)
    os.pwrite(part.file, bytes([byte[0] ^ 0xFF]), newest + damage)
    part.close()
    part = opened(tmp_path / "part")
    assert part.done_bytes == 10
    part.close()


def test_an_interrupted_publishing_loses_nothing(tmp_path: Path) -> None:
    part = opened(tmp_path / "part")
    part.reserve()
    part.write(0, memoryview(b"x" * SIZE))
    part.checkpoint()
    os.truncate(part.file, SIZE)  # and here the power went
    part.close()
    part = opened(tmp_path / "part")
    assert part.is_whole and not part.entry.is_verified
    part.publish(tmp_path / "model.gguf")
    part.close()
    assert (tmp_path / "model.gguf").read_bytes() == b"x" * SIZE and not (tmp_path / "part").exists()


def test_a_part_has_one_writer(tmp_path: Path) -> None:
    part = opened(tmp_path / "part")
    assert Part.open(tmp_path / "part", SIZE) is None
    part.close()
    opened(tmp_path / "part").close()


def test_a_journal_of_another_size_counts_nothing(tmp_path: Path) -> None:
    part = opened(tmp_path / "part")
    part.reserve()
    part.write(0, memoryview(b"x" * 10))
    part.restart(Entry(size=SIZE))
    assert part.done_bytes == 0
    part.write(0, memoryview(b"x" * 10))
    part.checkpoint()
    part.close()
    part = opened(tmp_path / "part", SIZE + 1)
    assert part.done_bytes == 0
    part.close()


def test_places_keep_folders_and_put_a_projector_beside_its_model(tmp_path: Path) -> None:
    assert targets(tmp_path, wish("old/m.gguf", "new/m.gguf")) == [
        tmp_path / "o/r/old/m.gguf",
        tmp_path / "o/r/new/m.gguf",
    ]
    assert targets(tmp_path, wish("Q4/m.gguf", "mmproj-F16.gguf"))[1] == tmp_path / "o/r/Q4/mmproj-F16.gguf"
    assert identity(wish("a.gguf")) == identity(wish("a.gguf")) != identity(wish("b.gguf"))
    for path in ("../../evil.gguf", "/etc/evil.gguf", "a\\b.gguf", "nul\0.gguf", "", ".hidden"):
        with pytest.raises(InvalidRequest):
            targets(tmp_path, wish(path))
    with pytest.raises(InvalidRequest):
        targets(tmp_path, wish("a.gguf", "A.gguf"))
    assert part_of(tmp_path / ("x" * 238 + ".gguf")).name.startswith(".")
    assert len(part_of(tmp_path / ("x" * 238 + ".gguf")).name) < 255


def test_speed_is_smooth_and_begins_anew_after_a_loss() -> None:
    now = [0.0]
    speed = Speed(lambda: now[0])
    for step in range(20):
        now[0] = step * 0.25
        speed.note(step * 250_000)
    assert speed.bytes_per_s == pytest.approx(1e6, rel=0.01)
    assert speed.seconds_left(5_000_000) == pytest.approx(5, rel=0.01)
    speed.note(0)
    assert speed.bytes_per_s == 0 and speed.seconds_left(1) is None


def test_a_pace_without_a_limit_never_pauses() -> None:
    pace = Pace()
    assert pace.pause_s(1 << 30) == 0
    pace.limit(1000)
    assert pace.pause_s(1000) == pytest.approx(0.9, abs=0.1)
    pace.limit(0)
    assert pace.pause_s(1 << 30) == 0
