"""What Windows tells. Written against the documentation, not tested on hardware.

Sources: Microsoft's psapi.h reference (GetProcessMemoryInfo with PROCESS_MEMORY_COUNTERS_EX and _EX2,
GetPerformanceInfo with PERFORMANCE_INFORMATION) and processthreadsapi.h (OpenProcess); psutil for what it
knows. Not told per process: page faults that needed a disk (PageFaultCount is of both kinds), and bytes from
a disk (GetProcessIoCounters counts pipes and what the cache had, but no page faults: of a mapped model,
nothing).
"""

import ctypes
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Protocol, cast

from octavo.core.memory.figures import ProcessFigures, SystemFigures

Fields = Sequence[tuple[str, Any]]

PROCESS_QUERY_LIMITED_INFORMATION = 0x1000


class Counters(ctypes.Structure):
    """PROCESS_MEMORY_COUNTERS_EX: 80 bytes where addresses have 64 bits; sizes are bytes."""

    _fields_: ClassVar[Fields] = (
        ("size", ctypes.c_uint32),
        ("page_fault_count", ctypes.c_uint32),
        ("peak_working_set_size", ctypes.c_size_t),
        ("working_set_size", ctypes.c_size_t),
        ("pools", ctypes.c_size_t * 4),
        ("pagefile_usage", ctypes.c_size_t),
        ("peak_pagefile_usage", ctypes.c_size_t),
        ("private_usage", ctypes.c_size_t),
    )


class LongerCounters(Counters):
    """PROCESS_MEMORY_COUNTERS_EX2: 96 bytes; Windows knows it since September 2023."""

    _fields_: ClassVar[Fields] = (
        ("private_working_set_size", ctypes.c_size_t),
        ("shared_commit_usage", ctypes.c_uint64),
    )


class Performance(ctypes.Structure):
    """PERFORMANCE_INFORMATION: 104 bytes where addresses have 64 bits; counts of pages, but for page_size."""

    _fields_: ClassVar[Fields] = (
        ("size", ctypes.c_uint32),
        ("commit", ctypes.c_size_t * 3),
        ("physical_total", ctypes.c_size_t),
        ("physical_available", ctypes.c_size_t),
        ("system_cache", ctypes.c_size_t),
        ("kernel", ctypes.c_size_t * 3),
        ("page_size", ctypes.c_size_t),
        ("handles_processes_threads", ctypes.c_uint32 * 3),
    )


class Library(Protocol):
    """The calls of kernel32 that are used; the buffers are pointers to the structures above."""

    def OpenProcess(self, access: int, inherit: bool, pid: int) -> int | None:
        """Give a handle, or nothing."""

    def CloseHandle(self, handle: int) -> int:
        """Return a handle."""

    def K32GetProcessMemoryInfo(self, handle: int, buffer: object, size: int) -> int:
        """Fill in the counters; 0 when it could not."""

    def K32GetPerformanceInfo(self, buffer: object, size: int) -> int:
        """Fill in `Performance`; 0 when it could not."""


def process(pid: int) -> ProcessFigures | None:
    """Take one sample; None when the process is gone or another user's.

    ``private_bytes`` is the private working set; before Windows told it, what was committed, as far as it
    can be resident. ``file_bytes`` is the rest of the working set, shared memory with it.
    """
    import psutil

    counters = _counters(pid)
    if counters is None:
        return None
    try:
        told = psutil.Process(pid)
        with told.oneshot():
            times, threads = told.cpu_times(), told.num_threads()
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return None
    private = _private_bytes(counters)
    return ProcessFigures(
        pid=pid,
        private_bytes=private,
        file_bytes=counters.working_set_size - private,
        shared_bytes=0,
        threads=threads,
        cpu_s=times.user + times.system,
    )


def proportional(pid: int) -> int | None:
    """Give None: Windows has no such figure."""
    return None


def system(root: Path = Path("/")) -> SystemFigures:
    """Take one sample of the machine.

    ``cached_bytes`` is what Windows calls the system cache: the standby list and the system's working set.
    """
    import psutil

    told = Performance(size=ctypes.sizeof(Performance))
    if not _library().K32GetPerformanceInfo(ctypes.byref(told), told.size):
        raise OSError("GetPerformanceInfo did not answer")
    return SystemFigures(
        total_bytes=told.physical_total * told.page_size,
        available_bytes=told.physical_available * told.page_size,
        cached_bytes=told.system_cache * told.page_size,
        swap_used_bytes=psutil.swap_memory().used,
    )


def _private_bytes(counters: Counters) -> int:
    """Give the private working set, or the most it can be."""
    told = counters.private_usage
    if isinstance(counters, LongerCounters):
        told = counters.private_working_set_size
    return int(min(told, counters.working_set_size))


def _counters(pid: int) -> Counters | None:
    with _opened(pid) as handle:
        for kind in (LongerCounters, Counters) if handle else ():
            counters = kind(size=ctypes.sizeof(kind))
            if _library().K32GetProcessMemoryInfo(handle, ctypes.byref(counters), counters.size):
                return counters
    return None


@contextmanager
def _opened(pid: int) -> Iterator[int]:
    handle = _library().OpenProcess(PROCESS_QUERY_LIMITED_INFORMATION, False, pid)
    try:
        yield handle or 0
    finally:
        if handle:
            _library().CloseHandle(handle)


@cache
def _library() -> Library:
    # CDLL, not WinDLL: with 64-bit addresses there is one calling convention, and CDLL exists everywhere
    library = ctypes.CDLL("kernel32")
    library.OpenProcess.argtypes = (ctypes.c_uint32, ctypes.c_int, ctypes.c_uint32)
    library.OpenProcess.restype = ctypes.c_void_p
    library.CloseHandle.argtypes = (ctypes.c_void_p,)
    library.K32GetProcessMemoryInfo.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint32)
    library.K32GetPerformanceInfo.argtypes = (ctypes.c_void_p, ctypes.c_uint32)
    return cast(Library, library)
