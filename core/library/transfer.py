"""Put one file at a new place without ever showing half of it, replacing another or losing the source."""

import errno
import hashlib
import os
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from octavo.core.errors import Cancelled, OctavoError, StorageFailed, UnreadableFile
from octavo.core.gguf import printable
from octavo.core.library.places import target_exists

Progress = Callable[[int, int], None]
"""Called with bytes done and bytes in all."""

Cancel = Callable[[], bool]
"""True once the person has called it off."""

_BLOCK = 4 << 20
_LEFTOVERS = ".import-*.part"
_LEFTOVER_AGE_S = 24 * 3600
# file systems that know no hard links answer with one of these
_NO_LINKS = {errno.EPERM, errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK}


def move_into(source: Path, target: Path, progress: Progress, cancelled: Cancel) -> None:
    """Move ``source``; across disks that is copy, compare, remove. A link stays one, made absolute."""
    if source.is_symlink():
        symlink_into(source, target, progress, cancelled)
    else:
        _link_or_copy(source, target, progress, cancelled, compare=True)
    with _undone_on_failure(target), _explained(source):
        # gone already: then the target is the only one left and must stay
        source.unlink(missing_ok=True)


def copy_into(source: Path, target: Path, progress: Progress, cancelled: Cancel) -> None:
    """Copy the file that ``source`` is or links to."""
    _copy(source, target, progress, cancelled, compare=False)


def link_or_copy_into(source: Path, target: Path, progress: Progress, cancelled: Cancel) -> None:
    """Hard-link the file, or copy it where that is refused (another owner's file, a disk without links)."""
    _link_or_copy(Path(os.path.realpath(source)), target, progress, cancelled, compare=False)


def link_into(source: Path, target: Path, progress: Progress, cancelled: Cancel) -> None:
    """Give the file that ``source`` is or links to a second name."""
    with _explained(target):
        os.link(os.path.realpath(source), target)
    _report_whole(target, progress)


def symlink_into(source: Path, target: Path, progress: Progress, cancelled: Cancel) -> None:
    """Link to the file itself by its absolute path, so that no other link's removal or move breaks it."""
    with _explained(target):
        target.symlink_to(os.path.realpath(source))
    _report_whole(target, progress)


def _link_or_copy(
    source: Path, target: Path, progress: Progress, cancelled: Cancel, *, compare: bool
) -> None:
    try:
        # a hard link, unlike a rename, never replaces a file that has appeared meanwhile
        os.link(source, target)
    except FileExistsError:
        raise target_exists(target) from None
    except OSError as error:
        if error.errno == errno.EXDEV or error.errno in _NO_LINKS:
            _copy(source, target, progress, cancelled, compare=compare)
            return
        raise _failed(target, error) from error
    _report_whole(target, progress)


def _copy(source: Path, target: Path, progress: Progress, cancelled: Cancel, *, compare: bool) -> None:
    with _explained(target), _temporary(target.parent) as temporary:
        digest = _write(source, temporary, progress, cancelled)
        if compare and _digest(temporary) != digest:
            raise StorageFailed(
                f"The copy of {printable(source)} differs from the original; the original was kept.",
                hint="Check the disk, then import the file again.",
                path=printable(target),
            )
        _stop_if(cancelled)
        _publish(temporary, target)


def remove_leftovers(folder: Path, *, below: bool = False) -> None:
    """Remove what a killed import left in ``folder`` (and ``below`` it): part files that nobody writes."""
    for path in folder.rglob(_LEFTOVERS) if below else folder.glob(_LEFTOVERS):
        # gone meanwhile, or not ours to remove: the next import tries again
        with suppress(OSError):
            if _is_abandoned(path):
                path.unlink()


@contextmanager
def _temporary(folder: Path) -> Iterator[Path]:
    """Lend a name for a file that is being made; a lock on it says that its writer is alive."""
    # a fixed short name: one made from the target's could be over the file system's limit
    temporary = folder / f".import-{uuid.uuid4().hex}.part"
    descriptor = -1
    try:
        descriptor = _locked(temporary)
        yield temporary
    finally:
        # never made, or on a disk that is gone: the error under way matters more
        with suppress(OSError):
            temporary.unlink()
        if descriptor >= 0:
            os.close(descriptor)


