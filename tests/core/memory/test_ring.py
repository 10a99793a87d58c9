"""Ten minutes of maps, and no more memory than was allowed."""

import numpy as np

from octavo.core.memory.residency import Snapshot
from octavo.core.memory.ring import MOST_BYTES, Ring

CELLS, TENSORS = 50_000, 1_100


def snapshot(generation: int, at: float, cells: int = 4) -> Snapshot:
    """Make a snapshot with arrays of its own."""
    return Snapshot(generation, at, np.zeros(cells, np.uint8), np.zeros(1, np.int64), 0, 100)


def after(last: Snapshot, at: float) -> Snapshot:
    """Make a later snapshot of the same map."""
    return Snapshot(last.generation, at, last.cells, last.tensor_bytes, 0, 100)


def test_generations_are_listed_with_their_first_sight() -> None:
    ring = Ring()
    first, second = snapshot(1, 10.0), snapshot(2, 12.0)
    newest = after(second, 13.0)
    for kept in (first, after(first, 11.0), second, newest):
        ring.add(kept)
    assert ring.generations() == [(1, 10.0), (2, 12.0)]
    assert ring.at(2) is newest
    assert ring.at(3) is None


def test_equal_maps_cost_nothing() -> None:
    ring = Ring()
    first = snapshot(1, 0.0)
    ring.add(first)
    for second in range(1, 100):
        ring.add(after(first, float(second)))
    assert (len(ring), ring.nbytes) == (100, first.cells.nbytes + first.tensor_bytes.nbytes)


def test_what_is_older_than_ten_minutes_goes() -> None:
    ring = Ring()
    for second in range(1000):
        ring.add(snapshot(second, float(second)))
    assert ring.generations()[0] == (399, 399.0)
    assert (len(ring), ring.nbytes) == (601, 601 * 12)
    assert ring.at(398) is None


def test_ten_minutes_of_50_000_changing_cells_fit() -> None:
    ring = Ring()
    for second in range(700):
        cells, tensors = np.zeros(CELLS, np.uint8), np.zeros(TENSORS, np.int64)
        ring.add(Snapshot(second, float(second), cells, tensors, 0, 100))
    assert len(ring) == 601
    assert ring.nbytes == 601 * (CELLS + 8 * TENSORS) < MOST_BYTES


def test_bytes_are_bounded_and_the_newest_stays() -> None:
    ring = Ring(most_bytes=1000)
    for second in range(50):
        ring.add(snapshot(second, float(second), cells=192))
    assert [generation for generation, _ in ring.generations()] == [45, 46, 47, 48, 49]
    assert ring.nbytes == 1000
    ring.add(snapshot(50, 50.0, cells=5000))
    assert len(ring) == 1
