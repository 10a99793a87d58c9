"""What Linux tells of a process and of the machine.

Sources: proc(5): /proc/PID/status, stat, io, smaps_rollup, /proc/meminfo, /proc/vmstat; the kernel's
Documentation/accounting/psi.rst for /proc/pressure/memory; cgroups as in `octavo.core.memory.budget`.
"""

import os
from pathlib import Path

from octavo.core.memory.figures import GroupFigures, Pressure, ProcessFigures, SystemFigures
from octavo.core.memory.probe.procfs import colon_values, disk_bytes, in_bytes, read_once

ROOT = Path("/")
_MEMORY = (b"MemTotal", b"MemAvailable", b"Cached", b"Buffers", b"Shmem", b"SwapTotal", b"SwapFree")
# before Linux 5.9 the counter of refaulted file pages was the one without an addition
_REFAULTS = (b"workingset_refault_file", b"workingset_refault")
_EVENTS = (b"pswpin", b"pswpout", *_REFAULTS)


def process(pid: int, root: Path = ROOT) -> ProcessFigures | None:
    """Take one sample; None when the process is gone, is a zombie, or is the kernel's own thread.

    ``private_bytes`` is RssAnon, ``file_bytes`` RssFile, ``shared_bytes`` RssShmem; faults, times and disk
    bytes are of all its threads, ended ones included. ``cpu_s`` has the resolution of a clock tick, 10 ms.
    """
    folder = f"{root}/proc/{pid}"
    try:
        status = colon_values(read_once(f"{folder}/status"))
        stat = _after_name(read_once(f"{folder}/stat"))
    except (FileNotFoundError, ProcessLookupError):
        return None
    if b"RssAnon" not in status:
        return None
    return ProcessFigures(
        pid=pid,
        private_bytes=in_bytes(status[b"RssAnon"]),
        file_bytes=in_bytes(status[b"RssFile"]),
        shared_bytes=in_bytes(status[b"RssShmem"]),
        swap_bytes=in_bytes(status[b"VmSwap"]) if b"VmSwap" in status else None,
        # proc_pid_stat(5) numbers its fields from 1, and 3 is the first after the name
        minor_faults=int(stat[10 - 3]),
        major_faults=int(stat[12 - 3]),
        disk_bytes=_disk_bytes(folder),
        threads=int(status[b"Threads"]),
        cpu_s=(int(stat[14 - 3]) + int(stat[15 - 3])) / os.sysconf("SC_CLK_TCK"),
    )


def proportional(pid: int, root: Path = ROOT) -> int | None:
    """Give Pss of smaps_rollup (Linux 4.14), in bytes; None when it is gone or another user's."""
    try:
        rollup = read_once(f"{root}/proc/{pid}/smaps_rollup")
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return None
    value = colon_values(rollup).get(b"Pss")
    return None if value is None else in_bytes(value)


def system(root: Path = ROOT) -> SystemFigures:
    """Take one sample of the machine.

    ``cached_bytes`` are pages of files and of block devices, shared memory apart (it cannot be dropped).
    """
    told = colon_values(read_once(root / "proc/meminfo"))
    memory = {name: in_bytes(told[name]) for name in _MEMORY}
    events = _events(root)
    return SystemFigures(
        total_bytes=memory[b"MemTotal"],
        available_bytes=memory[b"MemAvailable"],
        cached_bytes=max(memory[b"Cached"] + memory[b"Buffers"] - memory[b"Shmem"], 0),
        swap_used_bytes=memory[b"SwapTotal"] - memory[b"SwapFree"],
        swapped_in_bytes=events.get(b"pswpin"),
        swapped_out_bytes=events.get(b"pswpout"),
        refault_bytes=next((events[name] for name in _REFAULTS if name in events), None),
        pressure=_pressure(root),
        group=_tightest_group(root),
    )


def _after_name(stat: bytes) -> list[bytes]:
    """Give the fields after the name, in parentheses, which may have parentheses and spaces itself."""
    return stat[stat.rindex(b")") + 1 :].split()


def _disk_bytes(folder: str) -> int | None:
    """Tell what it read; other users' processes, and kernels without accounting, do not say."""
    try:
        return disk_bytes(read_once(f"{folder}/io"))
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return None


def _events(root: Path) -> dict[bytes, int]:
    """Give some counters of /proc/vmstat, which are in pages, in bytes."""
    try:
        text = read_once(root / "proc/vmstat")
    except OSError:
        return {}
    told, page = dict(map(bytes.split, text.splitlines())), os.sysconf("SC_PAGE_SIZE")
    return {name: int(told[name]) * page for name in _EVENTS if name in told}


def _pressure(root: Path) -> Pressure | None:
    """Give the pressure; the file is not there without CONFIG_PSI, and can't be read where PSI is off."""
    try:
        text = read_once(root / "proc/pressure/memory")
    except OSError:
        return None
    kinds = {
        words[0]: dict(word.split(b"=") for word in words[1:])
        for words in map(bytes.split, text.splitlines())
    }
    some, full = kinds[b"some"], kinds[b"full"]
    return Pressure(
        some_avg10=float(some[b"avg10"]),
        some_avg60=float(some[b"avg60"]),
        full_avg10=float(full[b"avg10"]),
        full_avg60=float(full[b"avg60"]),
    )


def _tightest_group(root: Path) -> GroupFigures | None:
    # it brings psutil, which who asks only for processes need not have
    from octavo.core.memory.budget import memory_groups

    group = min(memory_groups(root), key=lambda group: group.left_bytes, default=None)
    if group is None:
        return None
    return GroupFigures(
        limit_bytes=group.limit_bytes,
        used_bytes=group.used_bytes + group.cached_bytes,
        cached_bytes=group.cached_bytes,
    )
