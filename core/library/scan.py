"""Find the GGUF files below a folder and read what each says, without ever following a loop or waiting."""

import hashlib
import logging
import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from octavo.core.errors import ErrorReport, OctavoError, UnreadableFile
from octavo.core.gguf import Description, Header, describe, members, printable, read_header, split_name
from octavo.core.gguf.shards import gathered, joined, missing_shard

_log = logging.getLogger(__name__)
_SKIPPED_FOLDERS = {"__MACOSX"}


@dataclass(frozen=True, slots=True)
class Found:
    """A GGUF file that a scan came by, or the parts of a split model that lie in one folder.

    ``fault`` is set where one can't be looked at (a dangling link). ``files`` are the parts that are there,
    ``missing`` those that aren't; ``path`` is the first of ``files``, ``size_bytes`` their sum,
    ``modified_ns`` the latest time of change and ``stamp`` a number that differs when any was changed.
    """

    path: Path
    size_bytes: int
    modified_ns: int
    stamp: int
    files: tuple[Path, ...]
    missing: tuple[Path, ...] = ()
    fault: ErrorReport | None = None


def find_files(root: Path) -> Iterator[Found]:
    """Give every ``*.gguf`` below ``root``, at any depth, split models as one; what is hidden is left out.

    A linked folder is followed once, after all real ones, so that what lies in both keeps its real place.
    What is no regular file (a pipe, a device) is passed over; a dangling link is given with its fault.
    """
    seen: set[tuple[int, int]] = set()
    real, linked = [root], list[Path]()
    while real or linked:
        folder = real.pop() if real else linked.pop(0)
        if not _first_visit(folder, seen):
            continue
        files = []
        for entry in _entries(folder):
            path = Path(entry.path)
            if _is_folder(entry):
                (linked if entry.is_symlink() else real).append(path)
            elif entry.name.lower().endswith(".gguf") and (found := _look_at_file(path)):
                files.append(found)
        yield from _together(files)


def look_at(path: Path) -> Found | None:
    """Stat one file, and where it is part of a split model the other parts; None for no regular file."""
    there = [found for part in members(path) if os.path.lexists(part) and (found := _look_at_file(part))]
    return next(_together(there), None)


def examine(found: Found) -> tuple[Description | None, ErrorReport | None]:
    """Read the headers of what was found: the description and, where it can't be used, the reason."""
    headers, fault = list[Header](), found.fault
    for path in found.files:
        try:
            headers.append(read_header(path))
        except OctavoError as error:
            fault = fault or error.report()
    if not headers:
        return None, fault
    return describe(gathered(headers)), fault or _fault(found, headers)


def _fault(found: Found, headers: list[Header]) -> ErrorReport | None:
    # a whole model may be named like a part; then its header says of no parts
    is_whole = len(headers) == 1 and headers[0].shard is None
    try:
        if found.missing and not is_whole:
            raise missing_shard(found.missing, len(found.files) + len(found.missing))
        header = joined(headers)
        if header.kind == "model":
            header.check_loadable()
        header.check_complete()
    except OctavoError as error:
        return error.report()
    return None


def _look_at_file(path: Path) -> Found | None:
    try:
        status = path.stat()
    except OSError as error:
        return Found(path, 0, 0, 0, (path,), fault=_unreachable(path, error).report())
    if not stat.S_ISREG(status.st_mode):
        return None
    return Found(path, status.st_size, status.st_mtime_ns, status.st_mtime_ns, (path,))


def _together(files: Iterable[Found]) -> Iterator[Found]:
    """Make one of the parts of each split model among the files of a folder, which are given in order."""
    sets: dict[object, list[Found]] = {}
    for found in files:
        parts = split_name(found.path.name)
        sets.setdefault((parts[0], parts[2]) if parts else found.path, []).append(found)
    for there in sets.values():
        yield _as_one(there) if split_name(there[0].path.name) else there[0]


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


def _first_visit(folder: Path, seen: set[tuple[int, int]]) -> bool:
    try:
        status = folder.stat()
    except OSError:
        return False
    key = (status.st_dev, status.st_ino)
    if key in seen:
        return False
    seen.add(key)
    return True


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            visible = [e for e in entries if not e.name.startswith(".") and e.name not in _SKIPPED_FOLDERS]
    except OSError as error:
        _log.warning("%s can't be listed: %s", printable(folder), error.strerror)
        return []
    return sorted(visible, key=lambda entry: entry.name)


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False


def _unreachable(path: Path, error: OSError) -> UnreadableFile:
    name = printable(path)
    if path.is_symlink():
        return UnreadableFile(
            f"{printable(path.name)} is a link to a file that isn't there.",
            hint="Connect the drive that holds it, or delete the link.",
            path=name,
        )
    return UnreadableFile(f"{printable(path.name)} can't be read: {error.strerror}.", path=name)
