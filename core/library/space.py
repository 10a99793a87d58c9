"""Room on a disk, asked for before anything is written."""

import shutil
from pathlib import Path

from octavo.core.errors import StorageFailed
from octavo.core.gguf import printable
from octavo.core.library.folders import existing

SPACE_MARGIN = 64 << 20
"""Bytes that must stay free on the target's disk after a copy."""


def check_space(folder: Path, size_bytes: int) -> None:
    """Raise ``StorageFailed`` unless ``size_bytes`` and the margin fit on the disk of ``folder``."""
    free = shutil.disk_usage(existing(folder)).free
    if free < size_bytes + SPACE_MARGIN:
        raise too_full(folder, size_bytes, free)


def too_full(folder: Path, size_bytes: int, free_bytes: int) -> StorageFailed:
    """Make the error for a disk without enough room; details: ``path``, ``needed_bytes``, ``free_bytes``."""
    return StorageFailed(
        f"There is not enough room in {printable(folder)}: {size_bytes:,} bytes are needed and "
        f"{SPACE_MARGIN >> 20} MB must stay free, {free_bytes:,} are free.",
        hint="Free some space, or link the file instead of copying it.",
        path=printable(folder),
        needed_bytes=size_bytes,
        free_bytes=free_bytes,
    )


def filled_up(folder: Path, size_bytes: int) -> StorageFailed:
    """Make the error for a disk that was filled while an import wrote; details as ``too_full``."""
    return StorageFailed(
        f"The disk that holds {printable(folder)} is full: {size_bytes:,} bytes were to be brought there. "
        "Nothing was changed.",
        hint="Free some space, then try again.",
        path=printable(folder),
        needed_bytes=size_bytes,
        free_bytes=shutil.disk_usage(existing(folder)).free,
    )
