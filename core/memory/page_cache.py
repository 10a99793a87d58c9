"""How many pages of a file the page cache holds, asked range by range without touching one of them.

Two system calls can tell. ``cachestat`` (Linux 6.5, mm/filemap.c) counts what lies in the cache, without a
mapping, at the cost of what is there; it sees nothing on overlayfs, where the pages belong to the file below.
``mincore`` (mm/mincore.c) tells page by page, through a mapping of our own that nobody reads, at a cost for
every page of the file. So ``cachestat`` is asked where it has shown that it sees, and ``mincore`` elsewhere.

Both keep quiet about files that a process neither owns nor may write: ``cachestat`` refuses (since Linux
6.15), ``mincore`` calls every page resident. Then nothing is known here, and the reason says so. macOS has
``mincore`` alone and the same rule is applied there (not tested on hardware); Windows tells a process about
its own working set only, so that nothing is known.
"""

import ctypes
import errno
import mmap
import os
import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

PAGE = mmap.PAGESIZE
"""Bytes of a page."""
LONGEST_RANGE = 16_384
"""Pages asked for at once while the interpreter waits: under a millisecond's work for the kernel."""

HAS_CACHESTAT = sys.platform == "linux"
"""Whether to try; what the kernel lacks shows at the first call."""

HIDDEN = "The system tells only the owner of a file, or who may write it, which of its pages are in memory."
NOT_ON_WINDOWS = "Windows tells no program which pages of a file are in memory."

_CACHESTAT = 451  # include/uapi/asm-generic/unistd.h, the same on every architecture but alpha and mips
_OWNERS_CAPABILITY = 1 << 3  # CAP_FOWNER, include/uapi/linux/capability.h
_OVERFLOW_USER = 65_534  # stands for users that this user namespace doesn't have, Documentation/admin-guide
_FAILED = ctypes.c_void_p(-1).value  # MAP_FAILED
_ASKED_WORDS, _TOLD_WORDS = 2, 5  # struct cachestat_range and cachestat, include/uapi/linux/mman.h


class CachedFile:
    """One file whose pages are counted, over ranges that stay the same; for one thread at a time.

    ``edges`` are page numbers in rising order, from 0 to the end of the file: each range lies between two of
    them. ``size`` is the file's size in bytes when the edges were made.
    """

    def __init__(self, path: Path, size: int, edges: NDArray[np.int64]) -> None:
        self.path, self.size, self.edges = path, size, edges
        self._widths = np.diff(edges)
        self._asked = np.zeros((len(edges) - 1, _ASKED_WORDS), np.uint64)
        self._asked[:, 0], self._asked[:, 1] = edges[:-1] * PAGE, self._widths * PAGE
        self._told = np.zeros((len(edges) - 1, _TOLD_WORDS), np.uint64)
        self._descriptor, self._address = -1, 0
        self._vector: NDArray[np.uint8] = np.zeros(0, np.uint8)
        self._has_cachestat, self._is_seen, self._was_even = HAS_CACHESTAT, False, True
        self._failure = self._open()

    def count(self, counts: NDArray[np.int64]) -> str:
        """Write into ``counts`` how many pages of each range are resident; gives why not, or nothing.

        Where it isn't known, ``counts`` are zeros.
        """
        counts[:] = 0
        try:
            reason = self._failure or self._hidden()
            if reason or not len(counts):
                return reason
            if not (self._has_cachestat and self._count_cached(counts)):
                self._count_vector(counts)
        except OSError as error:
            counts[:] = 0
            return self._failure or f"{self.path.name} can't be looked at: {error.strerror}."
        return ""

    def close(self) -> None:
        """Let the file go; counting afterwards tells that it is closed."""
        if self._address:
            _c().munmap(self._address, self.size)
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor, self._address, self._failure = -1, 0, "The file is no longer looked at."

    def _open(self) -> str:
        if sys.platform == "win32":
            return NOT_ON_WINDOWS
        try:
            self._descriptor = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except OSError as error:
            return f"{self.path.name} can't be opened: {error.strerror}."
        return ""

    def _hidden(self) -> str:
        """Tell why the kernel's answers would be no truth."""
        told = os.fstat(self._descriptor)
        if told.st_size < self.size:
            return f"{self.path.name} is shorter than its header said."
        return "" if may_see(self.path, told.st_uid) else HIDDEN

    def _count_cached(self, counts: NDArray[np.int64]) -> bool:
        """Count with cachestat; False when mincore must be asked instead."""
        try:
            # all or nothing is the usual state, and one question tells; a mixed file isn't asked twice
            if self._was_even and self._is_even(counts):
                return self._is_seen
            self._count_ranges(counts)
        except OSError as error:
            self._has_cachestat = False
            if error.errno == errno.EPERM and _answers_at_all():
                self._failure = HIDDEN
                raise
            return False
        self._was_even = not counts.any() or bool((counts == self._widths).all())
        return True

    def _is_even(self, counts: NDArray[np.int64]) -> bool:
        pages = int(self.edges[-1])
        found = _cached(self._descriptor, pages * PAGE)
        self._is_seen = self._is_seen or found > 0
        if found == pages:
            counts[:] = self._widths
        return found in (0, pages)

    def _count_ranges(self, counts: NDArray[np.int64]) -> None:
        """Ask for each range; the interpreter stays locked during a call: to win it back costs more."""
        ask, file, told = _locked().syscall, self._descriptor, self._told.ctypes.data
        for asked in range(self._asked.ctypes.data, self._asked.ctypes.data + self._asked.nbytes, 16):
            if ask(_CACHESTAT, file, asked, told, 0):
                raise _error()
            told += 40
        counts[:] = self._told[:, 0]

    def _count_vector(self, counts: NDArray[np.int64]) -> None:
        if not self._address:
            self._map()
        if _c().mincore(self._address, self.size, self._vector.ctypes.data):
            raise _error()
        counts[:] = range_counts(self._vector, self.edges)

    def _map(self) -> None:
        self._vector = np.zeros(int(self.edges[-1]), np.uint8)
        shared = 1  # MAP_SHARED and PROT_READ on Linux and macOS alike
        address = _c().mmap(None, self.size, 1, shared, self._descriptor, 0)
        if address == _FAILED:
            raise _error()
        self._address = address


