"""Put one file under a name that nobody looks at yet: by hard link, symlink, shared blocks or copy.

What makes the names of a whole unit public at once, and takes the sources away, is ``staging``. The system's
errors about the new file come out as they are; those about the source are ours.
"""

import errno
import hashlib
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from octavo.core.errors import Cancelled, StorageFailed, UnreadableFile
from octavo.core.gguf import printable
from octavo.core.library.places import target_exists
from octavo.core.library.reflink import cloned

Progress = Callable[[int, int], None]
"""Called with bytes done and bytes in all."""

Cancel = Callable[[], bool]
"""True once the person has called it off."""

_BLOCK = 4 << 20
# file systems that know no hard links answer with one of these
NO_LINKS = {errno.EPERM, errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK}
_NO_RANGE_COPY = {errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.EBADF, errno.EIO}


def copy_into(source: Path, target: Path, progress: Progress, cancelled: Cancel) -> None:
    """Copy the file that ``source`` is or links to."""
    _copy(source, target, progress, cancelled, compare=False)


def compared_copy_into(source: Path, target: Path, progress: Progress, cancelled: Cancel) -> None:
    """Copy, then read both again from the disk's side: what is to take the source's place must equal it."""
    _copy(source, target, progress, cancelled, compare=True)


def link_into(source: Path, target: Path, progress: Progress, cancelled: Cancel) -> None:
    """Give the file that ``source`` is or links to a second name."""
    os.link(os.path.realpath(source), target)
    _report_whole(target, progress)


def link_or_copy_into(source: Path, target: Path, progress: Progress, cancelled: Cancel) -> None:
    """Hard-link the file, or copy it where that is refused (another owner's file, a disk without links)."""
    _link_or(copy_into, source, target, progress, cancelled)


def move_into(source: Path, target: Path, progress: Progress, cancelled: Cancel) -> None:
    """Prepare a move: link the file, or copy and compare; a link stays one, made absolute."""
    if source.is_symlink():
        symlink_into(source, target, progress, cancelled)
    else:
        _link_or(compared_copy_into, source, target, progress, cancelled)


def symlink_into(source: Path, target: Path, progress: Progress, cancelled: Cancel) -> None:
    """Link to the file itself by its absolute path, so that no other link's removal or move breaks it."""
    target.symlink_to(os.path.realpath(source))
    _report_whole(target, progress)


def stop_if(cancelled: Cancel) -> None:
    """Raise ``Cancelled`` once the person has called it off."""
    if cancelled():
        raise Cancelled("The import was cancelled; nothing was changed.")


def sync_folder(folder: Path) -> None:
    """Make new names last a power cut, where the system lets a folder be synced."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    with suppress(OSError):
        os.fsync(descriptor)
    os.close(descriptor)


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turn the system's errors into ours, about ``path``."""
    try:
        yield
    except FileExistsError:
        raise target_exists(path) from None
    except OSError as error:
        raise _failed(path, error) from error


def _link_or(
    copy: Callable[[Path, Path, Progress, Cancel], None],
    source: Path,
    target: Path,
    progress: Progress,
    cancelled: Cancel,
) -> None:
    try:
        os.link(os.path.realpath(source), target)
    except OSError as error:
        if error.errno != errno.EXDEV and error.errno not in NO_LINKS:
            raise
        copy(source, target, progress, cancelled)
    else:
        _report_whole(target, progress)


