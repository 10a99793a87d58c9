"""What macOS tells. Written against the documentation, not tested on hardware.

Sources: XNU's bsd/sys/resource.h (rusage_info_v4), libproc.h (proc_pid_rusage), osfmk/mach/vm_statistics.h
(vm_statistics64) and mach_host.h (host_statistics64); psutil for what it knows.
"""

import ctypes
import errno
import os
from functools import cache
from pathlib import Path
from typing import Any, Protocol, cast

from octavo.core.memory.figures import ProcessFigures, SystemFigures

RUSAGE_INFO_V4 = 4
HOST_VM_INFO64 = 4


class Usage(ctypes.Structure):
    """rusage_info_v4: 296 bytes; sizes are bytes, times are Mach's ticks and not used."""

    _fields_ = (
        ("uuid", ctypes.c_uint8 * 16),
        ("user_time", ctypes.c_uint64),
        ("system_time", ctypes.c_uint64),
        ("package_idle_wakeups", ctypes.c_uint64),
        ("interrupt_wakeups", ctypes.c_uint64),
        ("page_ins", ctypes.c_uint64),
        ("wired_size", ctypes.c_uint64),
        ("resident_size", ctypes.c_uint64),
        ("physical_footprint", ctypes.c_uint64),
        ("started_and_exited", ctypes.c_uint64 * 2),
        ("children", ctypes.c_uint64 * 6),
        ("disk_bytes_read", ctypes.c_uint64),
        ("disk_bytes_written", ctypes.c_uint64),
        ("unused", ctypes.c_uint64 * 17),
    )


class Pages(ctypes.Structure):
    """vm_statistics64 (revision 1): 152 bytes, all counts of pages."""

    _fields_ = (
        ("free_active_inactive_wired", ctypes.c_uint32 * 4),
        ("zero_filled_to_purges", ctypes.c_uint64 * 9),
        ("purgeable_and_speculative", ctypes.c_uint32 * 2),
        ("decompressions", ctypes.c_uint64),
        ("compressions", ctypes.c_uint64),
        ("swap_ins", ctypes.c_uint64),
        ("swap_outs", ctypes.c_uint64),
        ("compressor", ctypes.c_uint32),
        ("throttled", ctypes.c_uint32),
        ("external", ctypes.c_uint32),
        ("internal", ctypes.c_uint32),
        ("uncompressed_in_compressor", ctypes.c_uint64),
    )


class Library(Protocol):
    """The calls of libSystem that are used; the buffers are pointers to the structures above."""

    def proc_pid_rusage(self, pid: int, flavor: int, buffer: object) -> int:
        """Fill in a `Usage`; 0, or -1 and errno."""

    def mach_host_self(self) -> int:
        """Give the port of the host."""

    def host_statistics64(self, host: int, flavor: int, buffer: object, count: object) -> int:
        """Fill in `Pages`, of which ``count`` says the size in 32-bit words; 0 when it did."""


class OwnDisk:
    """The bytes that this process read from a disk, as `octavo.core.memory.probe.own` counts them."""

    def read(self) -> int | None:
        """Give the bytes so far."""
        usage = _usage(os.getpid())
        return None if usage is None else int(usage.disk_bytes_read)

    def close(self) -> None:
        """Do nothing: nothing is held open."""


def process(pid: int) -> ProcessFigures | None:
    """Take one sample; None when the process is gone or another user's.

    ``private_bytes`` is the physical footprint, as the Activity Monitor tells it: it has compressed memory
    too, so the sum may be more than what is resident. ``file_bytes`` is what is resident besides, shared
    memory with it.
    """
    import psutil

    usage = _usage(pid)
    if usage is None:
        return None
    try:
        told = psutil.Process(pid)
        with told.oneshot():
            memory: Any = told.memory_info()
            times, threads = told.cpu_times(), told.num_threads()
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return None
    return ProcessFigures(
        pid=pid,
        private_bytes=usage.physical_footprint,
        file_bytes=max(usage.resident_size - usage.physical_footprint, 0),
        shared_bytes=0,
        minor_faults=max(memory.pfaults - memory.pageins, 0),
        major_faults=usage.page_ins,
        disk_bytes=usage.disk_bytes_read,
        threads=threads,
        cpu_s=times.user + times.system,
    )


def proportional(pid: int) -> int | None:
    """Give None: macOS has no such figure."""
    return None


def system(root: Path = Path("/")) -> SystemFigures:
    """Take one sample of the machine; there is no measure of refaults or of waiting, and no cgroups."""
    import psutil

    memory, pages, page = psutil.virtual_memory(), _pages(), os.sysconf("SC_PAGE_SIZE")
    return SystemFigures(
        total_bytes=memory.total,
        available_bytes=memory.available,
        cached_bytes=pages.external * page,
        swap_used_bytes=psutil.swap_memory().used,
        swapped_in_bytes=pages.swap_ins * page,
        swapped_out_bytes=pages.swap_outs * page,
    )


def _usage(pid: int) -> Usage | None:
    usage = Usage()
    if _library().proc_pid_rusage(pid, RUSAGE_INFO_V4, ctypes.byref(usage)) == 0:
        return usage
    number = ctypes.get_errno()
    if number in (errno.ESRCH, errno.EPERM):
        return None
    raise OSError(number, f"proc_pid_rusage: {os.strerror(number)}")


def _pages() -> Pages:
    pages, count = Pages(), ctypes.c_uint32(ctypes.sizeof(Pages) // 4)
    result = _library().host_statistics64(_host(), HOST_VM_INFO64, ctypes.byref(pages), ctypes.byref(count))
    if result != 0:
        raise OSError(f"host_statistics64: kernel result {result}")
    return pages


@cache
def _host() -> int:
    # once: each call takes a reference to the port that nobody would return
    return _library().mach_host_self()


@cache
def _library() -> Library:
    library = ctypes.CDLL("/usr/lib/libSystem.B.dylib", use_errno=True)
    library.proc_pid_rusage.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_void_p)
    library.mach_host_self.argtypes = ()
    library.mach_host_self.restype = ctypes.c_uint32
    library.host_statistics64.argtypes = (ctypes.c_uint32, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
    return cast(Library, library)
