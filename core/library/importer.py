"""Bring one GGUF file into the library: move, copy or link it, whole or not at all.

``plan_import`` looks and decides, changing nothing (a dry run is a plan that is not run); ``run_import``
carries a plan out. A target is never overwritten, a source never lost: a copy is written under a temporary
name, synced and, for a move, compared before it gets its name; only then is the source removed.
"""

import filecmp
import os
import shutil
import stat
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from octavo.core.errors import InvalidRequest, StorageFailed, UnreadableFile
from octavo.core.gguf import Description, Header, describe, printable, read_header
from octavo.core.library.owners import owner_of
from octavo.core.library.places import (
    place_below,
    proposed_file_name,
    proposed_place,
    split_place,
    target_exists,
)
from octavo.core.library.transfer import (
    Cancel,
    Progress,
    copy_into,
    link_into,
    link_or_copy_into,
    move_into,
    remove_leftovers,
    symlink_into,
)

SPACE_MARGIN = 64 << 20
"""Bytes that must stay free on the target's disk after a copy."""


class ImportMode(StrEnum):
    """What becomes of the source."""

    MOVE = "move"
    COPY = "copy"
    HARD_LINK = "hard_link"
    SYMLINK = "symlink"


@dataclass(frozen=True, slots=True)
class ImportPlan:
    """What an import will do, in full; ``reason`` says why it is this mode.

    ``copies_bytes``: ``size_bytes`` must be read and written (a copy, or a move to another disk). Where the
    mode wasn't ``asked`` for, a hard link that the system refuses becomes a copy. Where the very same file
    is ``present`` at its target, nothing is left to do, and the source stays.
    """

    source: Path
    target: Path
    root: Path
    mode: ImportMode
    publisher: str
    model: str
    size_bytes: int
    copies_bytes: bool
    asked: bool
    reason: str
    description: Description
    present: bool = False

    @property
    def sentence(self) -> str:
        """Say what will happen, for a dry run."""
        if self.present:
            return f"{printable(self.source)} is already there as {printable(self.target)}"
        verb = {
            ImportMode.MOVE: "Move",
            ImportMode.COPY: "Copy",
            ImportMode.HARD_LINK: "Hard-link",
            ImportMode.SYMLINK: "Symlink",
        }[self.mode]
        return f"{verb} {printable(self.source)} to {printable(self.target)}"


def plan_import(
    source: Path,
    root: Path,
    publisher_model: str | None = None,
    mode: ImportMode | None = None,
) -> ImportPlan:
    """Decide how ``source`` gets into the library at ``root``, and refuse what can't work; changes nothing.

    Without a ``mode`` the file is moved, unless it lies in another program's folder or cache: then it is
    hard-linked or, across disks, copied. Raises ``UnreadableFile``, ``InvalidGguf``, ``InvalidRequest``
    (names, mode), ``TargetExists`` and ``StorageFailed`` (no room).
    """
    source, root = _absolute(source), _absolute(root)
    header = _checked_header(source)
    description = describe(header)
    publisher, model = (
        split_place(publisher_model) if publisher_model else proposed_place(source, description)
    )
    file_name = proposed_file_name(source, model, description)
    target, taken = place_below(root, publisher, model, file_name)
    if taken is not None and not _is_same_file(source, taken):
        raise target_exists(taken)
    target = taken or target
    same_disk = _device(source) == _device(target.parent)
    chosen, reason = _decided(mode, source, same_disk)
    crosses = chosen is ImportMode.MOVE and not same_disk and not source.is_symlink()
    copies = taken is None and (chosen is ImportMode.COPY or crosses)
    if copies:
        _check_space(target.parent, header.file_size)
    return ImportPlan(
        source=source,
        target=target,
        root=root,
        mode=chosen,
        publisher=publisher,
        model=model,
        size_bytes=header.file_size,
        copies_bytes=copies,
        asked=mode is not None,
        reason=reason if taken is None else "nothing to do",
        description=description,
        present=taken is not None,
    )


