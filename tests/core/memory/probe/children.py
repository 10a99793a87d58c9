"""A child process that does what it is told, for the probe to look at."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[4]
MIB = 1 << 20
PROGRAM = """
import gc, mmap, os, sys, threading
gc.disable()
print("ready", flush=True)
for line in sys.stdin:
    exec(line)
    print("done", flush=True)
"""


class Child:
    """A Python process that runs one line after the other."""

    def __init__(self) -> None:
        pipe = subprocess.PIPE
        self.process = subprocess.Popen([sys.executable, "-Sc", PROGRAM], stdin=pipe, stdout=pipe, text=True)
        self._wait_for("ready")

    @property
    def pid(self) -> int:
        """The process's number."""
        return self.process.pid

    def run(self, line: str) -> None:
        """Have a line run, and wait until it is done."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()
        self._wait_for("done")

    def end(self) -> None:
        """Close its input and wait for its end."""
        self.process.communicate(timeout=30)

    def _wait_for(self, word: str) -> None:
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == f"{word}\n"


@contextmanager
def child() -> Iterator[Child]:
    """Lend a child process."""
    made = Child()
    try:
        yield made
    finally:
        if made.process.returncode is None:
            made.end()


@contextmanager
def disk_folder(tmp_path: Path) -> Iterator[Path]:
    """Lend a folder on a real disk; skips, saying so, where neither the temporary one nor the checkout is."""
    if _is_on_a_disk(tmp_path):
        yield tmp_path
    elif _is_on_a_disk(ROOT):
        with tempfile.TemporaryDirectory(prefix=".octavo-test-", dir=ROOT) as folder:
            yield Path(folder)
    else:
        pytest.skip("no folder on a block device: neither the temporary folder nor the checkout is on one")


def _is_on_a_disk(folder: Path) -> bool:
    # tmpfs, overlay and network file systems have made-up devices, whose major number is 0
    return os.major(folder.stat().st_dev) != 0
