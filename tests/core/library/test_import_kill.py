"""Imports that are killed: the source is whole or the target is, and the next start leaves one of them."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from octavo.core.library import Catalog
from octavo.core.library.staging import finish_interrupted
from tests.fixtures.import_units import starter_set

ROOT = Path(__file__).resolve().parents[3]
SHARED_MEMORY = Path("/dev/shm")
TRIES = 24
NEEDED_BYTES = 1 << 30
DEADLINE_S = 60

PROGRAM = """
import sys
from pathlib import Path
from octavo.core.library import ImportMode, plan_import, run_import
plan = plan_import(Path(sys.argv[1]), Path(sys.argv[2]), "p/m", ImportMode(sys.argv[3]))
print("planned", plan.copies_bytes, flush=True)
run_import(plan)
print("done", flush=True)
"""


def test_b12_an_import_killed_at_any_step_loses_nothing_and_leaves_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    other = SHARED_MEMORY if SHARED_MEMORY.is_dir() else tmp_path
    done = subprocess.run(
        [sys.executable, "-P", "-m", "tests.fixtures.killed_imports", str(tmp_path), str(other)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=150,
    )
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout)
    with capsys.disabled():
        print("\n" + "\n".join(f"{what}: {came}" for what, came in figures.items()))
    assert all(came["kills"] == came["undone"] + came["finished"] >= 15 for came in figures.values())


@pytest.fixture
def another_disk() -> Iterator[Path]:
    if not SHARED_MEMORY.is_dir() or shutil.disk_usage(SHARED_MEMORY).free < NEEDED_BYTES:
        pytest.skip("this machine has no shared memory that is big enough")
    with tempfile.TemporaryDirectory(dir=SHARED_MEMORY, prefix="octavo-test-") as folder:
        yield Path(folder)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("mode", ["move", "copy"])
def test_b12_a_set_from_another_disk_killed_at_random_moments(
    mode: str, smollm2: Path, another_disk: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    if another_disk.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("this machine has one file system")
    figures = _Trial(mode, starter_set(smollm2, another_disk / "whole"), another_disk, tmp_path).run()
    with capsys.disabled():
        print(f"\n{mode}, two disks: {figures}")


@pytest.mark.timeout(600)
def test_b12_a_set_on_the_same_disk_killed_at_random_moments(
    smollm2: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    figures = _Trial("move", starter_set(smollm2, tmp_path / "whole"), tmp_path, tmp_path).run()
    with capsys.disabled():
        print(f"\nmove, one disk: {figures}")


class _Trial:
    """Imports a set over and over, killed at moments that are spread over the whole operation."""

    def __init__(self, mode: str, whole: list[Path], sources: Path, library: Path) -> None:
        self.mode, self.whole = mode, whole
        self.sources = [sources / "sources" / path.name for path in whole]
        self.root = library / "models"
        self.targets = [self.root / "p" / "m" / path.name for path in whole]
        self.came: Counter[str] = Counter()

    def run(self) -> dict[str, object]:
        took = self._import(None)
        assert took is not None and self._are_whole(self.targets)
        for number in range(TRIES):
            # spread over the whole operation, and a little by chance
            delay = took * (number + random.random()) / TRIES
            if self._import(delay) is not None:
                self.came["was done before the kill"] += 1
            self._check()
        assert self._import(None) is not None
        assert self._are_whole(self.targets) and self._listed() == ["p/m"]
        return {"kills": TRIES, "whole operation": f"{took:.2f} s", **self.came}

    def _import(self, kill_after_s: float | None) -> float | None:
        """Give the seconds that it took, None if it was killed."""
        self._reset()
        command = [sys.executable, "-P", "-c", PROGRAM, str(self.sources[1]), str(self.root), self.mode]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            assert process.stdout.readline().startswith("planned")
            began = time.monotonic()
            if kill_after_s is not None:
                time.sleep(kill_after_s)
                process.send_signal(signal.SIGKILL)
            told = process.stdout.readline()
            took = time.monotonic() - began
            code = process.wait(DEADLINE_S)
        assert code == 0 or (code == -signal.SIGKILL and kill_after_s is not None)
        return took if told else None

    def _reset(self) -> None:
        shutil.rmtree(self.root, ignore_errors=True)
        shutil.rmtree(self.sources[0].parent, ignore_errors=True)
        self.sources[0].parent.mkdir()
        for path, source in zip(self.whole, self.sources, strict=True):
            source.hardlink_to(path)

    def _check(self) -> None:
        assert self._are_whole(self.sources) or self._are_whole(self.targets)
        staged = any(self.root.rglob(".import-*.part")) if self.root.is_dir() else False
        finish_interrupted(self.root)
        if any(os.path.lexists(path) for path in self.targets):
            assert self._are_whole(self.targets) and self._listed() == ["p/m"]
            assert any(path.exists() for path in self.sources) is (self.mode != "move")
            self.came["finished by the next start" if staged else "whole before it"] += 1
        else:
            assert self._are_whole(self.sources) and self._listed() == []
            self.came["undone by the next start" if staged else "not begun"] += 1
        assert not self.root.is_dir() or not any(self.root.rglob(".*"))

    def _listed(self) -> list[str]:
        models = Catalog([self.root], self.root.parent / "cache" / "catalog").models()
        assert all(model.is_loadable and model.projector for model in models)
        return [model.id for model in models]

    def _are_whole(self, paths: list[Path]) -> bool:
        return all(
            path.is_file() and path.read_bytes() == whole.read_bytes()
            for path, whole in zip(paths, self.whole, strict=True)
        )
