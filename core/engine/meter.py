"""What a decode cost the disk, and whose request that was."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from octavo.core.memory.probe import Counts


class Spent(NamedTuple):
    """What one decode cost; ``disk_s`` is how long the engine stood still in it, if it read from a disk."""

    disk_bytes: int | None
    major_faults: int | None
    disk_s: float


@dataclass(slots=True)
class Cost:
    """What was read from a disk for one request, while its prompt was read and afterwards."""

    prefill_disk_bytes: int | None = 0
    prefill_major_faults: int | None = 0
    decode_disk_bytes: int | None = 0
    decode_major_faults: int | None = 0
    disk_s: float = 0.0

    def add(self, spent: Spent, tokens: int, rows: int, *, is_prefill: bool) -> None:
        """Charge for ``tokens`` of the ``rows`` that were decoded together; the standstill was everyone's."""
        disk_bytes, faults = _part(spent.disk_bytes, tokens, rows), _part(spent.major_faults, tokens, rows)
        if is_prefill:
            self.prefill_disk_bytes = _sum(self.prefill_disk_bytes, disk_bytes)
            self.prefill_major_faults = _sum(self.prefill_major_faults, faults)
            self.disk_s += spent.disk_s
        else:
            self.decode_disk_bytes = _sum(self.decode_disk_bytes, disk_bytes)
            self.decode_major_faults = _sum(self.decode_major_faults, faults)


class Counters(Protocol):
    """What counts; ``OwnCounters`` in core/memory/probe."""

    def read(self) -> Counts:
        """Take one sample."""
        ...


class Meter:
    """Measures decodes; used by the engine thread only.

    ``not_ours`` gives disk bytes that others of this process have read: a warm-up is nobody's request.
    """

    def __init__(self, counters: Counters, not_ours: Callable[[], int] = lambda: 0) -> None:
        self._counters = counters
        self._not_ours = not_ours
        self.disk_bytes_total: int | None = 0
        self.major_faults_total: int | None = 0
        self._before = self._read()

    def begin(self) -> None:
        """Measure from here on."""
        self._before = self._read()

    def end(self) -> Spent:
        """Give what was spent since ``begin``."""
        before, now = self._before, self._read()
        disk_bytes, faults = (
            _difference(before.disk_bytes, now.disk_bytes),
            _difference(before.major_faults, now.major_faults),
        )
        stood = (now.off_cpu_s or 0.0) - (before.off_cpu_s or 0.0)
        has_read = bool(disk_bytes if disk_bytes is not None else faults)
        self.disk_bytes_total = _sum(self.disk_bytes_total, disk_bytes)
        self.major_faults_total = _sum(self.major_faults_total, faults)
        return Spent(disk_bytes, faults, max(stood, 0.0) if has_read else 0.0)

    def _read(self) -> Counts:
        counts = self._counters.read()
        if counts.disk_bytes is None:
            return counts
        return counts._replace(disk_bytes=counts.disk_bytes - self._not_ours())


def _difference(before: int | None, now: int | None) -> int | None:
    return None if before is None or now is None else max(now - before, 0)


def _sum(total: int | None, more: int | None) -> int | None:
    return None if total is None or more is None else total + more


def _part(whole: int | None, tokens: int, rows: int) -> int | None:
    return None if whole is None else round(whole * tokens / rows)
