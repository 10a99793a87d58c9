"""What there is of a download while nobody works on it: looked at, and removed."""

import contextlib
import os
from pathlib import Path

import msgspec

from octavo.core.hub.downloads.entry import LIVE
from octavo.core.hub.downloads.part import Part, done_bytes_at
from octavo.core.hub.downloads.places import part_of, targets
from octavo.core.hub.types import Download, DownloadWish


def done_bytes_of(models: Path, wish: DownloadWish) -> int:
    """Count the bytes that need not be fetched any more."""
    done = 0
    for file, target in zip(wish.files, targets(models, wish), strict=True):
        with contextlib.suppress(OSError):
            there = target.stat().st_size == file.size_bytes if target.exists() else None
            done += file.size_bytes if there else 0
            if there is None:
                done += done_bytes_at(part_of(target), file.size_bytes)
    return done


def as_left(models: Path, download: Download) -> Download:
    """Give a recorded download as it is while no service runs: one that was at work waits for the next."""
    if download.state in LIVE:
        download = msgspec.structs.replace(
            download, state="queued", retry_at=None, bytes_per_s=0.0, seconds_left=None
        )
    if download.state in ("done", "cancelled"):
        return download
    return msgspec.structs.replace(download, done_bytes=done_bytes_of(models, download.wish))


def is_there(models: Path, wish: DownloadWish) -> bool:
    """Tell whether all files of a wish are in the library, by name and size."""
    pairs = zip(wish.files, targets(models, wish), strict=True)
    return all(target.is_file() and target.stat().st_size == file.size_bytes for file, target in pairs)


def remove_parts(models: Path, wish: DownloadWish) -> None:
    """Remove what has come, and the folders that are empty then; another process's part files stay."""
    for file, target in zip(wish.files, targets(models, wish), strict=True):
        with contextlib.suppress(OSError):
            path = part_of(target)
            part = Part.open(path, file.size_bytes) if os.path.lexists(path) else None
            if part is not None:
                part.remove()
                part.close()
        remove_empty_folders(target.parent, models)


def remove_empty_folders(folder: Path, root: Path) -> None:
    """Remove a folder below ``root`` and those above it, as far as they are empty."""
    with contextlib.suppress(OSError):  # it isn't empty
        while folder != root:
            folder.rmdir()
            folder = folder.parent
