"""What an import will do, in full, as values; and what can be said against it before anything is done."""

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from octavo.core.errors import InvalidRequest, StorageFailed, UnreadableFile
from octavo.core.gguf import Description, printable

ProposeFromHub = Callable[[str], tuple[str, str] | None]
"""Called with a file's name; gives (publisher, model) of the Hub repository that has it, or None."""

FRESH_S = 2.0
"""A file that was changed no longer than these seconds ago may still be written."""

QUIET_S = 0.25
"""Seconds in which such a file must not change."""


class ImportMode(StrEnum):
    """What becomes of the source."""

    MOVE = "move"
    COPY = "copy"
    HARD_LINK = "hard_link"
    SYMLINK = "symlink"


_VERBS = {
    ImportMode.MOVE: "Move",
    ImportMode.COPY: "Copy",
    ImportMode.HARD_LINK: "Hard-link",
    ImportMode.SYMLINK: "Symlink",
}


@dataclass(frozen=True, slots=True)
class PlannedFile:
    """One file of a unit.

    ``copies_bytes``: ``size_bytes`` must be read and written (a copy, or a move to another disk). Where the
    mode wasn't ``asked`` for, a hard link that the system refuses becomes a copy. Where the very same file is
    ``present`` at its target, nothing is left to do, and the source stays.
    """

    source: Path
    target: Path
    size_bytes: int
    modified_ns: int
    mode: ImportMode
    asked: bool
    copies_bytes: bool
    crosses_disks: bool
    present: bool

    @property
    def sentence(self) -> str:
        """Say what will happen, for a dry run."""
        if self.present and self.source == self.target:
            return f"{printable(self.source)} is in the library already"
        if self.present:
            return f"{printable(self.source)} is already there as {printable(self.target)}"
        return f"{_VERBS[self.mode]} {printable(self.source)} to {printable(self.target)}"


@dataclass(frozen=True, slots=True)
class ImportPlan:
    """What an import of one unit will do: its ``files``, part 1 first, the projector last, or none of them.

    ``mode`` is that of the model's own files, ``reason`` says why.
    """

    files: tuple[PlannedFile, ...]
    root: Path
    mode: ImportMode
    publisher: str
    model: str
    reason: str
    description: Description

    @property
    def source(self) -> Path:
        """The file, or part 1."""
        return self.files[0].source

    @property
    def target(self) -> Path:
        """What the engine will load."""
        return self.files[0].target

    @property
    def size_bytes(self) -> int:
        """All files together."""
        return sum(file.size_bytes for file in self.files)

    @property
    def present(self) -> bool:
        """Whether all is there already."""
        return all(file.present for file in self.files)

    @property
    def copies_bytes(self) -> bool:
        """Whether any file must be read and written."""
        return any(file.copies_bytes for file in self.files)

    @property
    def needed_bytes(self) -> int:
        """How many bytes more there will be on the target's disk."""
        return sum(file.size_bytes for file in self.files if file.copies_bytes)

    @property
    def sentence(self) -> str:
        """Say what will happen to the model, for a dry run."""
        return self.files[0].sentence


def check_same_disk(files: Sequence[PlannedFile]) -> None:
    """Raise ``InvalidRequest`` where a hard link that was asked for can't be."""
    if any(file.asked and file.mode is ImportMode.HARD_LINK and file.crosses_disks for file in files):
        raise InvalidRequest(
            "A hard link can't reach from one disk to another.", hint="Choose copy, symlink or move."
        )


def check_removable(files: Sequence[PlannedFile]) -> None:
    """Raise ``StorageFailed`` for a source of a move in a folder that can't be written."""
    for file in files:
        if file.mode is ImportMode.MOVE and not is_removable(file.source):
            raise StorageFailed(
                f"{printable(file.source)} can't be moved: its folder can't be written.",
                hint="Copy it instead, or change the folder's rights.",
                path=printable(file.source),
            )


def is_removable(source: Path) -> bool:
    """Tell whether the folder of ``source`` lets files be removed, as far as that can be seen."""
    return os.access(source.parent, os.W_OK)


def check_unchanged(files: Sequence[PlannedFile]) -> None:
    """Raise ``UnreadableFile`` for a file that is gone or is not what it was when it was planned."""
    for file in files:
        try:
            status = file.source.stat()
        except OSError as error:
            name = printable(file.source)
            raise UnreadableFile(f"{name} is gone: {error.strerror}.", path=name) from error
        if (status.st_size, status.st_mtime_ns) != (file.size_bytes, file.modified_ns):
            raise UnreadableFile(
                f"{printable(file.source)} has changed since it was checked.",
                hint="Wait until it is complete, then import it again.",
                path=printable(file.source),
            )


def wait_until_quiet(files: Sequence[PlannedFile]) -> None:
    """Look twice at what was changed just now, since it may still be written; as ``check_unchanged``."""
    newest = max((file.modified_ns for file in files), default=0)
    if abs(time.time_ns() - newest) < FRESH_S * 1e9:
        time.sleep(QUIET_S)
        check_unchanged(files)
