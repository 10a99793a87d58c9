"""Who works in a folder: locks that the system takes back when a process dies.

On Windows, and on file systems without locks, the age of a folder tells instead.
"""

import contextlib
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

_ABANDONED_AGE_S = 24 * 3600

if sys.platform == "win32":

    @contextlib.contextmanager
    def locked(folder: Path) -> Iterator[None]:
        """Work in ``folder``; there is no lock for a folder."""
        yield

    def held_lock(folder: Path) -> int:
        """Give -1: there is no lock for a folder."""
        return -1

    def is_abandoned(folder: Path) -> bool:
        """Tell whether whoever made ``folder`` is long gone."""
        return _is_old(folder)

else:
    import fcntl

    @contextlib.contextmanager
    def locked(folder: Path) -> Iterator[None]:
        """Be the only one who begins, publishes or clears imports in ``folder``; waits for its turn."""
        descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
        try:
            with contextlib.suppress(OSError):  # a file system without locks
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def held_lock(folder: Path) -> int:
        """Lock ``folder`` until the descriptor that this gives is closed."""
        descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
        with contextlib.suppress(OSError):  # a file system without locks: its age tells
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return descriptor

    def is_abandoned(folder: Path) -> bool:
        """Tell whether nobody holds the lock of ``folder``, or of a file."""
        descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:
            return _is_old(folder)
        finally:
            os.close(descriptor)
        return True


def _is_old(folder: Path) -> bool:
    return time.time() - folder.stat().st_mtime > _ABANDONED_AGE_S
