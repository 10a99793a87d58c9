"""Warm, drop and pin pages of a running model, and what its replies read from the disk."""

import asyncio
import os
import shutil
from pathlib import Path

import pytest

from octavo.core.engine.protocol import Timings
from octavo.core.errors import Cancelled, NoPageControl, PagesArePinned
from octavo.core.gguf import read_model
from octavo.core.memory.layout import MapLayout, PageRange
from octavo.core.memory.residency import Scanner, Snapshot
from tests.conftest import short_folder
from tests.core.engine.elastic_engine import elastic_engine
from tests.core.engine.real_engine import ask
from tests.core.engine.test_engine_real import run_json
from tests.fixtures.big_model import big_model

MIB = 1 << 20


@pytest.fixture
def own_copy(smollm2: Path, tmp_path: Path) -> Path:
    """A copy of the model whose pages nobody else maps, written to the disk."""
    copy = tmp_path / "copy.gguf"
    shutil.copyfile(smollm2, copy)
    with copy.open("rb") as file:
        os.fsync(file.fileno())
    return copy


def scanner_of(model: Path) -> tuple[MapLayout, Scanner]:
    """Look at a model's pages from outside the worker."""
    layout = MapLayout.of(read_model(model))
    return layout, Scanner(layout, [model])


def resident(snapshot: Snapshot) -> int:
    """Give the resident bytes, which must be known."""
    assert snapshot.resident_bytes is not None
    return snapshot.resident_bytes


def read_bytes(timings: Timings) -> int:
    """Give what a request read from the disk."""
    assert timings.prefill_disk_bytes is not None and timings.decode_disk_bytes is not None
    return timings.prefill_disk_bytes + timings.decode_disk_bytes


def test_disk_bytes_of_a_reply_are_the_growth_of_what_is_resident(own_copy: Path, tmp_path: Path) -> None:
    layout, scanner = scanner_of(own_copy)

    async def watch() -> None:
        async with elastic_engine(own_copy, tmp_path, slots=1) as watched:
            engine = watched.engine
            await engine.drop(layout.ranges(None))
            before = resident(scanner.scan())
            first = await ask(engine, "Once upon a time there was a fox", 12, ignore_end=True)
            grown = resident(scanner.scan()) - before
            second = await ask(engine, "A river runs through the old town", 12, ignore_end=True)
        assert first.finished and second.finished
        cold, warm = first.finished.timings, second.finished.timings
        print(
            f"before {before / MIB:.1f} MiB; grown {grown / MIB:.2f}; read {read_bytes(cold) / MIB:.2f} MiB"
        )
        print(f"second reply read {read_bytes(warm)} B; {cold=} {warm=}")
        assert before <= 0.02 * layout.total_bytes
        assert read_bytes(cold) == pytest.approx(grown, rel=0.05)
        assert read_bytes(warm) < 0.01 * read_bytes(cold)
        assert cold.prefill_major_faults
        assert 0 < cold.disk_s <= cold.prefill_s
        assert warm.disk_s <= 0.05 * cold.disk_s + 0.01

    asyncio.run(watch())


def test_a_dropped_layer_turns_cold_alone_and_comes_back_by_warming(own_copy: Path, tmp_path: Path) -> None:
    layout, scanner = scanner_of(own_copy)

    async def watch() -> None:
        async with elastic_engine(own_copy, tmp_path, slots=1) as watched:
            engine, told = watched.engine, list[tuple[int, int]]()
            await engine.drop(layout.ranges(None))  # so that read-ahead brings large folios
            await engine.warm(layout.ranges(None), lambda done, total: None)
            whole = scanner.scan()
            assert set(whole.cells.tolist()) == {254}
            done = await engine.drop(layout.ranges([7]))
            cold = scanner.scan()
            changed = {tensor.layer for tensor in layout.tensors if cold.cells[tensor.first_cell] < 254}
            turned = resident(whole) - resident(cold)
            print(f"{done.page_bytes} B dropped; {turned} B turned cold, in layers {changed}")
            assert changed == {7}
            assert turned == done.page_bytes
            assert (
                sorted(cells_of(layout, cold, 7))[-4] == 0
            )  # what is small lies at its ends, on shared pages
            await engine.warm(layout.ranges([7]), lambda done, total: told.append((done, total)))
            assert (scanner.scan().cells == whole.cells).all()
            assert told and told[-1][0] == told[-1][1]

    asyncio.run(watch())