def range_counts(vector: NDArray[np.uint8], edges: NDArray[np.int64]) -> NDArray[np.int64]:
    """Count the resident pages between ``edges`` in mincore's ``vector``, of which the lowest bit counts.

    The other bits are cleared in place.
    """
    np.bitwise_and(vector, 1, out=vector)
    return np.add.reduceat(vector, edges[:-1], dtype=np.int64)


def may_see(path: Path, owner: int) -> bool:
    """Tell whether the kernel answers truly for a file: ``can_do_mincore``, mm/mincore.c.

    It does for the owner, for who may write, and for who has the capability of owners.
    """
    if sys.platform == "win32":
        return False
    if owner == os.geteuid():
        return True
    if owner != _OVERFLOW_USER and _is_capable():
        return True
    effective = os.access in os.supports_effective_ids
    return os.access(path, os.W_OK, effective_ids=effective)


def _is_capable() -> bool:
    """Tell whether this process counts as the owner of every file (credentials(7), CapEff)."""
    if sys.platform != "linux":
        return sys.platform != "win32" and os.geteuid() == 0
    try:
        status = Path("/proc/self/status").read_bytes()
    except OSError:
        return False
    word = next((line.split()[1] for line in status.splitlines() if line.startswith(b"CapEff:")), b"0")
    return bool(int(word, 16) & _OWNERS_CAPABILITY)


def _cached(descriptor: int, length: int) -> int:
    """Ask cachestat for the pages of the first ``length`` bytes; raises ``OSError``."""
    asked, told = (ctypes.c_uint64 * _ASKED_WORDS)(0, length), (ctypes.c_uint64 * _TOLD_WORDS)()
    if _c().syscall(_CACHESTAT, descriptor, ctypes.addressof(asked), ctypes.addressof(told), 0):
        raise _error()
    return int(told[0])


def _answers_at_all() -> bool:
    """Tell a kernel that hides a file from a filter that refuses the call: ask for memory of our own."""
    try:
        own = os.memfd_create("octavo")
    except OSError:
        return False
    try:
        return _cached(own, PAGE) >= 0
    except OSError:
        return False
    finally:
        os.close(own)


def _error() -> OSError:
    number = ctypes.get_errno()
    return OSError(number, os.strerror(number))


_libraries: dict[str, ctypes.CDLL] = {}


def _c() -> ctypes.CDLL:
    """Give the C library; other threads run during its calls."""
    if "free" not in _libraries:
        _libraries["free"] = _declared(ctypes.CDLL(None, use_errno=True))
    return _libraries["free"]


def _locked() -> ctypes.CDLL:
    """Give the C library for short calls, during which no other thread of ours runs."""
    if "locked" not in _libraries:
        _libraries["locked"] = _declared(ctypes.PyDLL(None, use_errno=True))
    return _libraries["locked"]


def _declared(library: ctypes.CDLL) -> ctypes.CDLL:
    pointer, size, number = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
    library.mmap.restype = pointer
    library.mmap.argtypes = [pointer, size, number, number, number, ctypes.c_long]
    library.munmap.argtypes = [pointer, size]
    library.mincore.argtypes = [pointer, size, pointer]
    library.syscall.restype = ctypes.c_long
    library.syscall.argtypes = [ctypes.c_long, number, pointer, pointer, number]
    return library
