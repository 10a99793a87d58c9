"""What a look at the disk comes by: a GGUF file, or the parts of a split model that lie in one folder."""

import hashlib
import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from octavo.core.errors import ErrorReport, UnreadableFile
from octavo.core.gguf import members, printable, split_name


@dataclass(frozen=True, slots=True)
class Found:
    """A GGUF file that a scan came by, or the parts of a split model that lie in one folder.

    ``fault`` is set where one can't be looked at (a dangling link). ``files`` are the parts that are there,
    ``missing`` those that aren't; ``path`` is the first of ``files``, ``size_bytes`` their sum,
    ``modified_ns`` the latest time of change and ``stamp`` a number that differs when any was changed.
    ``place`` is (publisher, model) where the program that the file belongs to names it; such a program also
    names the model's ``projector``, or that it has none.
    """

    path: Path
    size_bytes: int
    modified_ns: int
    stamp: int
    files: tuple[Path, ...]
    missing: tuple[Path, ...] = ()
    fault: ErrorReport | None = None
    place: tuple[str, str] | None = None
    projector: Path | None = None


def look_at(path: Path) -> Found | None:
    """Stat one file, and where it is part of a split model the other parts; None for no regular file."""
    there = [found for part in members(path) if os.path.lexists(part) and (found := look_at_file(part))]
    return next(together(there), None)


def look_at_file(path: Path, entry: os.DirEntry[str] | None = None) -> Found | None:
    """Stat one file, or the entry that a folder's listing gave of it; None for no regular file."""
    try:
        status = path.stat() if entry is None else entry.stat()
    except OSError as error:
        return Found(path, 0, 0, 0, (path,), fault=_unreachable(path, error).report())
    if not stat.S_ISREG(status.st_mode):
        return None
    return Found(path, status.st_size, status.st_mtime_ns, status.st_mtime_ns, (path,))


def together(files: Iterable[Found]) -> Iterator[Found]:
    """Make one of the parts of each split model among the files of a folder, which are given in order."""
    sets: dict[object, list[Found]] = {}
    for found in files:
        # the marks of a part are looked for first: most files are whole
        parts = split_name(found.path.name) if "-of-" in found.path.name else None
        if parts is None:
            yield found
        else:
            sets.setdefault((parts[0], parts[2]), []).append(found)
    for there in sets.values():
        yield _as_one(there)


def _as_one(there: list[Found]) -> Found:
    files = tuple(found.path for found in there)
    told = [(found.path.name, found.size_bytes, found.modified_ns) for found in there]
    digest = hashlib.blake2b(repr(told).encode(), digest_size=7).digest()
    return Found(
        path=files[0],
        size_bytes=sum(found.size_bytes for found in there),
        modified_ns=max(found.modified_ns for found in there),
        stamp=int.from_bytes(digest, "big"),
        files=files,
        missing=tuple(sorted(set(members(files[0])) - set(files))),
        fault=next((found.fault for found in there if found.fault), None),
    )


def _unreachable(path: Path, error: OSError) -> UnreadableFile:
    name = printable(path)
    if path.is_symlink():
        return UnreadableFile(
            f"{printable(path.name)} is a link to a file that isn't there.",
            hint="Connect the drive that holds it, or delete the link.",
            path=name,
        )
    return UnreadableFile(f"{printable(path.name)} can't be read: {error.strerror}.", path=name)
