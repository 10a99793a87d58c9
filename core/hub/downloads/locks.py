"""A lock on an open file that the system drops when its holder dies."""

import sys

if sys.platform == "win32":
    import msvcrt
    import os

    _FAR = 1 << 62  # a byte that no file has: locked bytes can't be read by others

    def try_lock(file: int) -> bool:
        """Take the lock; False when another process, or another opening of the file, has it."""
        os.lseek(file, _FAR, os.SEEK_SET)
        try:
            msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

else:
    import fcntl

    def try_lock(file: int) -> bool:
        """Take the lock; False when another process, or another opening of the file, has it."""
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True
