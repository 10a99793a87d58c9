"""Find the GGUF files below a folder and read what each says, without ever following a loop or waiting."""

import logging
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from octavo.core.errors import ErrorReport, OctavoError, UnreadableFile
from octavo.core.gguf import Description, Header, describe, printable, read_header

_log = logging.getLogger(__name__)
_SKIPPED_FOLDERS = {"__MACOSX"}


@dataclass(frozen=True, slots=True)
class Found:
    """A GGUF file that a scan came by; ``fault`` is set where it can't be looked at (a dangling link)."""

    path: Path
    size_bytes: int
    modified_ns: int
    fault: ErrorReport | None = None


def find_files(root: Path) -> Iterator[Found]:
    """Give every ``*.gguf`` below ``root``, at any depth; hidden files and folders are left out.

    A linked folder is followed once, after all real ones, so that what lies in both keeps its real place.
    What is no regular file (a pipe, a device) is passed over; a dangling link is given with its fault.
    """
    seen: set[tuple[int, int]] = set()
    real, linked = [root], list[Path]()
    while real or linked:
        folder = real.pop() if real else linked.pop(0)
        if not _first_visit(folder, seen):
            continue
        for entry in _entries(folder):
            path = Path(entry.path)
            if _is_folder(entry):
                (linked if entry.is_symlink() else real).append(path)
            elif entry.name.lower().endswith(".gguf") and (found := look_at(path)):
                yield found


def look_at(path: Path) -> Found | None:
    """Stat one file; None when it is no regular file."""
    try:
        status = path.stat()
    except OSError as error:
        return Found(path, 0, 0, _unreachable(path, error).report())
    if not stat.S_ISREG(status.st_mode):
        return None
    return Found(path, status.st_size, status.st_mtime_ns)


def examine(found: Found) -> tuple[Description | None, ErrorReport | None]:
    """Read the header of a file that was found: its description and, where it can't be used, the reason."""
    if found.fault:
        return None, found.fault
    try:
        header = read_header(found.path)
    except OctavoError as error:
        return None, error.report()
    return describe(header), _fault(header, found.size_bytes)


def _fault(header: Header, size_bytes: int) -> ErrorReport | None:
    try:
        if header.kind == "model":
            header.check_loadable(size_bytes)
        header.check_complete(size_bytes)
    except OctavoError as error:
        return error.report()
    return None


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
