"""Three verdicts, and a token rate that the measured one lies in."""

import json
import os
import sys
from pathlib import Path

import hypothesis.strategies as st
import msgspec
import pytest
from hypothesis import given

from octavo.core.memory.types import Bandwidth
from octavo.core.memory.verdict import WIDEST_BAND, judge, token_rate
from tests.core.memory.values import MB, budget, estimated
from tests.fixtures.big_model import big_model
from tests.fixtures.cgroups import forget_pages, memory_group, run_inside

DISK = Bandwidth(1e9, 2e9)
NEEDED = 600 + 100 + 512 * 50_000 // MB + 40


def test_what_fits_is_resident() -> None:
    verdict = judge(estimated(), budget(NEEDED + 1), DISK)
    assert (verdict.kind, verdict.tokens_per_second, verdict.disk_bytes_per_token) == ("resident", None, 0)
    assert "≤" in verdict.inequality


def test_weights_that_do_not_fit_page() -> None:
    verdict = judge(estimated(), budget(500), DISK)
    assert verdict.kind == "pages"
    assert 300 * MB < verdict.disk_bytes_per_token <= 600 * MB
    assert verdict.tokens_per_second is not None
    assert 0.5 < verdict.tokens_per_second.low < verdict.tokens_per_second.high < 5


def test_private_bytes_over_the_budget_will_not_run() -> None:
    verdict = judge(estimated(), budget(150), DISK)
    assert verdict.kind == "wont_run"
    assert ">" in verdict.inequality and "143 MiB" in verdict.inequality


def test_pages_that_other_models_read_are_no_room() -> None:
    shared = msgspec.structs.replace(budget(NEEDED + 100), mapped_in_use_bytes=200 * MB)
    assert judge(estimated(), shared, DISK).kind == "pages"


def test_experts_are_read_as_often_as_they_are_missing() -> None:
    model = estimated(mapped=100, experts=1000, share=0.1)
    half = judge(model, budget(166 + 100 + 500), DISK)
    assert half.kind == "pages"
    assert half.disk_bytes_per_token == pytest.approx(1000 * MB * 0.1 * 0.5, rel=0.01)
    assert judge(model, budget(166 + 100 + 900), DISK).disk_bytes_per_token < half.disk_bytes_per_token


@given(
    room=st.integers(0, 2_000),
    mapped=st.integers(1, 50_000),
    experts=st.integers(0, 50_000),
    share=st.floats(0.01, 1),
    low=st.floats(1e7, 1e10),
    spread=st.floats(1, 20),
)
def test_every_band_is_of_use(
    room: int, mapped: int, experts: int, share: float, low: float, spread: float
) -> None:
    model = estimated(mapped=mapped, experts=experts, share=share)
    rate = token_rate(model, room * MB, Bandwidth(low, low * spread))
    assert 0 < rate.low <= rate.high <= rate.low * WIDEST_BAND * 1.001


LIMIT = 400_000_000
RUNS, TOKENS = 5, 8

PROGRAM = """
import asyncio, contextlib, json, sys
from pathlib import Path
from octavo.core.config.paths import Home
from octavo.core.config.settings import SettingsFile
from octavo.core.engine.client import Engine
from octavo.core.engine.protocol import Finished, Generate, Load, Sampling
from octavo.core.library.catalog import Catalog
from octavo.core.runtime.assess import Assessor

path, home, runs, tokens = Path(sys.argv[1]), Home(Path(sys.argv[2])), int(sys.argv[3]), int(sys.argv[4])
model = Catalog([], home.cache / "index").find(str(path))
assessor = Assessor(home, SettingsFile(home.settings))
said = {"context": 512, "slots": 1, "batch": 64, "micro_batch": 64, "threads": 1}
report = assessor.assess(model, said)
too_much = assessor.assess(model, said | {"context": 4096})

async def rates():
    engine = Engine(Load(str(path), report.estimate.config), home.root / "log", lambda share: None)
    await engine.start()
    for _ in range(runs):
        command = Generate(engine.next_request(), [], tokens=[1, 5, 6], max_tokens=tokens, ignore_end=True,
                           sampling=Sampling(temperature=0))
        async with contextlib.aclosing(engine.generate(command)) as reports:
            async for told in reports:
                if isinstance(told, Finished):
                    yield (told.completion_tokens - 1) / told.timings.decode_s
    await engine.stop()

async def main():
    rate = report.verdict.tokens_per_second
    print(json.dumps({
        "verdict": report.verdict.kind, "low": rate and rate.low, "high": rate and rate.high,
        "limited_by": report.budget.limited_by, "too_much": too_much.verdict.kind,
        "inequality": too_much.verdict.inequality, "measured": [rate async for rate in rates()],
    }))

asyncio.run(main())
"""


@pytest.mark.timeout(300)
def test_c06_a_model_larger_than_its_cgroup_pages_at_the_told_rate(tmp_path: Path) -> None:
    """Needs a memory cgroup, so root; it is skipped elsewhere and says so."""
    with memory_group(LIMIT) as group:
        path = big_model(tmp_path / "big.gguf", 36)
        assert path.stat().st_size > 1.5 * LIMIT
        forget_pages(path)
        command = [sys.executable, "-c", PROGRAM, str(path), str(tmp_path), str(RUNS), str(TOKENS)]
        told = json.loads(run_inside(group, command, dict(os.environ), 200))
    measured = ", ".join(f"{rate:.2f}" for rate in told["measured"])
    print(f"told {told['low']:.2f}–{told['high']:.2f} tok/s, measured {measured}; {told['inequality']}")
    assert (told["verdict"], told["limited_by"], told["too_much"]) == ("pages", "cgroup", "wont_run")
    assert told["high"] / told["low"] <= WIDEST_BAND * 1.001
    assert len(told["measured"]) == RUNS
    # the goal, 5 of 5 within the band, is for a quiet machine (printed; OCTAVO_MEASURE=1 asks for it)
    slack = 1.0 if os.environ.get("OCTAVO_MEASURE") else 4.0
    assert all(told["low"] / slack <= rate <= told["high"] * slack for rate in told["measured"])