def run_import(plan: ImportPlan, progress: Progress | None = None, cancelled: Cancel | None = None) -> Path:
    """Carry out ``plan`` and give the model's new path.

    ``progress`` is called with (bytes done, bytes in all); ``cancelled`` is asked between blocks. Raises
    ``TargetExists``, ``StorageFailed`` and ``Cancelled``; after any of them the target's folder is as it was.
    """
    if plan.present:
        return plan.target
    _check_unchanged(plan)
    remove_leftovers(plan.target.parent)
    made = _make_folders(plan.target.parent)
    try:
        _carry_out(plan)(plan.source, plan.target, progress or _silent, cancelled or _never)
    except BaseException:
        for folder in made:
            _remove_if_empty(folder)
        raise
    return plan.target


def _is_same_file(source: Path, there: Path) -> bool:
    """Tell whether both are one file, or two with the same bytes."""
    try:
        return os.path.samefile(source, there) or filecmp.cmp(source, there, shallow=False)
    except OSError:
        return False


def _carry_out(plan: ImportPlan) -> Callable[[Path, Path, Progress, Cancel], None]:
    return {
        ImportMode.MOVE: move_into,
        ImportMode.COPY: copy_into,
        ImportMode.HARD_LINK: link_into if plan.asked else link_or_copy_into,
        ImportMode.SYMLINK: symlink_into,
    }[plan.mode]


def _absolute(path: Path) -> Path:
    return Path(os.path.abspath(os.path.expanduser(path)))


def _checked_header(source: Path) -> Header:
    if os.path.isdir(source):
        raise InvalidRequest(f"{printable(source)} is a folder.", hint="Name the .gguf file in it.")
    if not os.path.lexists(source):
        raise UnreadableFile(
            f"There is no file {printable(source)}.",
            hint="Check its name and the folder that it lies in.",
            path=printable(source),
        )
    header = read_header(source)
    # what goes with a model (projector, adapter, later shard) may be brought in too, though not loaded alone
    if header.kind in ("model", "vocabulary"):
        header.check_loadable()
    header.check_complete()
    return header


def _decided(mode: ImportMode | None, source: Path, same_disk: bool) -> tuple[ImportMode, str]:
    if mode is ImportMode.HARD_LINK and not same_disk:
        raise InvalidRequest(
            "A hard link can't reach from one disk to another.", hint="Choose copy, symlink or move."
        )
    if mode is not None:
        return mode, "as asked"
    owner = owner_of(source)
    if owner is None:
        return ImportMode.MOVE, "the default"
    if same_disk:
        return ImportMode.HARD_LINK, f"it belongs to {owner}; a hard link takes no room and leaves it there"
    return ImportMode.COPY, f"it belongs to {owner}, on another disk"


def _device(path: Path) -> int:
    """Tell which disk ``path``, or the nearest folder above it that exists, is on; links are followed."""
    return _existing(path).stat().st_dev


def _existing(path: Path) -> Path:
    while not os.path.exists(path) and path != path.parent:
        path = path.parent
    return path


def _check_space(folder: Path, size_bytes: int) -> None:
    free = shutil.disk_usage(_existing(folder)).free
    if free < size_bytes + SPACE_MARGIN:
        raise StorageFailed(
            f"There is not enough room in {printable(folder)}: {size_bytes:,} bytes are needed, "
            f"{free:,} are free.",
            hint="Free some space, or link the file instead of copying it.",
            path=printable(folder),
            needed_bytes=size_bytes,
            free_bytes=free,
        )


def _check_unchanged(plan: ImportPlan) -> None:
    try:
        status = plan.source.stat()
    except OSError as error:
        name = printable(plan.source)
        raise UnreadableFile(f"{name} is gone: {error.strerror}.", path=name) from error
    if not stat.S_ISREG(status.st_mode) or status.st_size != plan.size_bytes:
        raise UnreadableFile(
            f"{printable(plan.source)} has changed since it was checked.",
            hint="Wait until it is complete, then import it again.",
            path=printable(plan.source),
        )


def _make_folders(folder: Path) -> list[Path]:
    """Make ``folder`` and those above it; give the new ones, the innermost first."""
    missing = []
    at = folder
    while not os.path.exists(at) and at != at.parent:
        missing.append(at)
        at = at.parent
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        for made in missing:
            _remove_if_empty(made)
        name = printable(folder)
        raise StorageFailed(f"The folder {name} can't be made: {error.strerror}.", path=name) from error
    return missing


def _remove_if_empty(folder: Path) -> None:
    try:
        folder.rmdir()
    except OSError:
        # it isn't empty, or was never made: then it stays
        return


def _silent(done: int, total: int) -> None:
    """Report nothing."""


def _never() -> bool:
    return False