def test_a_drop_during_an_answer_changes_no_token(own_copy: Path, tmp_path: Path) -> None:
    layout, _ = scanner_of(own_copy)

    async def watch() -> None:
        async with elastic_engine(own_copy, tmp_path, slots=1) as watched:
            wanted = await ask(watched.engine, "Once upon a time", 48, ignore_end=True)
            answer = asyncio.create_task(ask(watched.engine, "Once upon a time", 48, ignore_end=True))
            while not answer.done():
                await watched.engine.drop(layout.ranges(None))
                await asyncio.sleep(0.05)
            assert (await answer).tokens == wanted.tokens

    asyncio.run(watch())


def test_a_warm_up_is_called_off_between_chunks(tmp_path: Path) -> None:
    model = big_model(tmp_path / "big.gguf", 12)
    layout, scanner = scanner_of(model)

    async def watch() -> None:
        async with elastic_engine(model, tmp_path, slots=1) as watched:
            engine = watched.engine
            await engine.drop(layout.ranges(None))
            begun = asyncio.Event()
            warming = asyncio.create_task(
                engine.warm(layout.ranges(None) * 40, lambda done, total: begun.set())
            )
            await asyncio.wait_for(begun.wait(), 30)
            warming.cancel()
            with pytest.raises((asyncio.CancelledError, Cancelled)):
                await warming
            # the next task is carried out at once: the cancelled one has ended
            await asyncio.wait_for(engine.drop(layout.ranges([0])), 10)

    asyncio.run(watch())
    scanner.close()


def test_pinned_pages_stay_and_say_how(own_copy: Path, tmp_path: Path) -> None:
    layout, scanner = scanner_of(own_copy)

    async def watch() -> None:
        async with elastic_engine(own_copy, tmp_path, slots=1) as watched:
            done = await watched.engine.pin(layout.ranges([3, 4]))
            print(done)
            assert done.kind in ("mlock", "touch")
            assert (done.kind == "mlock") == (not done.reason)
            with pytest.raises(PagesArePinned):
                await watched.engine.drop(layout.ranges([4]))
            await watched.engine.drop(layout.ranges([9]))
            assert {cell for cell in cells_of(layout, scanner.scan(), 4)} == {254}
            none = await watched.engine.pin([])
            assert (none.page_bytes, none.kind) == (0, None)
            await watched.engine.drop(layout.ranges([4]))

    asyncio.run(watch())


def test_without_a_right_to_lock_pages_are_touched(tmp_path: Path) -> None:
    with short_folder() as folder:  # nobody must reach it
        folder.chmod(0o755)
        own = folder / "own.bin"
        own.write_bytes(os.urandom(64 * 4096))
        if os.geteuid() == 0:
            os.chown(own, 65_534, 65_534)
        with own.open("rb") as file:
            os.fsync(file.fileno())
        found = run_json("touch_pages.py", own)
    print(found)
    assert found["kind"] == "touch"
    assert "ulimit -l" in str(found["reason"])
    assert found["back"] is True


def test_an_unmapped_model_refuses_by_name(smollm2: Path, tmp_path: Path) -> None:
    async def watch() -> None:
        async with elastic_engine(smollm2, tmp_path, slots=1, load_mode="none") as watched:
            with pytest.raises(NoPageControl):
                await watched.engine.drop([PageRange(file=0, start=0, stop=4096)])

    asyncio.run(watch())


def cells_of(layout: MapLayout, snapshot: Snapshot, layer: int) -> list[int]:
    """Give the cells of one layer."""
    return [int(snapshot.cells[t.first_cell]) for t in layout.tensors if t.layer == layer]
