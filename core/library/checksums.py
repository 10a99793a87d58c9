"""What is known of files' SHA-256: as published where they came from, or as first computed here."""

import os
import time
from pathlib import Path
from typing import Literal
from urllib.parse import quote

import msgspec

from octavo.core.config.paths import Home
from octavo.core.errors import StorageFailed
from octavo.core.gguf import printable

FIRST = "first"
"""Source of a checksum that was computed here, since none was published."""

_HEX = frozenset("0123456789abcdef")


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """What the SHA-256 of a file must be, from where we know, and what the file was like then.

    ``source`` is ``first``, or names who published it; ``at`` is when it was noted, seconds since the epoch.
    """

    path: str
    size_bytes: int
    modified_ns: int
    sha256: str
    source: str
    at: float

    @property
    def is_published(self) -> bool:
        """Whether it was published, so that a difference is damage whatever happened meanwhile."""
        return self.source != FIRST


class Checksums:
    """The checksums that are known, a line each in a file of ours; the last line of a path counts.

    Lines are only ever added, so that the service and a command may both note some. Any thread may call.
    """

    def __init__(self, home: Home) -> None:
        self._path = home.root / "checksums.jsonl"
        self._read_from: tuple[int, int] | None = None
        self._known: dict[str, Known] = {}

    def note(self, path: Path, sha256: str, source: str) -> None:
        """Remember what a file's SHA-256 must be (64 hex digits), and who says so.

        Raises ``ValueError`` for what is no SHA-256, and ``StorageFailed``.
        """
        digits = sha256.lower()
        if len(digits) != 64 or not set(digits) <= _HEX:
            raise ValueError(f"{sha256!r} is no SHA-256")
        try:
            status = os.stat(path)
            known = Known(
                path=_written(path),
                size_bytes=status.st_size,
                modified_ns=status.st_mtime_ns,
                sha256=digits,
                source=source,
                at=time.time(),
            )
            self._append(msgspec.json.encode(known) + b"\n")
        except OSError as fault:
            raise StorageFailed(
                f"The checksum of {printable(path)} can't be kept: {fault.strerror}.", path=printable(path)
            ) from fault

    def known(self, path: Path) -> Known | None:
        """Give what a file's SHA-256 must be: as noted, or as the name of a cache's blob says; else None."""
        found = self._all().get(_written(path))
        if found is not None and found.is_published:
            return found
        return _by_name(path) or found

    def _append(self, line: bytes) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(descriptor, line)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def _all(self) -> dict[str, Known]:
        try:
            status = os.stat(self._path)
            state = (status.st_size, status.st_mtime_ns)
            if state != self._read_from:
                self._known = _read(self._path.read_bytes())
                self._read_from = state
        except OSError:
            return {}
        return self._known


def _read(data: bytes) -> dict[str, Known]:
    found: dict[str, Known] = {}
    for line in data.splitlines():
        try:
            known = msgspec.json.decode(line, type=Known)
        except (msgspec.DecodeError, ValueError):
            continue  # cut short by a crash
        found[known.path] = known
    return found


def _by_name(path: Path) -> Known | None:
    """Read the checksum from the name of a blob: both caches name what they hold by its SHA-256."""
    blob = Path(os.path.realpath(path))
    if blob.parent.name != "blobs":
        return None
    digits = blob.name.removeprefix("sha256-")
    if len(digits) != 64 or not set(digits) <= _HEX:
        return None
    source: Literal["Ollama", "the Hub"] = "Ollama" if blob.name.startswith("sha256-") else "the Hub"
    return Known(path=_written(path), size_bytes=-1, modified_ns=-1, sha256=digits, source=source, at=0.0)


def _written(path: Path) -> str:
    # any bytes may be in a name
    return quote(os.fsencode(os.path.abspath(path)))
