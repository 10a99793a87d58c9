"""What every test may ask for: the two real models, and an ``OCTAVO_HOME`` of its own."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import hypothesis
import pytest

ROOT = Path(__file__).resolve().parent.parent
MODELS = ROOT / ".models"

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
hypothesis.settings.register_profile("octavo", deadline=None)  # a busy machine is no failing property
hypothesis.settings.load_profile("octavo")


def model(name: str) -> Path:
    """Return a model that set-up fetched; a test that lacks one fails, it isn't skipped."""
    path = MODELS / name
    if not path.is_file():
        pytest.fail(f"{name} is not in .models: run make test", pytrace=False)
    return path


@contextmanager
def short_folder() -> Iterator[Path]:
    """Lend a temporary folder with a short path; a service that still ends may write while it goes."""
    folder = Path(tempfile.mkdtemp(prefix="octavo-"))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def smollm2() -> Path:
    """SmolLM2-135M-Instruct Q4_1, the starter model."""
    return model("SmolLM2-135M-Instruct.Q4_1.gguf")


@pytest.fixture(scope="session")
def gemma() -> Path:
    """Gemma 3 270M Q4_K_M: a base model with sliding-window attention and a vocabulary of 262k."""
    return model("gemma-3-270m-q4_k_m.gguf")


@pytest.fixture(scope="session", autouse=True)
def no_home_of_a_person() -> Iterator[None]:
    """Keep every test, also one that asks for nothing, away from the data of whoever runs it."""
    with short_folder() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setenv("OCTAVO_HOME", str(folder))
        # the models of other programs, and the trash, are those of nobody
        for variable in ("HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "HF_HOME", "OLLAMA_MODELS"):
            patch.setenv(variable, str(folder / "person" / variable.lower()))
        (folder / "person" / "home").mkdir(parents=True)
        for variable in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"):
            patch.delenv(variable, raising=False)
        patch.delenv("OCTAVO_STARTER_MODEL", raising=False)
        yield


@pytest.fixture
def octavo_home(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty ``OCTAVO_HOME``, short enough that a socket below it stays under 108 bytes."""
    with short_folder() as folder:
        monkeypatch.setenv("OCTAVO_HOME", str(folder))
        yield folder
