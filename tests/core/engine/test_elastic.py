"""Memory that a model does not need goes back, and no token changes by it."""

import asyncio
import ctypes
import mmap
from pathlib import Path

import pytest

from octavo.core.config.load_config import LoadMode
from octavo.core.engine.cells import CellPool
from octavo.core.engine.kv_tail import ASTRAY, KvTail, may_follow
from octavo.core.engine.maps import regions
from octavo.core.engine.tensors import KvTensor
from octavo.core.memory.figures import KvFigures
from tests.core.engine.elastic_engine import Watched, elastic_engine
from tests.core.engine.real_engine import Answer, ask
from tests.fixtures.big_model import big_model

MIB = 1 << 20
CONTEXT = 32_768
MARKERS = ("apple", "river", "stone", "tiger")


def prompt_of(marker: str, times: int) -> str:
    """Give a prompt whose continuation has a clear winner at each step."""
    return ", ".join([marker] * times) + ","


async def four(watched: Watched) -> list[Answer]:
    """Fill four slots at once."""
    prompts = [prompt_of(marker, 12) for marker in MARKERS]
    return list(await asyncio.gather(*(ask(watched.engine, text, 64, ignore_end=True) for text in prompts)))


async def one(watched: Watched) -> list[Answer]:
    """Use 200 cells of one slot."""
    return [await ask(watched.engine, prompt_of("apple", 68), 64, ignore_end=True)]


def kv_of(watched: Watched) -> KvFigures:
    """Give the newest figures of the cache."""
    assert watched.engine.figures is not None
    return watched.engine.figures.kv


@pytest.mark.parametrize(
    ("fill", "config"),
    [
        (one, {"slots": 1}),
        (four, {"slots": 4}),
        (four, {"slots": 4, "kv_unified": False}),
        (one, {"slots": 1, "kv_k": "q8_0", "kv_v": "q8_0"}),
        (four, {"slots": 4, "kv_k": "q8_0", "kv_v": "q8_0"}),
    ],
    ids=["one slot", "four slots", "four pools", "one slot, q8_0", "four slots, q8_0"],
)
def test_unused_kv_goes_back_and_the_tokens_stay_the_same(
    fill, config: dict[str, object], smollm2: Path, tmp_path: Path
) -> None:
    async def compare() -> None:
        async with elastic_engine(smollm2, tmp_path, context=CONTEXT, elastic=False, **config) as watched:
            wanted = await fill(watched)
            kept, whole = (await watched.settled()).private_bytes, kv_of(watched)
        assert whole.committed_bytes == whole.size_bytes
        async with elastic_engine(smollm2, tmp_path, context=CONTEXT, **config) as watched:
            got = await fill(watched)
            now, kv = (await watched.settled()).private_bytes, kv_of(watched)
            events = [(given.kind, given.text) for given in watched.given_back]
        unused = kv.size_bytes * (1 - kv.used_cells / kv.size_cells)
        print(
            f"{kept / MIB:.0f} -> {now / MIB:.0f} MiB, {(kept - now) / unused:.1%} of the unused cells' bytes"
        )
        print(kv.used_cells, "cells used;", events)
        assert [answer.tokens for answer in got] == [answer.tokens for answer in wanted]
        assert kept - now >= 0.8 * unused
        assert any(kind == "kv_tail" and text.endswith("of unused KV") for kind, text in events)

    asyncio.run(compare())


def test_the_cache_grows_again_and_shrinks_when_a_long_prompt_is_forgotten(
    smollm2: Path, tmp_path: Path
) -> None:
    async def watch() -> None:
        async with elastic_engine(smollm2, tmp_path, context=CONTEXT, slots=1) as watched:
            first = await ask(watched.engine, prompt_of("apple", 12), 32, ignore_end=True)
            small = kv_of(watched).committed_bytes
            await ask(watched.engine, prompt_of("river", 600), 8, ignore_end=True)
            large, grown = kv_of(watched).committed_bytes, (await watched.settled()).private_bytes
            again = await ask(watched.engine, prompt_of("apple", 12), 32, ignore_end=True)
            back, shrunk = kv_of(watched).committed_bytes, (await watched.settled()).private_bytes
            print(f"committed {small / MIB:.0f}, {large / MIB:.0f}, {back / MIB:.0f} MiB")
            print([given.text for given in watched.given_back])
            assert large > 4 * small
            assert back == small
            assert grown - shrunk >= 0.8 * (large - back)
            assert again.tokens == first.tokens
            assert len(watched.given_back) == 2

    asyncio.run(watch())


def test_a_window_models_full_layers_give_back_too(gemma: Path, tmp_path: Path) -> None:
    async def compare() -> None:
        async with elastic_engine(gemma, tmp_path, context=CONTEXT, slots=1, elastic=False) as watched:
            wanted = await ask(watched.engine, prompt_of("apple", 12), 64, ignore_end=True)
        async with elastic_engine(gemma, tmp_path, context=CONTEXT, slots=1) as watched:
            got = await ask(watched.engine, prompt_of("apple", 12), 64, ignore_end=True)
            print([given.text for given in watched.given_back])
            assert any(
                given.kind == "kv_tail" and given.freed_bytes > 80 * MIB for given in watched.given_back
            )
        assert got.tokens == wanted.tokens

    asyncio.run(compare())


