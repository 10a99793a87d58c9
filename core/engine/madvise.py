"""The calls by which a process tells the kernel about its own memory: madvise, mlock, mincore.

Sources: madvise(2), mlock(2), mincore(2), posix_fadvise(2); advice numbers from
include/uapi/asm-generic/mman-common.h. Linux only: elsewhere ``is_supported`` is False and nothing is called.
All addresses and lengths are bytes; ctypes lets other threads run meanwhile.
"""

import ctypes
import mmap
import os
import sys

PAGE = mmap.PAGESIZE
RANDOM, DONTNEED, NOHUGEPAGE, PAGEOUT, POPULATE_READ = 1, 4, 15, 21, 22

is_supported = sys.platform == "linux"

_libc = ctypes.CDLL(None, use_errno=True) if is_supported else None
if _libc is not None:
    _libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    for _name in ("mlock", "munlock"):
        getattr(_libc, _name).argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    _libc.mincore.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p]


def page_up(address: int) -> int:
    """Give the first page boundary at or above an address."""
    return (address + PAGE - 1) // PAGE * PAGE


def page_down(address: int) -> int:
    """Give the last page boundary at or below an address."""
    return address // PAGE * PAGE


def advise(address: int, length: int, advice: int) -> None:
    """Call madvise on whole pages; raises ``OSError``."""
    _check(_library().madvise(address, length, advice))


def lock(address: int, length: int) -> None:
    """Lock whole pages in memory, reading what is not there; raises ``OSError``."""
    _check(_library().mlock(address, length))


def unlock(address: int, length: int) -> None:
    """Undo ``lock``; raises ``OSError``."""
    _check(_library().munlock(address, length))


def present_pages(address: int, length: int) -> int:
    """Count the pages of a range that are in memory; for anonymous memory, those that were touched."""
    vector = (ctypes.c_ubyte * (length // PAGE))()
    _check(_library().mincore(address, length, vector))
    return bytes(vector).translate(_LOWEST_BIT).count(1)


_LOWEST_BIT = bytes(value & 1 for value in range(256))


def _library() -> ctypes.CDLL:
    if _libc is None:
        raise OSError("this system's memory calls are not known")
    return _libc


def _check(result: int) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
