"""Copy a file by sharing its blocks, where the file system can: at once, and without any room.

Linux: the ``FICLONE`` ioctl (btrfs, XFS, bcachefs; ``man 2 ioctl_ficlonerange``); macOS: ``fclonefileat``
(APFS; ``man 2 clonefile``). Elsewhere, and where the file system can't, nothing is done.
"""

import ctypes
import os
import sys
from pathlib import Path

_FICLONE = 0x40049409  # _IOW(0x94, 9, int), of linux/fs.h


if sys.platform == "linux":
    import fcntl

    def cloned(reading: int, target: Path) -> bool:
        """Make the file ``target``, which is there and empty, share all blocks of ``reading``."""
        descriptor = os.open(target, os.O_WRONLY | os.O_CLOEXEC)
        try:
            fcntl.ioctl(descriptor, _FICLONE, reading)
        except OSError:
            # another disk, or a file system that shares no blocks: the caller copies
            return False
        finally:
            os.close(descriptor)
        return True

elif sys.platform == "darwin":

    def cloned(reading: int, target: Path) -> bool:
        """Make the file ``target``, which is there and empty, share all blocks of ``reading``."""
        clone = getattr(ctypes.CDLL(None, use_errno=True), "fclonefileat", None)
        if clone is None:
            return False
        at_folder = -2  # AT_FDCWD
        fresh = target.with_name(target.name + "c")
        if clone(reading, at_folder, os.fsencode(fresh), 0) != 0:
            return False
        os.replace(fresh, target)
        return True

else:

    def cloned(reading: int, target: Path) -> bool:
        """Do nothing: this system shares no blocks in a way that we know."""
        return False
