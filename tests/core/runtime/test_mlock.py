"""Weights that may not be locked: the model loads all the same, and the person is told."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from octavo.core.runtime.instance import UNLOCKED

ROOT = Path(__file__).resolve().parents[3]
SCRIPT = Path(__file__).with_name("lock_weights.py")
# root may lock what it likes, so it gives that right away first
ALLOWANCE = [
    *(["setpriv", "--bounding-set=-ipc_lock"] if os.getuid() == 0 else []),
    "prlimit",
    "--memlock=65536",
]


@pytest.mark.skipif(shutil.which("prlimit") is None, reason="needs util-linux")
@pytest.mark.parametrize("mode", ["mlock", "mmap_mlock"])
def test_c05_a_load_that_may_not_lock_works_and_says_so(mode: str, octavo_home: Path, smollm2: Path) -> None:
    command = [*ALLOWANCE, sys.executable, str(SCRIPT), str(smollm2), str(octavo_home), mode]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["tokens"] == 4
    assert UNLOCKED in told["notes"]
    assert told["locked_kb"] < 1000
