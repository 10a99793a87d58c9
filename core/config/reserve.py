"""A little room that is kept on the disk, so that Octavo can start when everything else is full.

Without a byte to write, a service can't even say where it listens or open its database. So some megabytes lie
in a file of their own; they are given up at a start on a full disk, and kept again when there is room.
"""

import contextlib
import logging
import os
import shutil
from pathlib import Path

RESERVE_BYTES = 8 << 20
ROOMY_BYTES = 256 << 20
"""Free bytes from which on the reserve is made."""

_log = logging.getLogger(__name__)


class Reserve:
    """The file that keeps the room; a disk that lets none be kept is left as it is."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def give_up_if_full(self) -> bool:
        """Remove the file where less than its size is free; tells whether it was there and is gone."""
        with contextlib.suppress(OSError):
            if self._path.exists() and _free(self._path.parent) < RESERVE_BYTES:
                self._path.unlink()
                return True
        return False

    def keep(self) -> None:
        """Make the file if there is plenty of room and none yet."""
        if self._path.exists() or _free(self._path.parent) < ROOMY_BYTES:
            return
        try:
            with self._path.open("xb") as file:
                _fill(file.fileno())
        except OSError as fault:
            _log.warning("no room can be kept for a full disk: %s", fault)
            self._path.unlink(missing_ok=True)


def _fill(descriptor: int) -> None:
    """Take the room for good; writing, where it can't be reserved."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(descriptor, 0, RESERVE_BYTES)
        return
    os.write(descriptor, bytes(RESERVE_BYTES))
    os.fsync(descriptor)


def _free(folder: Path) -> int:
    return shutil.disk_usage(folder).free
