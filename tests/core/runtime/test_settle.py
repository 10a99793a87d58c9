"""Uncertain figures are replaced by those of llama.cpp's own allocator, and kept."""

from pathlib import Path

import msgspec
import pytest

from octavo.core.config.load_config import LoadConfig
from octavo.core.config.paths import Home
from octavo.core.engine import simulate as simulation
from octavo.core.gguf.shards import read_model
from octavo.core.memory.estimate import estimate
from octavo.core.memory.types import Estimate
from octavo.core.runtime.settle import SIMULATED, Settler
from tests.fixtures.zoo_models import MODELS

CONFIG = LoadConfig(context=2048)


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A header and a hole."""
    return MODELS["llama3.2-1b-tied"]().write(tmp_path_factory.mktemp("zoo"))


def uncertain(path: Path) -> tuple[Estimate, Estimate]:
    """Give the exact estimate, and one that is wrong and says that it may be."""
    exact = estimate(read_model(path), CONFIG)
    wrong = msgspec.structs.replace(exact.components, kv=1, compute=1)
    return exact, msgspec.structs.replace(exact, components=wrong, confidence="approximate")


def test_an_uncertain_estimate_is_settled_once(
    llama: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    exact, guess = uncertain(llama)
    settled = Settler(Home(tmp_path)).settled(llama, CONFIG, guess)
    assert settled.confidence == "exact"
    assert settled.components.kv == exact.components.kv
    assert settled.components.compute > 1_000_000
    assert settled.private_bytes == settled.components.private_bytes
    assert SIMULATED in settled.reasons

    def unwanted(*_: object) -> None:
        raise AssertionError("it was kept")

    monkeypatch.setattr(simulation, "simulate", unwanted)
    assert Settler(Home(tmp_path)).settled(llama, CONFIG, guess) == settled


def test_an_exact_estimate_is_not_asked_about(tmp_path: Path, llama: Path) -> None:
    exact, _ = uncertain(llama)
    assert Settler(Home(tmp_path)).settled(tmp_path / "not even there", CONFIG, exact) is exact


def test_what_can_not_be_simulated_keeps_its_estimate_and_says_why(llama: Path, tmp_path: Path) -> None:
    _, guess = uncertain(llama)
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(llama.read_bytes()[:2000])
    settled = Settler(Home(tmp_path)).settled(broken, CONFIG, guess)
    assert (settled.components, settled.confidence) == (guess.components, "approximate")
    assert "could not be asked" in settled.reasons[-1]
