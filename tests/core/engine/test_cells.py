"""Following llama.cpp's cells: against llama.cpp itself, and what must hold whatever happens."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from octavo.core.engine.cells import CellPool
from tests.core.engine.test_engine_real import run_json
from tests.fixtures.big_model import big_model


@pytest.fixture(scope="module")
def one_layer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of one layer, whose decodes are quick."""
    return big_model(tmp_path_factory.mktemp("one") / "one.gguf", 1)


@pytest.mark.parametrize(
    ("seed", "slots", "pools"), [(1, 4, "unified"), (2, 3, "unified"), (3, 1, "unified"), (4, 4, "apart")]
)
def test_the_cells_that_llama_cpp_writes_are_those_we_follow(
    one_layer: Path, seed: int, slots: int, pools: str
) -> None:
    found = run_json("follow_cells.py", one_layer, seed, 250, slots, pools)
    print(found)
    assert found["unsure"] == 0
    assert int(str(found["written"])) > 500


def test_the_full_cells_of_a_window_model_are_followed_too(gemma: Path) -> None:
    found = run_json("follow_cells.py", gemma, 5, 60, 2, "unified")
    print(found)
    assert found["unsure"] == 0


def test_a_pool_knows_its_highest_cell_and_forgets_it() -> None:
    pool = CellPool(64, 16)
    pool.place([(0, 0, 10), (1, 0, 5)])
    assert (pool.used, pool.high_water) == (15, 15)
    pool.keep(1, 2)
    assert (pool.used, pool.high_water, pool.peak) == (12, 12, 15)
    pool.place([(0, 10, 1)])
    assert pool.high_water == 13
    pool.clear()
    assert (pool.used, pool.high_water) == (0, 0)


def test_shared_cells_are_counted_once_and_freed_by_the_last() -> None:
    pool = CellPool(64, 16)
    pool.place([(0, 0, 8)])
    pool.share(0, 1, 6)
    pool.place([(1, 6, 2)])
    assert (pool.used, pool.shared(0), pool.shared(1)) == (10, 6, 6)
    pool.keep(0, 0)
    assert (pool.used, pool.shared(1)) == (8, 0)


def test_more_sequences_than_a_byte_counts_share_a_cell() -> None:
    pool = CellPool(8, 4)
    pool.place([(0, 0, 3)])
    for sequence in range(1, 300):
        pool.share(0, sequence, 3)
    for sequence in range(299):
        pool.keep(sequence, 0)
    assert pool.used == 3
    pool.keep(299, 0)
    assert pool.used == 0


def test_a_decode_broken_off_at_the_bottom_again_leaves_doubt_until_the_pool_is_empty() -> None:
    pool = CellPool(16, 8)
    pool.place([(0, 0, 7), (1, 0, 7)])
    pool.keep(0, 0)
    pool.place([(2, 0, 1)])
    pool.keep(2, 0)
    pool.place([(1, 7, 6)])
    pool.place_broken_off([(1, 13, 3)])
    assert pool.is_sure  # one after the other, from the head on
    pool.place_broken_off([(3, 0, 1)])
    assert not pool.is_sure
    pool.clear()
    assert pool.is_sure


STEPS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 20)), max_size=40)


@given(STEPS)
def test_used_cells_are_those_that_somebody_holds(steps: list[tuple[int, int, int]]) -> None:
    pool, held = CellPool(256, 16), [0, 0, 0, 0]
    for sequence, kind, count in steps:
        if kind < 2 and sum(held) + count < 200:
            pool.place([(sequence, held[sequence], count)])
            held[sequence] += count
        elif kind == 2:
            held[sequence] = min(held[sequence], count)
            pool.keep(sequence, held[sequence])
        elif kind == 3:
            source = (sequence + 1) % 4
            pool.keep(sequence, 0)
            held[sequence] = min(held[source], count)
            pool.share(source, sequence, held[sequence])
    assert pool.is_sure
    assert pool.used == len(pool.cells()) <= sum(held)
    assert pool.high_water == max(pool.cells(), default=-1) + 1
