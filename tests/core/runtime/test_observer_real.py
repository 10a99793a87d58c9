"""The memory of real workers on the starter model, as the runtime observes it."""

import asyncio
import contextlib
import os
import re
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from octavo.core.engine.protocol import Text
from octavo.core.errors import PagesArePinned, WorkerCrashed
from octavo.core.events import ActionTaken, MemoryGivenBack, MemorySampled, PinChanged, WarmProgressed
from octavo.core.memory.figures import Attribution
from octavo.core.runtime.room import claim_of
from tests.core.runtime.test_runtime_real import NAME, Stage, on_stage
from tests.fixtures.page_cache import copy

TOLERANCE_BYTES = 4 << 20


@pytest.fixture
def own_model(smollm2: Path, tmp_path: Path) -> Path:
    """A copy of the starter model that no other process maps."""
    return copy(smollm2, tmp_path / smollm2.name)


def status_of(pid: int) -> dict[str, int]:
    """Read the kernel's figures of a process in bytes (proc(5))."""
    text = Path(f"/proc/{pid}/status").read_text("ascii")
    return {name: int(count) * 1024 for name, count in re.findall(r"^(Rss\w+):\s+(\d+) kB", text, re.M)}


def sum_of(found: Attribution) -> float:
    return found.queue_s + found.load_s + found.disk_s + found.prefill_s + found.other_s


async def until(is_so: Callable[[], object]) -> None:
    """Wait until something is so; the test's own limit ends it."""
    while not is_so():
        await asyncio.sleep(0.02)


async def resident_share(stage: Stage, layer: int) -> float:
    """Look anew at how much of a layer is in memory."""
    await stage.runtime.observer._tracks[stage.runtime._instances[NAME]].map.newest(max_age_s=0)
    layers = {one.layer: one for one in (await stage.runtime.observer.detail(NAME)).layers}
    found = layers[layer].resident_bytes
    assert found is not None
    return found / layers[layer].total_bytes


def requests_of(stage: Stage) -> list[Attribution]:
    return list(stage.runtime._instances[NAME].memory.requests)


def test_the_figures_are_the_kernels(octavo_home: Path, smollm2: Path) -> None:
    async def play(stage: Stage) -> None:
        await stage.complete(20)
        await asyncio.sleep(0.3)
        (found,) = stage.runtime.observer.sampled().instances
        assert found.process is not None
        real = status_of(found.process.pid)
        for told, kernels in (
            (found.process.private_bytes, real["RssAnon"]),
            (found.process.file_bytes, real["RssFile"]),
            (found.process.shared_bytes, real["RssShmem"]),
            (found.process.resident_bytes, sum(real.values())),
        ):
            assert abs(told - kernels) <= TOLERANCE_BYTES
        assert found.kv is not None and found.kv.used_cells >= 20
        (figures,) = stage.runtime.figures().instances
        assert figures.kv_used == found.kv.used_cells

    on_stage(octavo_home, smollm2, play)


def test_unused_kv_is_given_back_and_told(octavo_home: Path, smollm2: Path) -> None:
    async def play(stage: Stage) -> None:
        await stage.runtime.load("SmolLM2", {"context": 8192})
        await until(lambda: stage.told(MemoryGivenBack))
        given = [event for event in stage.told(MemoryGivenBack) if isinstance(event, MemoryGivenBack)]
        assert (given[0].instance, given[0].model) == (NAME, NAME)
        (tail,) = [event.given for event in given if event.given.kind == "kv_tail"]
        detail = await stage.runtime.observer.detail(NAME)
        assert tail in detail.given_back
        assert detail.kv is not None and detail.kv.committed_bytes + tail.freed_bytes == pytest.approx(
            detail.kv.size_bytes, rel=0.05
        )
        said = [event.text for event in stage.told(ActionTaken) if isinstance(event, ActionTaken)]
        assert f"{NAME} gave back {tail.text}." in said

    on_stage(octavo_home, smollm2, play)


def test_what_was_given_back_stays_promised(octavo_home: Path, smollm2: Path) -> None:
    async def play(stage: Stage) -> None:
        await stage.runtime.load("SmolLM2", {"context": 8192})
        instance = stage.runtime._instances[NAME]
        await until(lambda: instance.memory.given_back)
        claim = claim_of(instance)
        assert instance.report is not None
        estimate = instance.report.estimate
        assert claim.private_bytes == estimate.private_bytes
        # nearly the whole cache is still to come, and no other model may count on it
        assert claim.promised_bytes == claim.private_bytes - claim.taken_bytes
        assert claim.promised_bytes > estimate.components.kv * 0.8
        assert claim.held_bytes == claim.private_bytes

    on_stage(octavo_home, smollm2, play)


