"""Find the GGUF files below a folder and read what each says, without ever following a loop or waiting."""

import logging
import os
from collections.abc import Iterator
from pathlib import Path

from octavo.core.errors import ErrorReport, OctavoError
from octavo.core.gguf import Description, Header, describe, printable, read_header
from octavo.core.gguf.shards import gathered, joined, missing_shard
from octavo.core.library.found import Found, look_at, look_at_file, together
from octavo.core.library.hub_cache import is_repository, repository_files

__all__ = ["Found", "Visited", "examine", "find_files", "look_at"]

Visited = set[tuple[int, int]]
"""Folders that were seen already, by device and number."""

_log = logging.getLogger(__name__)
_SKIPPED_FOLDERS = {"__MACOSX"}


def find_files(
    root: Path, visited: Visited | None = None, linked_folders: list[Path] | None = None
) -> Iterator[Found]:
    """Give every ``*.gguf`` below ``root``, at any depth, split models as one; what is hidden is left out.

    A linked folder is followed once, after all real ones, so that what lies in both keeps its real place; it
    is noted in ``linked_folders``. What is in ``visited`` already, from another root, is passed over, and so
    is what is no regular file (a pipe, a device); a dangling link is given with its fault.
    """
    seen = set() if visited is None else visited
    real, linked = [root], list[Path]()
    while real or linked:
        folder = real.pop() if real else linked.pop(0)
        if not _first_visit(folder, seen):
            continue
        if is_repository(folder):
            yield from repository_files(folder)
            continue
        files = []
        for entry in _entries(folder):
            # a name that ends so is nearly always a file: the folder among them costs one more look
            if entry.name.lower().endswith(".gguf") and not _is_folder(entry):
                if found := look_at_file(Path(entry.path), entry):
                    files.append(found)
            elif _is_folder(entry):
                path = Path(entry.path)
                (linked if entry.is_symlink() else real).append(path)
                if entry.is_symlink() and linked_folders is not None:
                    linked_folders.append(path)
        yield from together(files)


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


def _first_visit(folder: Path, seen: Visited) -> bool:
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
