"""Who fetches what of a file: the missing bytes in order, in segments that no two connections share."""

import threading

from octavo.core.hub.downloads.ranges import Ranges, Span

MIB = 1 << 20
PARALLEL_FROM_BYTES = 32 * MIB
"""A smaller file isn't worth more than one connection."""

_SMALLEST_SEGMENT = 16 * MIB
_LARGEST_SEGMENT = 64 * MIB
_SEGMENTS = 16


class Plan:
    """The missing segments of a file of ``size`` bytes; used by several threads."""

    def __init__(self, size: int, present: Ranges) -> None:
        self.size = size
        self._segment = min(max(size // _SEGMENTS, _SMALLEST_SEGMENT), _LARGEST_SEGMENT)
        self._taken = present.copy()
        self._lock = threading.Lock()

    def take(self) -> Span | None:
        """Give the next segment that nobody has, or None; in order, for the digest's sake."""
        with self._lock:
            span = next(self._taken.missing(self.size), None)
            if span is None:
                return None
            start, end = span
            # segments end at multiples of their size, so that a rest that came back joins no other
            end = min(end, (start // self._segment + 1) * self._segment)
            self._taken.add(start, end)
            return start, end

    def give_back(self, present: Ranges) -> None:
        """Begin anew with what is there now; only while nobody fetches."""
        with self._lock:
            self._taken = present.copy()
