"""Windows, as its calls are documented to answer; nothing here ran on one."""

import ctypes
import os
import struct
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from octavo.core.memory import probe
from octavo.core.memory.figures import ProcessFigures
from octavo.core.memory.probe import windows

MIB = 1 << 20
# PROCESS_MEMORY_COUNTERS_EX2: faults 123; working set 800, committed 350, private working set 300 MiB
LONGER = struct.pack(
    "=2I9Q2Q", 96, 123, 900 * MIB, 800 * MIB, 1, 2, 3, 4, 5, 6, 350 * MIB, 300 * MIB, 10 * MIB
)
# PERFORMANCE_INFORMATION, pages of 4 KiB
PERFORMANCE = struct.pack(
    "=I4x10Q3I4x", 104, 1, 2, 3, 4_000_000, 2_000_000, 1_000_000, 7, 8, 9, 4096, 1, 2, 3
)


class Kernel:
    """kernel32, that answers with what was recorded; ``longest`` is the longest structure it knows."""

    def __init__(self, longest: int = 96, handle: int | None = 55) -> None:
        self.longest, self.handle = longest, handle
        self.closed: list[int] = []

    def OpenProcess(self, access: int, inherit: bool, pid: int) -> int | None:
        assert (access, inherit) == (0x1000, False)
        return self.handle

    def CloseHandle(self, handle: int) -> int:
        self.closed.append(handle)
        return 1

    def K32GetProcessMemoryInfo(self, handle: int, buffer: Any, size: int) -> int:
        if size > self.longest:
            return 0
        ctypes.memmove(buffer, LONGER, size)
        return 1

    def K32GetPerformanceInfo(self, buffer: Any, size: int) -> int:
        if size > self.longest + 8:
            return 0
        ctypes.memmove(buffer, PERFORMANCE, size)
        return 1


class Told:
    """What psutil tells of a process."""

    def __init__(self, pid: int) -> None:
        if pid == 4:
            raise psutil.AccessDenied(pid)

    def oneshot(self) -> Any:
        return open(os.devnull)

    def cpu_times(self) -> Any:
        return SimpleNamespace(user=1.5, system=0.25)

    def num_threads(self) -> int:
        return 9


def answers(monkeypatch: pytest.MonkeyPatch, kernel: Kernel) -> Kernel:
    """Have the module ask a recording."""
    monkeypatch.setattr(windows, "_library", lambda: kernel)
    monkeypatch.setattr(psutil, "Process", Told)
    return kernel


def test_the_structures_have_the_sizes_of_the_headers() -> None:
    kinds = windows.Counters, windows.LongerCounters, windows.Performance
    assert [ctypes.sizeof(kind) for kind in kinds] == [80, 96, 104]


@pytest.mark.parametrize(("longest", "private"), [(96, 300 * MIB), (80, 350 * MIB)])
def test_a_process(monkeypatch: pytest.MonkeyPatch, longest: int, private: int) -> None:
    kernel = answers(monkeypatch, Kernel(longest))
    assert probe._probe("win32").process(5) == ProcessFigures(
        pid=5,
        private_bytes=private,
        file_bytes=800 * MIB - private,
        shared_bytes=0,
        threads=9,
        cpu_s=1.75,
    )
    assert kernel.closed == [55]
    assert probe._probe("win32").proportional(5) is None


def test_a_process_that_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = answers(monkeypatch, Kernel(handle=None))
    assert windows.process(5) is None
    assert kernel.closed == []


def test_a_process_of_which_nothing_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    answers(monkeypatch, Kernel())
    assert windows.process(4) is None
    answers(monkeypatch, Kernel(longest=0))
    assert windows.process(5) is None


def test_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    answers(monkeypatch, Kernel())
    monkeypatch.setattr(psutil, "swap_memory", lambda: SimpleNamespace(used=3 * MIB))
    figures = probe._probe("win32").system(Path("/"))
    assert (figures.total_bytes, figures.available_bytes) == (4_000_000 * 4096, 2_000_000 * 4096)
    assert (figures.cached_bytes, figures.swap_used_bytes) == (1_000_000 * 4096, 3 * MIB)
    assert (figures.swapped_in_bytes, figures.refault_bytes, figures.pressure) == (None, None, None)


def test_a_machine_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    answers(monkeypatch, Kernel(longest=0))
    with pytest.raises(OSError, match="GetPerformanceInfo"):
        windows.system()