def test_pages_of_repacked_weights_go_back(tmp_path: Path) -> None:
    model = big_model(tmp_path / "big.gguf", 6, "Q4_0")

    async def load(*, elastic: bool) -> tuple[Answer, int, list[str], list[str]]:
        async with elastic_engine(model, tmp_path, repack=True, slots=1, elastic=elastic) as watched:
            answer = await ask(watched.engine, [1, 300, 400, 500], 16, ignore_end=True)
            sampled = await watched.settled()
            log = watched.engine.log_lines()
            given = [event.text for event in watched.given_back if event.kind == "weight_sources"]
            return answer, sampled.file_bytes, log, given

    wanted, doubled, log, nothing = asyncio.run(load(elastic=False))
    copied = sum(float(line.split("=")[1].split()[0]) for line in log if "CPU_REPACK model buffer" in line)
    if not copied:
        pytest.skip("this build or machine does not repack: no AVX2, or a build without it")
    got, lean, _, given = asyncio.run(load(elastic=True))
    share = (doubled - lean) / (2 * copied * MIB)  # each copied byte was there twice
    print(
        f"mapped {doubled / MIB:.0f} -> {lean / MIB:.0f} MiB; {copied:.0f} MiB copied; {share:.1%}; {given}"
    )
    assert not nothing
    assert given
    assert share >= 0.45
    assert got.tokens == wanted.tokens


def test_a_table_that_is_looked_up_by_row_leaves_the_map(tmp_path: Path) -> None:
    model = big_model(tmp_path / "big.gguf", 1)  # its output is a tensor of its own

    async def load() -> None:
        async with elastic_engine(model, tmp_path, slots=1, elastic=False) as watched:
            wanted = await ask(watched.engine, [1, 300, 400, 500], 16, ignore_end=True)
        async with elastic_engine(model, tmp_path, slots=1) as watched:
            got = await ask(watched.engine, [1, 300, 400, 500], 16, ignore_end=True)
            assert watched.given_back[0].kind == "unread_tensors"
            assert watched.given_back[0].freed_bytes >= 2 * MIB
        assert got.tokens == wanted.tokens

    asyncio.run(load())


def test_weights_that_are_no_mapping_have_no_pages_to_move(smollm2: Path, tmp_path: Path) -> None:
    async def load() -> None:
        async with elastic_engine(smollm2, tmp_path, slots=1, load_mode=LoadMode.NONE) as watched:
            assert "not mapped" in watched.engine.ready().page_control

    asyncio.run(load())


def test_the_output_buffer_is_one_row_a_slot(smollm2: Path, tmp_path: Path) -> None:
    async def load() -> None:
        async with elastic_engine(smollm2, tmp_path, slots=4) as watched:
            (line,) = [line for line in watched.engine.log_lines() if "output buffer size" in line]
            vocabulary = watched.engine.ready().vocabulary
            assert float(line.split("=")[1].split()[0]) == pytest.approx(4 * 4 * vocabulary / MIB, abs=0.01)

    asyncio.run(load())


def test_cells_where_none_are_expected_end_the_giving_back() -> None:
    cells, row = 8192, 4096
    memory = mmap.mmap(-1, cells * row, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    memory.write(b"\1" * (cells * row))
    pool = CellPool(cells, 64)
    tail = KvTail([KvTensor("cache_k_l0", address, row, cells, 1)], [pool], regions())
    assert tail.give_back() == (cells - 256) * row
    assert (tail.reason, tail.committed_bytes) == ("", 256 * row)
    memory[: 5000 * row] = b"\2" * (5000 * row)  # a long prompt comes, and is forgotten at once
    pool.place([(0, 0, 5000)])
    pool.keep(0, 10)
    assert tail.give_back() == (5120 - 256) * row
    memory[7000 * row] = 3  # llama.cpp writes where we know of no cell
    pool.place([(0, 10, 4990)])
    pool.keep(0, 10)
    assert tail.give_back() == 0
    assert tail.reason == ASTRAY


def test_recurrent_and_one_sized_window_caches_are_left_alone() -> None:
    rows = [KvTensor("cache_k_l0", 0, 64, 2048, 1), KvTensor("cache_k_l1", 0, 64, 2048, 1)]
    mixed = [*rows, KvTensor("cache_k_l2", 0, 64, 512, 1)]
    assert may_follow(rows, has_state=False, sliding_window=0)
    assert not may_follow(rows, has_state=True, sliding_window=0)
    assert not may_follow(rows, has_state=False, sliding_window=512)
    assert may_follow(mixed, has_state=False, sliding_window=512)


def test_a_prompt_that_is_called_off_leaves_no_memory_behind(smollm2: Path, tmp_path: Path) -> None:
    async def watch() -> None:
        async with elastic_engine(smollm2, tmp_path, context=CONTEXT, slots=2) as watched:
            wanted = await ask(watched.engine, prompt_of("apple", 12), 24, ignore_end=True)
            small = kv_of(watched).committed_bytes
            for times in (700, 500, 900):
                begun = asyncio.create_task(ask(watched.engine, prompt_of("river", times), 4))
                await asyncio.sleep(1.2)
                begun.cancel()
                await asyncio.gather(begun, return_exceptions=True)
                got = await ask(watched.engine, prompt_of("apple", 12), 24, ignore_end=True)
                assert got.tokens == wanted.tokens
            await watched.settled()
            committed = kv_of(watched).committed_bytes
            print(f"committed {small / MIB:.0f}, then {committed / MIB:.0f} MiB", kv_of(watched))
            print([given.text for given in watched.given_back])
            assert committed - small < 40 * MIB

    asyncio.run(watch())