def _copy(source: Path, target: Path, progress: Progress, cancelled: Cancel, *, compare: bool) -> None:
    size = _size(source)
    steps = 2 if compare else 1

    def written(done: int) -> None:
        progress(done // steps, size)

    def read_back(done: int) -> None:
        progress((size + done) // steps, size)

    digest = _write(source, target, written, cancelled, compare=compare)
    if digest is not None and _digest(target, read_back, cancelled) != digest:
        raise StorageFailed(
            f"The copy of {printable(source)} differs from the original; the original was kept.",
            hint="Check the disk, then import the file again.",
            path=printable(source),
        )
    if compare and digest is None:
        # the blocks are the source's own: there is nothing to compare
        progress(size, size)


def _write(
    source: Path, target: Path, done: Callable[[int], None], cancelled: Cancel, *, compare: bool
) -> bytes | None:
    """Fill ``target`` with ``source``, on the disk; gives its SHA-256 where the copy is to be compared."""
    digest = None
    with _opened(source) as reading:
        before = os.fstat(reading.fileno())
        with open(target, "xb") as writing:
            if cloned(reading.fileno(), target):
                count = before.st_size
                done(count)
            elif compare:
                digest, count = _hashed_copy(source, reading, writing, done, cancelled)
            else:
                count = _plain_copy(source, reading, writing, done, cancelled)
            writing.flush()
        _sync_file(target)
        after = os.fstat(reading.fileno())
    if (count, after.st_size, after.st_mtime_ns) != (before.st_size, before.st_size, before.st_mtime_ns):
        raise changed(source)
    # as a move within a disk does; a file system that can't keep it is good enough
    with suppress(OSError):
        os.utime(target, ns=(after.st_atime_ns, after.st_mtime_ns))
    return digest


def changed(source: Path) -> UnreadableFile:
    """Make the error for a source that somebody still writes."""
    return UnreadableFile(
        f"{printable(source)} changed while it was imported.",
        hint="Wait until it is complete, then import it again.",
        path=printable(source),
    )


def _hashed_copy(
    source: Path, reading: BinaryIO, writing: BinaryIO, done: Callable[[int], None], cancelled: Cancel
) -> tuple[bytes, int]:
    digest, count = hashlib.sha256(), 0
    for block in _blocks(reading, source):
        stop_if(cancelled)
        digest.update(block)
        writing.write(block)
        count += len(block)
        done(count)
    return digest.digest(), count


def _plain_copy(
    source: Path, reading: BinaryIO, writing: BinaryIO, done: Callable[[int], None], cancelled: Cancel
) -> int:
    """Copy within the kernel where it can (also on a server's or a disk's own side), else block by block."""
    count = 0
    while size := _range_copied(reading, writing):
        stop_if(cancelled)
        count += size
        done(count)
    # the rest, or all: some file systems say that there is nothing to copy
    reading.seek(count)
    writing.seek(count)
    for block in _blocks(reading, source):
        stop_if(cancelled)
        writing.write(block)
        count += len(block)
        done(count)
    return count


if sys.platform == "linux":

    def _range_copied(reading: BinaryIO, writing: BinaryIO) -> int:
        """Give how many bytes the kernel copied: 0 at the end, and where it can't between these two."""
        try:
            return os.copy_file_range(reading.fileno(), writing.fileno(), _BLOCK)
        except OSError as error:
            if error.errno in _NO_RANGE_COPY:
                return 0
            raise

else:

    def _range_copied(reading: BinaryIO, writing: BinaryIO) -> int:
        """Give 0: there is no such call."""
        return 0


def _blocks(reading: BinaryIO, source: Path) -> Iterator[bytes]:
    try:
        while block := reading.read(_BLOCK):
            yield block
    except OSError as error:
        raise _unreadable(source, error) from error


def _digest(path: Path, done: Callable[[int], None], cancelled: Cancel) -> bytes:
    digest, count = hashlib.sha256(), 0
    with open(path, "rb") as file:
        if hasattr(os, "posix_fadvise"):
            # so that the disk is asked, not the memory that was just written
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        while block := file.read(_BLOCK):
            stop_if(cancelled)
            digest.update(block)
            count += len(block)
            done(count)
    return digest.digest()


def _sync_file(path: Path) -> None:
    # opened anew: on macOS a clone took the place of the file that was open
    with open(path, "r+b") as file:
        os.fsync(file.fileno())


def _size(source: Path) -> int:
    try:
        return source.stat().st_size
    except OSError as error:
        raise _unreadable(source, error) from error


def _report_whole(path: Path, progress: Progress) -> None:
    size = path.stat().st_size
    progress(size, size)


@contextmanager
def _opened(source: Path) -> Iterator[BinaryIO]:
    try:
        descriptor = os.open(source, os.O_RDONLY | getattr(os, "O_BINARY", 0))
    except OSError as error:
        raise _unreadable(source, error) from error
    with os.fdopen(descriptor, "rb", buffering=0) as file:
        yield file


def _unreadable(source: Path, error: OSError) -> UnreadableFile:
    name = printable(source)
    return UnreadableFile(f"{name} can't be read: {error.strerror}.", path=name)


def _failed(path: Path, error: OSError) -> StorageFailed:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        message, hint = (
            f"The disk that holds {printable(path.parent)} is full.",
            "Free some space, then try again.",
        )
    elif error.errno == errno.EROFS:
        message, hint = (
            f"{printable(path)} can't be written: the disk is read-only.",
            "Mount it for writing, or use another folder.",
        )
    else:
        message, hint = f"{printable(path)} can't be written: {error.strerror}.", "Check the folder's rights."
    return StorageFailed(message, hint=hint, path=printable(path))
