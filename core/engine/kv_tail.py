"""Elastic KV: cells that nobody uses are given back to the system, and come again when they are written.

llama.cpp commits the whole cache when it makes a context (it is set to zero). A page of it that is dropped
reads as zero, which is what an unused cell holds, and is there again at the first write; so everything above
the highest cell in use can go. Rows of K, and with fused attention of V, lie cell by cell.
"""

from collections.abc import Sequence

from octavo.core.engine import madvise
from octavo.core.engine.cells import CellPool
from octavo.core.engine.maps import Region
from octavo.core.engine.tensors import KvTensor

# attention reads up to the next multiple of this (src/llama-kv-cache.cpp, get_n_kv)
PADDING = 256
WORTH_BYTES = 16 << 20

NOT_TOLD = "this build of llama.cpp does not tell where its KV cache is"
NOT_WANTED = "its load setting elastic is off"
NOT_FOLLOWED = "its memory is no plain row of cells"
NOT_PRIVATE = "its KV cache is not in this process's own memory"
ASTRAY = "llama.cpp uses other cells than expected, so none are given back any more"


def may_follow(tensors: Sequence[KvTensor], *, has_state: bool, sliding_window: int) -> bool:
    """Tell whether `CellPool` knows the placing of a model's full-attention cells.

    Recurrent parts split batches otherwise. A sliding window's cells are used again as they slide out; they
    are told from the others by their smaller number, so there must be two numbers.
    """
    return not has_state and (not sliding_window or len({tensor.cells for tensor in tensors}) > 1)


class KvTail:
    """The unused end of each pool; ``reason`` says why nothing is given back, "" while it is.

    ``pools`` are those of full attention, one a stream, all of one size; ``tensors`` may hold others.
    """

    def __init__(
        self,
        tensors: Sequence[KvTensor],
        pools: Sequence[CellPool],
        regions: Sequence[Region],
        *,
        refusal: str = "",
    ) -> None:
        self._pools = pools
        self._tensors = [tensor for tensor in tensors if tensor.cells == pools[0].size]
        self._committed = [pool.size for pool in pools]
        self.size_bytes = sum(tensor.nbytes for tensor in tensors)
        self.reason = refusal or self._refusal(regions)

    @property
    def committed_bytes(self) -> int:
        """Bytes of the cache that memory was given for."""
        rows = sum(tensor.row_bytes for tensor in self._tensors)
        return self.size_bytes - rows * sum(
            pool.size - cells for pool, cells in zip(self._pools, self._committed, strict=True)
        )

    def give_back(self) -> int:
        """Drop what lies above the cells in use, if it is worth it; gives the bytes."""
        self._grow()
        if self.reason or not all(pool.is_sure for pool in self._pools):
            return 0
        spans = [span for stream in range(len(self._pools)) for span in self._spans(stream)]
        freed = sum(stop - start for start, stop in spans)
        if freed < WORTH_BYTES:
            return 0
        if self._went_astray():
            self.reason = ASTRAY
            return 0
        for start, stop in spans:
            madvise.advise(start, stop - start, madvise.NOHUGEPAGE)  # else a row brings 2 MiB back
            madvise.advise(start, stop - start, madvise.DONTNEED)
        self._committed = [
            min(committed, _padded(pool.high_water, pool.size))
            for pool, committed in zip(self._pools, self._committed, strict=True)
        ]
        return freed

    def _refusal(self, regions: Sequence[Region]) -> str:
        if not self._tensors:
            return NOT_TOLD
        ends = [(tensor.address, tensor.address + tensor.nbytes) for tensor in self._tensors]
        private = [region for region in regions if region.is_private]
        if all(any(region.holds(*span) for region in private) for span in ends):
            return ""
        return NOT_PRIVATE

    def _grow(self) -> None:
        """Cells that were written since the last look have memory again, also those that are free by now."""
        for stream, pool in enumerate(self._pools):
            self._committed[stream] = max(self._committed[stream], _padded(pool.peak, pool.size))
            pool.peak = pool.high_water

    def _went_astray(self) -> bool:
        """Tell whether a page has memory that no cell in use explains: then the placing is not understood."""
        tensor = self._tensors[0]
        for stream, committed in enumerate(self._committed):
            start, stop = _span(tensor, stream, committed, tensor.cells)
            if start < stop and madvise.present_pages(start, stop - start):
                return True
        return False

    def _spans(self, stream: int) -> list[tuple[int, int]]:
        pool, committed = self._pools[stream], self._committed[stream]
        kept = _padded(pool.high_water, pool.size)
        spans = [_span(tensor, stream, kept, committed) for tensor in self._tensors]
        return [(start, stop) for start, stop in spans if start < stop]


def _padded(cells: int, size: int) -> int:
    return min(max(-(-cells // PADDING) * PADDING, PADDING), size)


def _span(tensor: KvTensor, stream: int, first: int, last: int) -> tuple[int, int]:
    """Give the whole pages that hold only cells ``first`` to ``last`` of a stream."""
    base = tensor.address + stream * tensor.cells * tensor.row_bytes
    return (
        madvise.page_up(base + first * tensor.row_bytes),
        madvise.page_down(base + last * tensor.row_bytes),
    )
