"""Find models that are on disk twice: by size first, then by samples of what equally large files hold."""

import hashlib
import os
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import msgspec

from octavo.core.config.settings import write_atomically
from octavo.core.errors import StorageFailed
from octavo.core.gguf import printable
from octavo.core.library.models import Model

SAMPLES = 24
"""Blocks that are read of a file, spread evenly, its first and last among them."""

SAMPLE_BYTES = 64 << 10
_FORMAT = 1


class Duplicates(msgspec.Struct, frozen=True, kw_only=True):
    """Models with the same content, as far as size and samples tell.

    ``wasted_bytes`` is what deleting all but one would free: names of one file (links) waste nothing.
    """

    fingerprint: str
    size_bytes: int
    wasted_bytes: int
    models: list[str]
    paths: list[str]


class _Remembered(msgspec.Struct, frozen=True, array_like=True):
    size_bytes: int
    modified_ns: int
    fingerprint: str


class _Saved(msgspec.Struct, frozen=True):
    format: int
    files: dict[bytes, _Remembered]


class Fingerprints:
    """Fingerprints of files, remembered by path, size and time of change in ``cache_path``."""

    def __init__(self, cache_path: Path) -> None:
        self._path = cache_path
        self._known = self._load()

    def of(self, path: Path) -> str | None:
        """Give the fingerprint of a file; None where it can't be read."""
        try:
            status = os.stat(path)
            key, known = os.fsencode(path), self._known.get(os.fsencode(path))
            if known and (known.size_bytes, known.modified_ns) == (status.st_size, status.st_mtime_ns):
                return known.fingerprint
            found = _sampled(path, status.st_size)
        except OSError:
            return None
        self._known[key] = _Remembered(status.st_size, status.st_mtime_ns, found)
        return found

    def save(self) -> None:
        """Keep what was computed; a cache that can't be written costs time only."""
        try:
            write_atomically(self._path, msgspec.msgpack.encode(_Saved(_FORMAT, self._known)))
        except StorageFailed:
            return

    def _load(self) -> dict[bytes, _Remembered]:
        try:
            saved = msgspec.msgpack.decode(self._path.read_bytes(), type=_Saved)
        except (OSError, msgspec.DecodeError, ValueError):
            return {}
        return saved.files if saved.format == _FORMAT else {}


def duplicates(models: Sequence[Model], fingerprints: Fingerprints) -> list[Duplicates]:
    """Group the models that are on disk more than once, the most wasteful first.

    Only files that are as large as another are opened, and of those some blocks are read.
    """
    sizes: dict[tuple[int, int], list[Model]] = defaultdict(list)
    for model in models:
        if not model.is_offline and model.size_bytes:
            sizes[model.size_bytes, len(model.files)].append(model)
    groups: dict[str, list[Model]] = defaultdict(list)
    for alike in sizes.values():
        for model in alike if len(alike) > 1 else []:
            if mark := _of_model(model, fingerprints):
                groups[mark].append(model)
    fingerprints.save()
    found = [_told(mark, group) for mark, group in groups.items() if len(group) > 1]
    return sorted(found, key=lambda one: (-one.wasted_bytes, one.models))


def _of_model(model: Model, fingerprints: Fingerprints) -> str | None:
    marks = [fingerprints.of(path) for path in model.files]
    if not all(marks):
        return None
    whole = "".join(mark or "" for mark in marks)
    return whole if len(marks) == 1 else hashlib.blake2b(whole.encode(), digest_size=16).hexdigest()


def _told(mark: str, group: list[Model]) -> Duplicates:
    copies = {_number(model.path) for model in group}
    return Duplicates(
        fingerprint=mark,
        size_bytes=group[0].size_bytes,
        wasted_bytes=group[0].size_bytes * (len(copies) - 1),
        models=[model.id for model in group],
        paths=[printable(model.path) for model in group],
    )


def _number(path: Path) -> tuple[int, int] | Path:
    try:
        status = os.stat(path)
    except OSError:
        return path
    return (status.st_dev, status.st_ino)


def _sampled(path: Path, size: int) -> str:
    digest = hashlib.blake2b(size.to_bytes(8, "little"), digest_size=16)
    last = max(0, size - SAMPLE_BYTES)
    with open(path, "rb", buffering=0) as file:
        for offset in sorted({last * number // (SAMPLES - 1) for number in range(SAMPLES)}):
            file.seek(offset)
            digest.update(file.read(SAMPLE_BYTES))
    return digest.hexdigest()
