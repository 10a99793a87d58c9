"""What tests of imports share: a person's home, a library, and where other disks come from."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from octavo.core.library import plans

CACHES = ("XDG_CACHE_HOME", "HF_HOME", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "OLLAMA_MODELS")


def person_at(home: Path, patch: pytest.MonkeyPatch) -> None:
    """Give a person a home folder, so that nobody's real caches matter; what is new isn't waited for."""
    home.mkdir()
    patch.setenv("HOME", str(home))
    for name in CACHES:
        patch.delenv(name, raising=False)
    patch.setattr(plans, "QUIET_S", 0.0)


def tree(root: Path) -> list[str]:
    """List all that is below ``root``."""
    return sorted(str(path.relative_to(root)) for path in root.rglob("*"))


@contextmanager
def mounted(folder: Path, options: str) -> Iterator[Path]:
    """Mount a file system in memory; skips the test where this person may not."""
    folder.mkdir(parents=True, exist_ok=True)
    command = ["mount", "-t", "tmpfs", "-o", options, "octavo-test", str(folder)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20)
    except OSError as error:
        pytest.skip(f"there is no mount: {error}")
    if done.returncode:
        pytest.skip(f"nothing can be mounted here: {done.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True, timeout=20)


def remount(folder: Path, options: str) -> None:
    """Change how a file system is mounted."""
    subprocess.run(["mount", "-o", f"remount,{options}", str(folder)], check=True, timeout=20)


def fill(folder: Path, keep_free_bytes: int) -> Path:
    """Fill the disk of ``folder`` but for some bytes; gives the file that fills it."""
    path = folder / "filler"
    free = os.statvfs(folder).f_bavail * os.statvfs(folder).f_frsize
    with open(path, "wb") as file:
        os.posix_fallocate(file.fileno(), 0, max(free - keep_free_bytes, 1))
    return path
