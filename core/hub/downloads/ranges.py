"""Sets of byte ranges, each from its first byte to the one after its last."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator

Span = tuple[int, int]


class Ranges:
    """Ranges that neither overlap nor touch, in order."""

    def __init__(self, spans: Iterable[Span] = ()) -> None:
        self._spans: list[Span] = []
        for start, end in spans:
            self.add(start, end)

    def __iter__(self) -> Iterator[Span]:
        return iter(self._spans)

    def copy(self) -> "Ranges":
        """Give the same ranges, apart from these."""
        made = Ranges()
        made._spans = list(self._spans)
        return made

    @property
    def total(self) -> int:
        """How many bytes all ranges hold."""
        return sum(end - start for start, end in self._spans)

    @property
    def prefix(self) -> int:
        """How many bytes are there from the first byte on without a gap."""
        return self._spans[0][1] if self._spans and self._spans[0][0] == 0 else 0

    def add(self, start: int, end: int) -> None:
        """Add a range, joining it with those that it meets."""
        if end <= start:
            return
        # the first range that could touch the new one is the last that begins at or before it
        first = max(bisect_right(self._spans, (start, start)) - 1, 0)
        if first < len(self._spans) and self._spans[first][1] < start:
            first += 1
        last = first
        while last < len(self._spans) and self._spans[last][0] <= end:
            start = min(start, self._spans[last][0])
            end = max(end, self._spans[last][1])
            last += 1
        self._spans[first:last] = [(start, end)]

    def missing(self, size: int) -> Iterator[Span]:
        """Give what lacks of the first ``size`` bytes, in order."""
        at = 0
        for start, end in self._spans:
            if start > at:
                yield at, min(start, size)
            at = max(at, end)
            if at >= size:
                return
        if at < size:
            yield at, size
