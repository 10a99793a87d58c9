"""A file elsewhere as a source of bytes: read by ranges, in blocks that grow while the header goes on.

No block is larger than 1 MiB and they follow on each other, so a whole header costs less than its own length
and 1 MiB, however long it is; what ``Cursor`` skips (a tokenizer's strings that lie past the block) isn't
asked for at all.
"""

from collections.abc import Callable

FIRST_BLOCK = 64 << 10
"""Bytes of the first request: enough for a header without a vocabulary."""

LARGEST_BLOCK = 1 << 20
"""Bytes of a request at most, and so also what may be read past a header's end."""

Fetch = Callable[[int, int], bytes]
"""Give the bytes from ``start`` up to, not including, ``stop``; raise ``OSError`` or an ``OctavoError``."""


class RangedSource:
    """A ``ByteSource`` over ``fetch``, for one thread; ``fetched_bytes`` and ``requests`` tell its cost."""

    def __init__(self, fetch: Fetch, size: int) -> None:
        self.size = size
        self.fetched_bytes = 0
        self.requests = 0
        self._fetch = fetch
        self._offset = 0
        self._start = 0
        self._kept = b""

    def seek(self, offset: int, /) -> None:
        """Make ``offset`` the next byte to be read."""
        self._offset = offset

    def read(self, count: int, /) -> bytes:
        """Give at most ``count`` bytes: what is there already, else one block of a request."""
        at = self._offset - self._start
        if not 0 <= at < len(self._kept):
            if self._offset >= self.size:
                return b""
            self._load()
            at = self._offset - self._start
        data = self._kept[at : at + count]
        self._offset += len(data)
        return data

    def _load(self) -> None:
        """Get the next block; what came right before it is kept, for a short step back."""
        start = self._offset
        stop = min(self.size, start + min(LARGEST_BLOCK, max(FIRST_BLOCK, self.fetched_bytes)))
        data = self._fetch(start, stop)
        self.requests += 1
        self.fetched_bytes += len(data)
        if len(data) != stop - start:
            raise OSError(f"{stop - start:,} bytes were asked for, {len(data):,} came")
        before = self._kept[-2 * LARGEST_BLOCK :] if start == self._start + len(self._kept) else b""
        self._start, self._kept = start - len(before), before + data
