"""All files of a unit get their names, or none does, also when the program is killed or the power fails.

The files are first made in a hidden folder, ``.import-….part``, in the nearest folder to their target that is
there. Until all are complete and on the disk nothing else changes, and what a killed import left is deleted.
Then a journal is written into the hidden folder; from there on the import goes forward, by whoever comes
next: names are given, they are synced, the sources of a move are removed, the hidden folder goes. Where a
name is taken meanwhile it goes back, marked as such, by the same journal. A lock on the hidden folder says
that its import is alive.
"""

import contextlib
import errno
import logging
import os
import shutil
import stat
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from octavo.core.errors import OctavoError, StorageFailed
from octavo.core.gguf import printable
from octavo.core.library.folders import make_folders, missing_above, remove_empty
from octavo.core.library.locks import held_lock, is_abandoned, locked
from octavo.core.library.places import target_exists
from octavo.core.library.transfer import NO_LINKS, explained, sync_folder

PATTERN = ".import-*.part"
"""What the hidden folders are called; a scan passes over them."""

_FORWARD, _BACK = "journal", "undo"
# Windows can't say it; it links the symlink itself anyway
_LINK_ITSELF = {"follow_symlinks": False} if os.link in os.supports_follow_symlinks else {}

_log = logging.getLogger(__name__)


class _Entry(msgspec.Struct, frozen=True, array_like=True):
    """One file: where it is made, its name to be, where it came from; paths as the file system's bytes.

    ``leaves`` is the source's identity if the source is to be removed, else None.
    """

    staged: str
    target: bytes
    source: bytes
    made: tuple[int, int]
    leaves: tuple[int, int, int, int] | None


class _Journal(msgspec.Struct, frozen=True, array_like=True):
    """``folders`` are those that are made for the unit, the innermost first."""

    entries: list[_Entry]
    folders: list[bytes]


@dataclass(frozen=True, slots=True)
class Staged:
    """One file of a unit, as its import hands it over: made under ``staged``, to be called ``target``."""

    staged: Path
    target: Path
    source: Path
    removes_source: bool


@contextlib.contextmanager
def staging_folder(root: Path, target_folder: Path) -> Iterator[Path]:
    """Lend the hidden folder in which a unit is made; at the end it is gone, and so is ``root`` if empty."""
    made = make_folders(root)
    try:
        with locked(root), explained(target_folder):
            folder = _anchor(root, target_folder) / PATTERN.replace("*", uuid.uuid4().hex)
            folder.mkdir()
            lock = held_lock(folder)
        try:
            yield folder
        finally:
            if not _is_begun(folder):
                shutil.rmtree(folder, ignore_errors=True)
            if lock >= 0:
                os.close(lock)
    finally:
        remove_empty(made)


def publish(root: Path, folder: Path, files: Sequence[Staged]) -> None:
    """Give all files of ``folder`` their names, then remove the sources of a move.

    Raises ``TargetExists`` and ``StorageFailed``; then all is as it was before.
    """
    with locked(root):
        for file in files:
            if os.path.lexists(file.target):
                raise target_exists(file.target)
        with explained(files[0].target):
            journal = _committed(folder, files)
        try:
            _forward(folder, journal)
            _remove_sources(journal)
        except _HalfMoved:
            _dropped(folder)
            raise
        except OctavoError:
            _go_back(folder, journal)
            raise
        # all is done by now; the next import tries to clear it again
        with contextlib.suppress(OSError):
            _dropped(folder)


def finish_interrupted(root: Path) -> dict[Path, Path]:
    """Finish or undo what killed imports left below ``root``; gives (source, target) of what was finished.

    What a living import is making is left alone.
    """
    finished: dict[Path, Path] = {}
    if not root.is_dir():
        return finished
    with locked(root):
        for folder in _hidden_below(root):
            try:
                if is_abandoned(folder):
                    finished |= _settled(folder)
            except OSError as error:
                _log.warning("%s can't be cleared: %s", printable(folder), error)
    return finished


def _settled(folder: Path) -> dict[Path, Path]:
    if not folder.is_dir():
        # a part file, as older versions made them
        folder.unlink()
        return {}
    forward, back = _journal(folder / _FORWARD), _journal(folder / _BACK)
    finished: dict[Path, Path] = {}
    if back is not None:
        _undo(folder, back)
    elif forward is not None:
        finished = _finished(folder, forward)
    _dropped(folder)
    _log.info("an interrupted import was %s: %s", "finished" if finished else "undone", printable(folder))
    return finished


def _finished(folder: Path, journal: _Journal) -> dict[Path, Path]:
    try:
        _forward(folder, journal)
    except OctavoError as error:
        _log.warning("an interrupted import can't be finished: %s", error)
        _go_back(folder, journal)
        return {}
    try:
        _remove_sources(journal)
    except OctavoError as error:
        _log.warning("an interrupted move can't be finished: %s", error)
    return {Path(os.fsdecode(e.source)): Path(os.fsdecode(e.target)) for e in journal.entries}


def _committed(folder: Path, files: Sequence[Staged]) -> _Journal:
    """Write, for good, that the unit is complete; from here on it goes forward."""
    journal = _Journal(
        [_entry(file) for file in files],
        [os.fsencode(made) for made in missing_above(files[0].target.parent)],
    )
    sync_folder(folder)
    draft = folder / "draft"
    with open(draft, "wb") as writing:
        writing.write(msgspec.msgpack.encode(journal))
        writing.flush()
        os.fsync(writing.fileno())
    draft.rename(folder / _FORWARD)
    sync_folder(folder)
    sync_folder(folder.parent)
    return journal


