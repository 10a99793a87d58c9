"""What the system tells of a process's memory and its own; one interface, a module for each system.

Linux is complete and tested; macOS and Windows are written against their documentation and not tested on
hardware. What a system does not tell is None. Importing this costs no psutil and no numpy: workers do it.
"""

import sys
from functools import cache
from pathlib import Path
from typing import Protocol

from octavo.core.memory.figures import ProcessFigures, SystemFigures
from octavo.core.memory.probe.own import Counts, OwnCounters, ThreadDisk

__all__ = ["Counts", "OwnCounters", "Probe", "ThreadDisk", "process", "proportional", "system"]


class Probe(Protocol):
    """What the module of each system offers; see the functions of the same names here."""

    def process(self, pid: int, /) -> ProcessFigures | None:
        """Take one sample of a process."""

    def proportional(self, pid: int, /) -> int | None:
        """Give its proportional set size."""

    def system(self, root: Path, /) -> SystemFigures:
        """Take one sample of the machine."""


def process(pid: int) -> ProcessFigures | None:
    """Take one sample of a process; None when it is gone, or another user's of which nothing is told.

    It costs well under 2 ms, however much is mapped. ``proportional_bytes`` is left out: see `proportional`.
    """
    return _probe().process(pid)


def proportional(pid: int) -> int | None:
    """Give a process's proportional set size in bytes: pages that several map count in parts.

    It walks every mapped page, 12 ms for 4 GB. None when the process is gone and where it is not told.
    """
    return _probe().proportional(pid)


def system(root: Path = Path("/")) -> SystemFigures:
    """Take one sample of the machine's memory; ``root`` is where ``proc`` and ``sys`` are, on Linux."""
    return _probe().system(root)


@cache
def _probe(platform: str = sys.platform) -> Probe:
    if platform == "win32":
        from octavo.core.memory.probe import windows

        return windows
    if platform == "darwin":
        from octavo.core.memory.probe import macos

        return macos
    from octavo.core.memory.probe import linux

    return linux
