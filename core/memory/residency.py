"""Which parts of a model's files the page cache holds: the living map, as the monitor sees it.

The page cache is shared by all processes, so a look from outside sees what the worker will find, and disturbs
neither it nor the pages: none of them is touched. A page that is just being read in may count already.
"""

import dataclasses
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from octavo.core.memory.figures import LayerResidency, ResidencySummary
from octavo.core.memory.layout import MapLayout
from octavo.core.memory.map_cells import CellSums
from octavo.core.memory.page_cache import CachedFile

MOST_SHARE = 0.05
"""Of one core, what scanning may take."""
SHORTEST_REST_S = 1.0


@dataclass(frozen=True, slots=True, eq=False)
class Snapshot:
    """The map at one moment; its arrays are shared and can't be written.

    ``generation`` rises with each map that differs from the one before. ``at`` is in seconds since the epoch.
    ``cells`` has one byte a cell: 0 no page resident, 254 all, between them the share rounded down (never to
    0), 255 unknown. ``tensor_bytes`` are the resident bytes of each tensor of the layout, -1 unknown.
    ``resident_bytes`` of all files are None unless all are known; ``reason`` says why.
    """

    generation: int
    at: float
    cells: NDArray[np.uint8]
    tensor_bytes: NDArray[np.int64]
    resident_bytes: int | None
    total_bytes: int
    reason: str = ""

    def by_layer(self, layout: MapLayout) -> list[LayerResidency]:
        """Add up the tensors of each layer, what belongs to none first."""
        sums: dict[int | None, tuple[int, int, bool]] = {}
        for tensor, resident in zip(layout.tensors, self.tensor_bytes.tolist(), strict=True):
            found, total, is_known = sums.get(tensor.layer, (0, 0, True))
            sums[tensor.layer] = found + resident, total + tensor.nbytes, is_known and resident >= 0
        return [
            LayerResidency(layer=layer, resident_bytes=found if is_known else None, total_bytes=total)
            for layer, (found, total, is_known) in sorted(sums.items(), key=lambda item: _order(item[0]))
        ]

    def summary(self) -> ResidencySummary:
        """Give the sums alone."""
        return ResidencySummary(
            generation=self.generation,
            at=self.at,
            resident_bytes=self.resident_bytes,
            total_bytes=self.total_bytes,
            reason=self.reason,
        )


def _order(layer: int | None) -> int:
    return -1 if layer is None else layer


class Scanner:
    """Looks at a model's files again and again; ``scan`` and ``close`` may be called from any thread.

    ``paths`` are the files in the layout's order. The files looked at are those that were opened, whatever
    the paths name later.
    """

    def __init__(self, layout: MapLayout, paths: Sequence[Path]) -> None:
        self._sums = CellSums(layout)
        self._total = layout.total_bytes
        looked_at = zip(paths, layout.file_bytes, self._sums.edges, strict=True)
        self._files = [CachedFile(path, size, edges) for path, size, edges in looked_at]
        self._lock = threading.Lock()
        self._last: Snapshot | None = None
        self._reasons: list[str] = []
        self._counts = np.zeros_like(self._sums.counts)
        self._cost_s = 0.0

    @property
    def rest_s(self) -> float:
        """Seconds to wait before the next scan: one, or more where a scan took more than its share."""
        return max(SHORTEST_REST_S, self._cost_s / MOST_SHARE)

    def scan(self) -> Snapshot:
        """Look at every file and give the map as it is now; blocks for some milliseconds per 4 GB."""
        with self._lock:
            started = time.thread_time()
            snapshot = self._look()
            self._cost_s = time.thread_time() - started
        return snapshot

    def close(self) -> None:
        """Let the files go; later scans give a map of which nothing is known."""
        with self._lock:
            for file in self._files:
                file.close()

    def _look(self) -> Snapshot:
        at = time.time()
        looked_at = zip(self._files, self._sums.views, strict=True)
        reasons = [file.count(counts) for file, counts in looked_at]
        is_same = reasons == self._reasons and np.array_equal(self._counts, self._sums.counts)
        if self._last and is_same:
            self._last = dataclasses.replace(self._last, at=at)
        else:
            self._last = self._added_up(at, reasons)
            self._reasons = reasons
            np.copyto(self._counts, self._sums.counts)
        return self._last

    def _added_up(self, at: float, reasons: list[str]) -> Snapshot:
        known = np.array([not reason for reason in reasons], np.bool_)
        sums, last = self._sums, self._last
        sums.add_up()
        cells, tensor_bytes = sums.cells(known), sums.tensor_bytes(known)
        generation = last.generation + 1 if last else 1
        if last and np.array_equal(last.cells, cells):
            generation, cells = last.generation, last.cells
        if last and np.array_equal(last.tensor_bytes, tensor_bytes):
            tensor_bytes = last.tensor_bytes
        reason = " ".join(dict.fromkeys(filter(None, reasons)))
        resident = sums.resident_bytes(known)
        return Snapshot(generation, at, cells, tensor_bytes, resident, self._total, reason)