def test_the_ledger_takes_what_was_there_before_anything_was_given_back(
    octavo_home: Path, smollm2: Path
) -> None:
    async def play(stage: Stage) -> None:
        await stage.runtime.load("SmolLM2", {"context": 8192})
        instance = stage.runtime._instances[NAME]
        await until(lambda: instance.memory.actual)
        detail = await stage.runtime.observer.detail(NAME)
        assert detail.predicted is not None and detail.actual is not None
        assert detail.actual.kv == pytest.approx(detail.predicted.kv, abs=11 << 10)
        # an interpreter and its libraries, which would vanish if the cache that was given back counted
        assert detail.actual.runtime > 10 << 20
        entry = stage.runtime.assessor.ledger.last(NAME)
        assert entry is not None and entry.actual == detail.actual
        assert entry.anonymous_bytes > detail.actual.kv + detail.actual.runtime - TOLERANCE_BYTES

    on_stage(octavo_home, smollm2, play)


def test_a_request_accounts_for_all_its_time(octavo_home: Path, smollm2: Path) -> None:
    async def play(stage: Stage) -> None:
        first = await stage.complete(8)
        second = await stage.complete(8, model=NAME)
        (loaded, ready) = requests_of(stage)
        assert loaded.load_s == first.timings.load_s > 0.1
        assert ready.load_s == second.timings.load_s == 0
        for found in (loaded, ready):
            assert sum_of(found) == pytest.approx(found.first_token_s)
            assert min(found.queue_s, found.disk_s, found.prefill_s, found.other_s) >= 0
            assert (found.completion_tokens, found.tokens_per_s > 0) == (8, True)
        assert loaded.first_token_s > loaded.load_s
        assert (await stage.runtime.observer.detail(NAME)).requests == [loaded, ready]

    on_stage(octavo_home, smollm2, play)


def test_a_request_that_was_left_is_not_accounted(octavo_home: Path, smollm2: Path) -> None:
    async def play(stage: Stage) -> None:
        async with contextlib.aclosing(stage.runtime.complete(stage.request(400))) as steps:
            async for step in steps:
                if isinstance(step, Text):
                    break
        assert requests_of(stage) == []

    on_stage(octavo_home, smollm2, play)


def test_rates_are_of_this_worker_alone(octavo_home: Path, smollm2: Path) -> None:
    async def play(stage: Stage) -> None:
        with stage.runtime.observer.watch(residency=False):
            _, stream = await stage.first_text(400)
            await until(lambda: stage.runtime.observer.sampled().instances[0].tokens_per_s > 0)
            os.kill(stage.runtime.instances()[0].pid or 0, signal.SIGKILL)
            with pytest.raises(WorkerCrashed):
                await stream
            await stage.complete(60)
            await asyncio.sleep(0.3)
        samples = [event for event in stage.told(MemorySampled) if isinstance(event, MemorySampled)]
        rates = [one.tokens_per_s for sample in samples for one in sample.instances]
        assert min(rates) == 0 < max(rates)
        bytes_read = [one.disk_bytes_per_s for sample in samples for one in sample.instances]
        assert all(told is None or told >= 0 for told in bytes_read)

    on_stage(octavo_home, smollm2, play)


def test_pages_are_dropped_warmed_and_kept(octavo_home: Path, own_model: Path) -> None:
    async def play(stage: Stage) -> None:
        await stage.runtime.load("SmolLM2")
        observer = stage.runtime.observer
        dropped = await observer.drop(NAME, [4])
        assert dropped.page_bytes > 0
        assert dropped.resident_before_bytes is not None and dropped.resident_after_bytes is not None
        freed = dropped.resident_before_bytes - dropped.resident_after_bytes
        assert freed > dropped.page_bytes * 0.8
        assert await resident_share(stage, 4) < 0.1
        await observer.warm(NAME, [4])
        assert await resident_share(stage, 4) > 0.99  # the kernel may take a page for others at any time
        told = [event for event in stage.told(WarmProgressed) if isinstance(event, WarmProgressed)]
        assert told[-1].done_bytes == told[-1].total_bytes
        pin = await observer.pin(NAME, [4])
        assert pin is not None and pin.layers == [4] and pin.pinned_bytes > 0
        with pytest.raises(PagesArePinned):
            await observer.drop(NAME, [3, 4])
        assert await observer.pin(NAME, is_on=False) is None
        assert (await observer.drop(NAME, [4])).page_bytes == dropped.page_bytes
        assert (await stage.complete(4)).completion_tokens == 4

    on_stage(octavo_home, own_model, play)


def test_a_crash_ends_a_pin_and_an_unload_frees_the_maps(octavo_home: Path, own_model: Path) -> None:
    async def play(stage: Stage) -> None:
        await stage.runtime.load("SmolLM2")
        observer = stage.runtime.observer
        await observer.pin(NAME, [0])
        os.kill(stage.runtime.instances()[0].pid or 0, signal.SIGKILL)
        await until(lambda: len(stage.told(PinChanged)) == 2)
        assert (await observer.detail(NAME)).pin is None
        await stage.complete(2)
        assert observer.history(NAME)
        (track,) = observer._tracks.values()
        await stage.runtime.unload(NAME)
        assert observer._tracks == {}
        assert track.map.history() == []
        mapped = [line for line in Path("/proc/self/maps").read_text().splitlines() if str(own_model) in line]
        assert mapped == []

    on_stage(octavo_home, own_model, play)
