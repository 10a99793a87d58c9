"""From resident pages to cells, tensors and files: the sums of a model's map.

All cells and tensors begin and end on few pages, so each file is cut there once. What is counted is the pages
of each range between two cuts; everything else is a difference of running sums. A page that two tensors share
counts for both, and for the file once.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from octavo.core.memory.layout import MapLayout
from octavo.core.memory.page_cache import LONGEST_RANGE, PAGE

FULL, UNKNOWN = 254, 255
"""A cell's byte when all of its pages are resident, and when nobody can say."""


class CellSums:
    """The sums over one layout; ``counts`` is filled from outside, one view of it a file."""

    def __init__(self, layout: MapLayout, page: int = PAGE) -> None:
        self._page = page
        self._sizes = np.array(layout.file_bytes, np.int64)
        self._cells, self._tensors = _cell_spans(layout, page), _tensor_spans(layout, page)
        pages = -(-self._sizes // page)
        self.edges = [self._cut(file, int(end)) for file, end in enumerate(pages)]
        firsts = np.cumsum([0, *(len(edges) - 1 for edges in self.edges)])
        self.counts = np.zeros(firsts[-1], np.int64)
        self.views = [self.counts[low:high] for low, high in pairwise(firsts)]
        self._firsts, self._sums = firsts, np.zeros(firsts[-1] + 1, np.int64)
        for spans in (self._cells, self._tensors):
            spans.find(self.edges, firsts)
        self._bytes = np.array([tensor.nbytes for tensor in layout.tensors], np.int64)

    def add_up(self) -> None:
        """Take over what ``counts`` now holds."""
        np.cumsum(self.counts, out=self._sums[1:])

    def cells(self, known: NDArray[np.bool_]) -> NDArray[np.uint8]:
        """Give one byte a cell: 0 to ``FULL`` for the share of its pages, or ``UNKNOWN``.

        0 and ``FULL`` are exactly none and all; shares between are rounded down but never to none.
        """
        found = self._cells.found(self._sums)
        shares: NDArray[np.uint8] = np.maximum(found * FULL // self._cells.pages, found > 0).astype(np.uint8)
        shares[~known[self._cells.file]] = UNKNOWN
        shares.flags.writeable = False  # snapshots share it
        return shares

    def tensor_bytes(self, known: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Give the resident bytes of each tensor by the share of its pages; -1 where it isn't known."""
        spans = self._tensors
        resident = self._bytes * spans.found(self._sums) // spans.pages
        resident[~known[spans.file]] = -1
        resident.flags.writeable = False
        return resident

    def resident_bytes(self, known: NDArray[np.bool_]) -> int | None:
        """Give the resident bytes of all files, each page once; None unless all are known."""
        if not known.all():
            return None
        resident = int(self._sums[-1]) * self._page
        for size, counts in zip(self._sizes, self.views, strict=True):
            if len(counts) and counts[-1]:  # the last page reaches past the end of the file
                resident -= -int(size) % self._page
        return resident

    def _cut(self, file: int, pages: int) -> NDArray[np.int64]:
        """Give the cuts of one file; its last page is a range of its own."""
        ends = [self._cells.ends(file), np.arange(0, pages, LONGEST_RANGE), np.array([0, pages - 1, pages])]
        return np.unique(np.clip(np.concatenate(ends), 0, pages)).astype(np.int64)


@dataclass(slots=True)
class _Spans:
    """The pages of cells or of tensors, and then the ranges that they are made of."""

    file: NDArray[np.int64]
    low: NDArray[np.int64]
    high: NDArray[np.int64]
    pages: NDArray[np.int64]

    def ends(self, file: int) -> NDArray[np.int64]:
        inside = self.file == file
        return np.concatenate([self.low[inside], self.high[inside]])

    def find(self, edges: list[NDArray[np.int64]], firsts: NDArray[np.int64]) -> None:
        """Turn page numbers into the numbers of ranges, counted through all files."""
        for file, cuts in enumerate(edges):
            inside = self.file == file
            for pages in (self.low, self.high):
                pages[inside] = firsts[file] + np.searchsorted(cuts, np.minimum(pages[inside], cuts[-1]))

    def found(self, sums: NDArray[np.int64]) -> NDArray[np.int64]:
        """Give the resident pages of each."""
        found: NDArray[np.int64] = sums[self.high] - sums[self.low]
        return found


def _cell_spans(layout: MapLayout, page: int) -> _Spans:
    counts = np.array([tensor.cells for tensor in layout.tensors], np.int64)
    whole = np.array([(t.file, t.offset, t.nbytes // t.cells) for t in layout.tensors], np.int64)
    file, offset, nbytes = np.repeat(whole.reshape(-1, 3), counts, axis=0).T
    expert = np.arange(len(file)) - np.repeat(np.cumsum(counts) - counts, counts)
    return _spans(file, offset + expert * nbytes, nbytes, page)


def _tensor_spans(layout: MapLayout, page: int) -> _Spans:
    whole = np.array([(tensor.file, tensor.offset, tensor.nbytes) for tensor in layout.tensors], np.int64)
    file, offset, nbytes = whole.reshape(-1, 3).T
    return _spans(file, offset, nbytes, page)


def _spans(
    file: NDArray[np.int64], offset: NDArray[np.int64], nbytes: NDArray[np.int64], page: int
) -> _Spans:
    low = offset // page
    high = np.where(nbytes > 0, -(-(offset + nbytes) // page), low)
    # a tensor without weights has no page; what is shared by nothing must not divide by zero
    return _Spans(file.copy(), low, high, np.maximum(high - low, 1))