def _entry(file: Staged) -> _Entry:
    made = file.staged.lstat()
    return _Entry(
        file.staged.name,
        os.fsencode(file.target),
        os.fsencode(file.source),
        (made.st_dev, made.st_ino),
        _identity(file.source) if file.removes_source else None,
    )


def _journal(path: Path) -> _Journal | None:
    try:
        return msgspec.msgpack.decode(path.read_bytes(), type=_Journal)
    except FileNotFoundError:
        return None
    except (msgspec.DecodeError, ValueError) as error:
        # it is renamed into place complete: a damaged one was damaged by the disk
        raise OSError(errno.EIO, f"its journal is damaged: {error}") from error


def _forward(folder: Path, journal: _Journal) -> None:
    for made in reversed(journal.folders):
        with explained(Path(os.fsdecode(made))):
            os.makedirs(made, exist_ok=True)
    # part 1 of a split model comes last, so that no other program finds it before its other parts
    for entry in reversed(journal.entries):
        target = Path(os.fsdecode(entry.target))
        with explained(target):
            _give_name(folder / entry.staged, target)
    for synced in {os.path.dirname(entry.target) for entry in journal.entries}:
        sync_folder(Path(os.fsdecode(synced)))
    for made in journal.folders:
        sync_folder(Path(os.fsdecode(made)).parent)


def _give_name(staged: Path, target: Path) -> None:
    """Name the file, never replacing another; done already where it was killed after this."""
    if not os.path.lexists(staged):
        return
    try:
        os.link(staged, target, **_LINK_ITSELF)
    except FileExistsError:
        if _inode(staged) != _inode(target):
            raise
    except OSError as error:
        if error.errno not in NO_LINKS:
            raise
        if os.path.lexists(target):
            raise FileExistsError(errno.EEXIST, "File exists") from None
        os.rename(staged, target)


def _remove_sources(journal: _Journal) -> None:
    """Remove the sources of a move that are still what was imported; all names are given and synced."""
    removed = False
    for entry in journal.entries:
        source = Path(os.fsdecode(entry.source))
        if entry.leaves is None or _identity_or_none(source) != entry.leaves:
            continue
        try:
            source.unlink(missing_ok=True)
        except OSError as error:
            if removed:
                raise _half_moved(source, error) from error
            raise _unremovable(source, error) from error
        removed = True
        sync_folder(source.parent)


class _HalfMoved(StorageFailed):
    """Some sources are gone already, so that the new files must stay."""


def _half_moved(source: Path, error: OSError) -> StorageFailed:
    return _HalfMoved(
        f"The model was brought in, but {printable(source)} can't be removed: {error.strerror}.",
        hint="Delete it yourself.",
        path=printable(source),
    )


def _unremovable(source: Path, error: OSError) -> StorageFailed:
    return StorageFailed(
        f"{printable(source)} can't be removed from its folder: {error.strerror}. Nothing was changed.",
        hint="Copy it instead, or change the folder's rights.",
        path=printable(source),
    )


def _go_back(folder: Path, journal: _Journal) -> None:
    os.replace(folder / _FORWARD, folder / _BACK)
    sync_folder(folder)
    _undo(folder, journal)
    _dropped(folder)


def _undo(folder: Path, journal: _Journal) -> None:
    for entry in journal.entries:
        target = Path(os.fsdecode(entry.target))
        if _inode(target) == entry.made:
            target.unlink()
    remove_empty([Path(os.fsdecode(made)) for made in journal.folders])


def _dropped(folder: Path) -> None:
    """Remove the hidden folder; the journal goes last, since it explains what else is in it."""
    for name in os.listdir(folder):
        if name not in (_FORWARD, _BACK):
            (folder / name).unlink()
    shutil.rmtree(folder)


def _is_begun(folder: Path) -> bool:
    return os.path.lexists(folder / _FORWARD) or os.path.lexists(folder / _BACK)


def _hidden_below(root: Path) -> Iterator[Path]:
    """Find the hidden folders below ``root``, also where a linked folder leads, each once."""
    waiting, seen = [root], set[tuple[int, int]]()
    while waiting:
        folder = waiting.pop()
        try:
            key = _inode(folder, follow=True)
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name) if key not in seen else []
        except OSError:
            continue
        seen.add(key or (0, 0))
        for entry in entries:
            if Path(entry.name).match(PATTERN):
                yield Path(entry.path)
            elif _is_folder(entry) and not entry.name.startswith("."):
                waiting.append(Path(entry.path))


def _is_folder(entry: "os.DirEntry[str]") -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False


def _anchor(root: Path, folder: Path) -> Path:
    """Give the nearest folder to ``folder`` that is there, not above ``root``: it is on the same disk."""
    while folder != root and not folder.is_dir():
        folder = folder.parent
    return folder


def _inode(path: Path, *, follow: bool = False) -> tuple[int, int] | None:
    try:
        status = path.stat() if follow else path.lstat()
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino


def _identity(path: Path) -> tuple[int, int, int, int]:
    status = path.lstat()
    # a hard link's other names change no field of these
    size = 0 if stat.S_ISLNK(status.st_mode) else status.st_size
    return status.st_dev, status.st_ino, size, status.st_mtime_ns


def _identity_or_none(path: Path) -> tuple[int, int, int, int] | None:
    try:
        return _identity(path)
    except OSError:
        return None
