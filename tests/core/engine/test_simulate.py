"""llama.cpp's own allocator, asked in a child process."""

import sys
from pathlib import Path

import pytest

from octavo.core.config.load_config import FlashAttention, LoadConfig
from octavo.core.engine import simulate as module
from octavo.core.engine.simulate import (
    Refused,
    Simulated,
    SimulationCache,
    Task,
    simulate,
    simulate_one,
)
from octavo.core.engine.simulate_process import Simulator
from octavo.core.errors import LoadFailed, WorkerCrashed
from octavo.core.gguf.shards import read_model
from octavo.core.memory.estimate import estimate
from octavo.core.memory.shape import read_shape
from tests.fixtures.zoo_models import MODELS

MIB = 1024 * 1024
CONFIGS = [LoadConfig(context=2048), LoadConfig(context=4096, slots=1, kv_k="q8_0", kv_v="q8_0")]


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A header and a hole."""
    path = MODELS["llama3.2-1b-tied"]().write(tmp_path_factory.mktemp("zoo"))
    assert path.stat().st_blocks * 512 < 1 * MIB < path.stat().st_size
    return path


def test_a_file_without_weights_is_enough(llama: Path) -> None:
    first, second = simulate(llama, CONFIGS)
    assert isinstance(first, Simulated) and isinstance(second, Simulated)
    assert (first.kv, second.kv) == (64 * MIB, 128 * MIB * 34 // 64)
    assert (first.n_ctx, first.n_ctx_per_slot) == (2048, 2048)
    assert first.recurrent == 0 and first.compute > 0
    assert first.total == first.kv + first.compute + first.output + sum(first.weights.values())


def test_the_log_says_the_same_as_the_exact_symbol(llama: Path) -> None:
    exact, rounded = (
        module._run(Task(str(llama), CONFIGS, may_use_breakdown=may_use)) for may_use in (True, False)
    )
    for a, b in zip(exact, rounded, strict=True):
        assert isinstance(a, Simulated) and isinstance(b, Simulated)
        assert a.is_exact and not b.is_exact
        assert abs(a.kv - b.kv) < 0.011 * MIB and abs(a.compute - b.compute) < 0.011 * MIB
        assert sum(a.weights.values()) == sum(b.weights.values())


def test_a_symbol_that_disagrees_with_the_log_is_not_believed() -> None:
    class Liar:
        asked = 0

        def read(self, context: object) -> dict[str, tuple[int, int, int]]:
            self.asked += 1
            return {"CPU": (100, 7, 7)}

    simulator, liar = Simulator.__new__(Simulator), Liar()
    simulator._breakdown = liar  # type: ignore[assignment]
    simulator._recorder = _SilentRecorder()  # type: ignore[assignment]
    rounded = Simulated(
        n_ctx=256,
        n_ctx_per_slot=256,
        kv=MIB,
        recurrent=0,
        compute=MIB,
        output=0,
        weights={"CPU": 100},
        is_exact=False,
    )
    assert simulator._exact(None, rounded) is rounded
    assert simulator._exact(None, rounded) is rounded
    assert liar.asked == 1


class _SilentRecorder:
    def figures(self, pattern: object) -> list[int]:
        return [MIB]


def test_a_refused_context_gives_llama_cpps_reason_and_does_not_end_the_rest(tmp_path: Path) -> None:
    path = MODELS["deepseek2-lite-mla"]().write(tmp_path)
    refused, fine = simulate(
        path, [LoadConfig(context=2048, kv_k="f16", kv_v="q8_0"), LoadConfig(context=2048)]
    )
    assert isinstance(refused, Refused) and "K (f16) and V (q8_0)" in refused.reason
    assert isinstance(fine, Simulated)


def test_a_file_that_llama_cpp_refuses_is_a_typed_error(tmp_path: Path) -> None:
    path = tmp_path / "broken.gguf"
    path.write_bytes(b"GGUF" + bytes(64))
    with pytest.raises(LoadFailed) as caught:
        simulate_one(path, LoadConfig(context=2048))
    assert caught.value.details["log"]


ABORT = "import os, signal, sys; os.kill(os.getpid(), signal.SIGABRT)"
ABORT_WITH_SYMBOL = """
import io, os, signal, sys
task = sys.stdin.buffer.read()
if b'"may_use_breakdown":true' in task:
    os.kill(os.getpid(), signal.SIGABRT)
sys.stdin = io.TextIOWrapper(io.BytesIO(task))
from octavo.core.engine.simulate_process import main
main()
"""


def test_a_crash_of_the_child_is_a_typed_error(llama: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_program", lambda: [sys.executable, "-c", ABORT])
    with pytest.raises(WorkerCrashed) as caught:
        simulate_one(llama, LoadConfig(context=2048))
    assert caught.value.details["signal"] == "SIGABRT"


def test_after_a_crash_the_log_alone_is_tried(llama: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_program", lambda: [sys.executable, "-c", ABORT_WITH_SYMBOL])
    found = simulate_one(llama, LoadConfig(context=2048))
    assert isinstance(found, Simulated) and not found.is_exact and found.kv == 64 * MIB


def test_results_are_kept_by_file_and_parameters(
    llama: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = SimulationCache(tmp_path / "cache", "0.3.36")
    first = cache.simulate(llama, CONFIGS)
    monkeypatch.setattr(module, "simulate", lambda *_: pytest.fail("it was known"))
    assert cache.simulate(llama, CONFIGS) == first
    assert cache.simulate(llama, [LoadConfig(context=2048, threads=7, ttl_s=5)]) == first[:1]
    assert SimulationCache(tmp_path / "cache", "0.3.36").simulate(llama, CONFIGS[1:]) == first[1:]
    with pytest.raises(pytest.fail.Exception):
        SimulationCache(tmp_path / "cache", "0.3.37").simulate(llama, CONFIGS)


def test_a_broken_cache_file_is_simulated_again(llama: Path, tmp_path: Path) -> None:
    cache = SimulationCache(tmp_path, "0.3.36")
    first = cache.simulate(llama, CONFIGS[:1])
    next(tmp_path.iterdir()).write_bytes(b"{")
    assert cache.simulate(llama, CONFIGS[:1]) == first


@pytest.mark.parametrize("slots", [16, 256])
def test_the_forecast_holds_with_many_slots_and_without_flash_attention(gemma: Path, slots: int) -> None:
    shape = read_shape(read_model(gemma))
    plain = LoadConfig(context=4096, slots=slots)
    configs = [plain, LoadConfig(context=4096, slots=slots, flash_attention=FlashAttention.OFF)]
    for config, outcome in zip(configs, simulate(gemma, configs), strict=True):
        assert isinstance(outcome, Simulated)
        found = estimate(shape, config).components
        assert found.kv == outcome.kv
        total = found.kv + found.compute + found.output + shape.weights.total
        assert total == pytest.approx(outcome.total, abs=16 * MIB, rel=0.02), (found.compute, outcome.compute)