if sys.platform == "win32":

    def _locked(path: Path) -> int:
        # an open file can't be removed there, and its writer keeps it open
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL))
        return -1

    def _is_abandoned(path: Path) -> bool:
        return time.time() - path.stat().st_mtime > _LEFTOVER_AGE_S

else:
    import fcntl

    def _locked(path: Path) -> int:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        with suppress(OSError):  # a file system without locks: its age tells
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return descriptor

    def _is_abandoned(path: Path) -> bool:
        if time.time() - path.stat().st_mtime > _LEFTOVER_AGE_S:
            return True
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        finally:
            os.close(descriptor)
        return True


def _write(source: Path, temporary: Path, progress: Progress, cancelled: Cancel) -> bytes:
    """Fill ``temporary`` with ``source``, block by block and on the disk, and give its SHA-256."""
    with _opened(source) as reading, open(temporary, "wb") as writing:
        before = os.fstat(reading.fileno())
        digest, done = hashlib.sha256(), 0
        for block in _blocks(reading, source):
            _stop_if(cancelled)
            digest.update(block)
            writing.write(block)
            done += len(block)
            progress(done, before.st_size)
        writing.flush()
        os.fsync(writing.fileno())
        after = os.fstat(reading.fileno())
    if done != before.st_size or after.st_mtime_ns != before.st_mtime_ns:
        raise UnreadableFile(
            f"{printable(source)} changed while it was copied.",
            hint="Wait until it is complete, then import it again.",
            path=printable(source),
        )
    return digest.digest()


def _blocks(reading: BinaryIO, source: Path) -> Iterator[bytes]:
    try:
        while block := reading.read(_BLOCK):
            yield block
    except OSError as error:
        raise _unreadable(source, error) from error


def _stop_if(cancelled: Cancel) -> None:
    if cancelled():
        raise Cancelled("The import was cancelled; nothing was changed.")


def _digest(path: Path) -> bytes:
    with open(path, "rb") as file:
        if hasattr(os, "posix_fadvise"):
            # so that the disk is asked, not the memory that was just written
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        return hashlib.file_digest(file, "sha256").digest()


def _publish(temporary: Path, target: Path) -> None:
    """Give the finished file its name, refusing to replace another."""
    try:
        os.link(temporary, target)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        if os.path.lexists(target):
            raise target_exists(target) from None
        os.rename(temporary, target)
    _sync_folder(target.parent)


def _sync_folder(folder: Path) -> None:
    """Make the new name last a power cut, where the system lets a folder be synced."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    with suppress(OSError):
        os.fsync(descriptor)
    os.close(descriptor)


def _report_whole(path: Path, progress: Progress) -> None:
    size = path.stat().st_size
    progress(size, size)


@contextmanager
def _opened(source: Path) -> Iterator[BinaryIO]:
    try:
        descriptor = os.open(source, os.O_RDONLY | getattr(os, "O_BINARY", 0))
    except OSError as error:
        raise _unreadable(source, error) from error
    with os.fdopen(descriptor, "rb") as file:
        yield file


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Turn the system's errors into ours, about ``path``."""
    try:
        yield
    except FileExistsError:
        raise target_exists(path) from None
    except OSError as error:
        raise _failed(path, error) from error


@contextmanager
def _undone_on_failure(target: Path) -> Iterator[None]:
    try:
        yield
    except OctavoError:
        target.unlink(missing_ok=True)
        raise


def _unreadable(source: Path, error: OSError) -> UnreadableFile:
    name = printable(source)
    return UnreadableFile(f"{name} can't be read: {error.strerror}.", path=name)


def _failed(path: Path, error: OSError) -> StorageFailed:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        message, hint = (
            f"The disk that holds {printable(path.parent)} is full.",
            "Free some space, then try again.",
        )
    else:
        message, hint = f"{printable(path)} can't be written: {error.strerror}.", "Check the folder's rights."
    return StorageFailed(message, hint=hint, path=printable(path))
