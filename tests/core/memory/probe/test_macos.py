"""macOS, as its calls are documented to answer; nothing here ran on one."""

import ctypes
import errno
import os
import struct
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from octavo.core.memory import probe
from octavo.core.memory.figures import ProcessFigures
from octavo.core.memory.probe import macos, own

PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
# rusage_info_v4: the identifier, then 35 numbers; each number is its own place, for the test to name
USAGE = [*range(100, 104), 11, 0, 700 << 20, 300 << 20, *range(108, 116), 5 << 20, 6, *range(118, 135)]
# vm_statistics64: 4, 9, 2, 4 and 4 numbers and one
PAGES = [*range(4), *range(10, 19), *range(20, 22), 30, 31, 32, 33, 40, 41, 42, 43, 50]


class Library:
    """libSystem, that answers with what was recorded."""

    def __init__(self, usage: bytes | None, number: int = 0) -> None:
        self.usage, self.number = usage, number
        self.asked: list[tuple[int, ...]] = []

    def proc_pid_rusage(self, pid: int, flavor: int, buffer: Any) -> int:
        self.asked.append((pid, flavor))
        if self.usage is None:
            ctypes.set_errno(self.number)
            return -1
        ctypes.memmove(buffer, self.usage, len(self.usage))
        return 0

    def mach_host_self(self) -> int:
        return 77

    def host_statistics64(self, host: int, flavor: int, buffer: Any, count: Any) -> int:
        self.asked.append((host, flavor, count._obj.value))
        recorded = struct.pack("=4I9Q2I4Q4IQ", *PAGES)
        ctypes.memmove(buffer, recorded, len(recorded))
        return self.number


class Told:
    """What psutil tells of a process."""

    def __init__(self, pid: int) -> None:
        if pid == 4:
            raise psutil.NoSuchProcess(pid)

    def oneshot(self) -> Any:
        return open(os.devnull)

    def memory_info(self) -> Any:
        return SimpleNamespace(pfaults=1000, pageins=10)

    def cpu_times(self) -> Any:
        return SimpleNamespace(user=1.5, system=0.25)

    def num_threads(self) -> int:
        return 9


def answers(monkeypatch: pytest.MonkeyPatch, usage: bytes | None, number: int = 0) -> Library:
    """Have the module ask a recording."""
    library = Library(usage, number)
    macos._host.cache_clear()
    monkeypatch.setattr(macos, "_library", lambda: library)
    monkeypatch.setattr(psutil, "Process", Told)
    return library


@pytest.fixture
def usage() -> bytes:
    """Give the recorded rusage_info_v4."""
    return struct.pack("=16s35Q", b"u" * 16, *USAGE)


def test_the_structures_have_the_sizes_of_the_headers() -> None:
    assert (ctypes.sizeof(macos.Usage), ctypes.sizeof(macos.Pages)) == (296, 152)


def test_a_process(monkeypatch: pytest.MonkeyPatch, usage: bytes) -> None:
    library = answers(monkeypatch, usage)
    assert probe._probe("darwin").process(5) == ProcessFigures(
        pid=5,
        private_bytes=300 << 20,
        file_bytes=400 << 20,
        shared_bytes=0,
        minor_faults=990,
        major_faults=11,
        disk_bytes=5 << 20,
        threads=9,
        cpu_s=1.75,
    )
    assert library.asked == [(5, 4)]
    assert probe._probe("darwin").proportional(5) is None


def test_a_compressed_process_has_no_negative_file_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = USAGE.copy()
    numbers[7] = 900 << 20
    answers(monkeypatch, struct.pack("=16s35Q", b"", *numbers))
    figures = macos.process(5)
    assert figures is not None
    assert (figures.private_bytes, figures.file_bytes) == (900 << 20, 0)


@pytest.mark.parametrize("number", [errno.ESRCH, errno.EPERM])
def test_a_process_that_is_gone_or_anothers(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    answers(monkeypatch, None, number)
    assert macos.process(5) is None


def test_a_process_that_goes_meanwhile(monkeypatch: pytest.MonkeyPatch, usage: bytes) -> None:
    answers(monkeypatch, usage)
    assert macos.process(4) is None


def test_another_failure_is_not_taken_for_that(monkeypatch: pytest.MonkeyPatch) -> None:
    answers(monkeypatch, None, errno.EINVAL)
    with pytest.raises(OSError, match="proc_pid_rusage"):
        macos.process(5)


def test_the_machine(monkeypatch: pytest.MonkeyPatch, usage: bytes) -> None:
    library = answers(monkeypatch, usage)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(total=16 << 30, available=7 << 30))
    monkeypatch.setattr(psutil, "swap_memory", lambda: SimpleNamespace(used=3 << 20))
    figures = probe._probe("darwin").system(Path("/"))
    assert (figures.total_bytes, figures.available_bytes) == (16 << 30, 7 << 30)
    assert (figures.cached_bytes, figures.swap_used_bytes) == (42 * PAGE, 3 << 20)
    assert (figures.swapped_in_bytes, figures.swapped_out_bytes) == (32 * PAGE, 33 * PAGE)
    assert (figures.refault_bytes, figures.pressure, figures.group) == (None, None, None)
    assert library.asked == [(77, 4, 38)]


def test_a_host_that_does_not_answer(monkeypatch: pytest.MonkeyPatch, usage: bytes) -> None:
    answers(monkeypatch, usage, number=4)
    with pytest.raises(OSError, match="host_statistics64"):
        macos._pages()


def test_the_processs_own_disk_bytes(monkeypatch: pytest.MonkeyPatch, usage: bytes) -> None:
    library = answers(monkeypatch, usage)
    monkeypatch.setattr(own.sys, "platform", "darwin")
    counters = own.OwnCounters()
    assert counters.read().disk_bytes == 5 << 20
    assert library.asked == [(os.getpid(), 4)]
    counters.close()
