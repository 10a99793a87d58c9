"""The text of Linux's /proc, read and taken apart.

See proc(5) and the kernel's Documentation/filesystems/proc.rst. A file of /proc is made anew by each read at
offset 0, so one read is one sample.
"""

import os
from contextlib import suppress
from pathlib import Path

# more than any file of /proc that is read here; a longer one would be cut, not read in two pieces
_MOST_BYTES = 1 << 16


def read_once(path: str | Path) -> bytes:
    """Read a file of /proc with one system call."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        return os.read(descriptor, _MOST_BYTES)
    finally:
        os.close(descriptor)


class KeptFile:
    """A file of /proc that is kept open, to be read again and again; where there is none it is None."""

    def __init__(self, path: str) -> None:
        self._descriptor: int | None = None
        with suppress(FileNotFoundError, PermissionError):
            self._descriptor = os.open(path, os.O_RDONLY)

    def read(self) -> bytes | None:
        """Read it anew, at most 512 bytes; None when there is none, and after it was closed."""
        return None if self._descriptor is None else os.pread(self._descriptor, 512, 0)

    def close(self) -> None:
        """Close it; doing so again does nothing."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)


def colon_values(text: bytes) -> dict[bytes, bytes]:
    """Give the values of ``name: value`` lines, units included, as status, meminfo and smaps have them."""
    pairs = (line.partition(b":") for line in text.splitlines())
    return {name: value.strip() for name, _, value in pairs}


def in_bytes(value: bytes) -> int:
    """Turn ``12 kB`` into bytes."""
    return int(value.split()[0]) * 1024


def disk_bytes(text: bytes) -> int:
    """Give ``read_bytes`` of an ``io`` file: bytes that were really fetched from a storage device.

    Page faults and read-ahead count for whom they were done for; what the page cache had does not. File
    systems without a block device (FUSE, 9p) tell 0.
    """
    start = text.index(b"\nread_bytes:") + len(b"\nread_bytes:")
    return int(text[start : text.index(b"\n", start)])
