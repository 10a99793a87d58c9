"""One service per home: a lock that the system drops when its holder dies, so no stale pid can block."""

import os
import sys
from pathlib import Path


class ServiceLock:
    """The lock on ``Home.lock``; it is held until ``release`` or the process's end."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = -1

    def acquire(self) -> bool:
        """Take the lock; False when another service holds it."""
        self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600)
        try:
            _lock(self._file)
        except OSError:
            self.release()
            return False
        return True

    def release(self) -> None:
        """Let go of the lock; the file stays, since removing it would let two services hold one each."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def _lock(file: int) -> None:
    if sys.platform == "win32":
        import msvcrt

        msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
    else:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
