"""The worker's own memory map, and where in it the pages of a model's files are (proc_pid_maps(5))."""

import errno
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from octavo.core.engine import madvise
from octavo.core.memory.layout import PageRange

_LINE = re.compile(r"([0-9a-f]+)-([0-9a-f]+) (\S{4}) ([0-9a-f]+) \S+ (\d+) *(.*)")
_ESCAPED = re.compile(r"\\([0-7]{3})")


@dataclass(frozen=True, slots=True)
class Region:
    """Addresses ``start`` to ``stop``; of a file, from its byte ``offset`` on, else ``path`` is empty."""

    start: int
    stop: int
    permissions: str
    offset: int
    inode: int
    path: str

    @property
    def is_private(self) -> bool:
        """Memory that is this process's own and can be written."""
        return self.permissions == "rw-p" and not self.inode

    def holds(self, start: int, stop: int) -> bool:
        """Tell whether all of a span lies here."""
        return self.start <= start and stop <= self.stop


def regions(text: str | None = None) -> list[Region]:
    """Read the memory map of this process; empty where there is none to read."""
    if text is None:
        try:
            text = Path("/proc/self/maps").read_text("utf-8", "surrogateescape")
        except OSError:
            return []
    return [_region(found) for found in map(_LINE.fullmatch, text.splitlines()) if found]


def _region(found: re.Match[str]) -> Region:
    path = _ESCAPED.sub(lambda code: chr(int(code[1], 8)), found[6])
    return Region(int(found[1], 16), int(found[2], 16), found[3], int(found[4], 16), int(found[5]), path)


class FileMaps:
    """The mapped parts of a model's files, by the file's number; made right after the load.

    The files are kept open, so that they stay the ones that are mapped, whatever their names mean later.
    """

    def __init__(self, files: Sequence[str], found: Iterable[Region]) -> None:
        # as llama.cpp maps weights; dropping pages of such a mapping never loses anything
        mapped = [region for region in found if region.inode and region.permissions == "r--s"]
        self._descriptors = [_opened(file) for file in files]
        self._regions = [_of_file(descriptor, mapped) for descriptor in self._descriptors]

    @property
    def is_empty(self) -> bool:
        """Nothing of the files is mapped."""
        return not any(self._regions)

    def descriptor(self, file: int) -> int:
        """Give the open file; raises ``OSError`` for one that could not be opened."""
        if self._descriptors[file] < 0:
            raise OSError(errno.ENOENT, os.strerror(errno.ENOENT))
        return self._descriptors[file]

    def size(self, file: int) -> int:
        """Give the bytes that a file has now; raises ``OSError``."""
        return os.fstat(self.descriptor(file)).st_size

    def holds(self, address: int) -> bool:
        """Tell whether an address lies in a mapping of one of the files."""
        return any(region.start <= address < region.stop for part in self._regions for region in part)

    def spans(self, pages: PageRange) -> list[tuple[int, int]]:
        """Give the (address, length) of what is mapped of a range whose ends are page boundaries."""
        found = []
        for region in self._regions[pages.file]:
            start = max(region.start, region.start + pages.start - region.offset)
            stop = min(region.stop, region.start + pages.stop - region.offset)
            if start < stop:
                found.append((start, stop - start))
        return found


def _opened(file: str) -> int:
    try:
        return os.open(file, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
    except OSError:
        return -1


def _of_file(descriptor: int, mapped: Iterable[Region]) -> list[Region]:
    if descriptor < 0:
        return []
    inode = os.fstat(descriptor).st_ino
    return [region for region in mapped if region.inode == inode]


def inward(pages: PageRange, size: int) -> PageRange:
    """Give the whole pages inside a range of a file of ``size`` bytes, whose last page counts as whole."""
    stop = madvise.page_up(size) if pages.stop >= size else madvise.page_down(pages.stop)
    return PageRange(file=pages.file, start=madvise.page_up(pages.start), stop=stop)


def outward(pages: PageRange) -> PageRange:
    """Give all pages that a range touches."""
    return PageRange(file=pages.file, start=madvise.page_down(pages.start), stop=madvise.page_up(pages.stop))
