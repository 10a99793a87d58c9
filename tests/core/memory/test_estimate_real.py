"""Both real models in a real worker: what was simulated and forecast is what is there."""

import sys
from pathlib import Path

import pytest

from octavo.core.config.load_config import LoadConfig
from octavo.core.engine.simulate import Simulated, simulate_one
from octavo.core.gguf.shards import read_model
from octavo.core.memory.estimate import estimate
from tests.core.memory.filled import MIB, fill

CONTEXT = 512
"""Tokens; more only takes longer (the soak test has 4,096)."""


@pytest.mark.skipif(sys.platform != "linux", reason="RssAnon is Linux's")
@pytest.mark.parametrize("name", ["smollm2", "gemma"])
def test_a_filled_worker_is_what_was_told_before(
    name: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    check_filled(request.getfixturevalue(name), tmp_path, LoadConfig(context=CONTEXT, threads=1))


def check_filled(model: Path, folder: Path, config: LoadConfig) -> None:
    """Compare simulation, forecast and truth."""
    simulated, forecast = simulate_one(model, config), estimate(read_model(model), config)
    found = fill(model, folder, config)
    assert isinstance(simulated, Simulated)
    for part in ("kv", "compute", "output"):
        assert abs(getattr(simulated, part) / MIB - found.buffers[part]) <= 0.0101, (part, found.buffers)
    assert forecast.components.kv / MIB == pytest.approx(found.buffers["kv"], abs=0.0051)
    difference = forecast.private_bytes - found.anonymous
    figures = (forecast.private_bytes / MIB, found.anonymous / MIB)
    print(f"{model.name}: forecast {figures[0]:.1f} MiB, RssAnon {figures[1]:.1f} MiB")
    assert abs(difference) <= max(24 * MIB, 0.03 * found.anonymous), figures
