"""The last ten minutes of a model's map."""

from collections import deque

from octavo.core.memory.residency import Snapshot

KEPT_S = 600.0
MOST_BYTES = 64 << 20


class Ring:
    """Keeps snapshots for ``kept_s`` seconds, and no more than ``most_bytes`` of arrays.

    Equal maps share their arrays. At one a second, 50,000 cells of 1,100 tensors take 35 MB when every map
    differs; a larger map is kept for a shorter time. One thread adds; any may read.
    """

    def __init__(self, kept_s: float = KEPT_S, most_bytes: int = MOST_BYTES) -> None:
        self._kept_s, self._most_bytes = kept_s, most_bytes
        self._kept: deque[Snapshot] = deque()
        self.nbytes = 0
        """What the arrays take, each counted once."""

    def __len__(self) -> int:
        return len(self._kept)

    def add(self, snapshot: Snapshot) -> None:
        """Keep a scanner's next snapshot; what is too old or too much goes, the newest never."""
        self.nbytes += _own_bytes(snapshot, self._kept[-1] if self._kept else None)
        self._kept.append(snapshot)
        oldest = snapshot.at - self._kept_s
        while len(self._kept) > 1 and (self._kept[0].at < oldest or self.nbytes > self._most_bytes):
            gone = self._kept.popleft()
            self.nbytes -= _own_bytes(gone, self._kept[0])

    def at(self, generation: int) -> Snapshot | None:
        """Give the newest snapshot of a generation; None when it is no longer kept, or not yet."""
        kept = reversed(list(self._kept))  # a copy: the other thread may add meanwhile
        return next((snapshot for snapshot in kept if snapshot.generation == generation), None)

    def generations(self) -> list[tuple[int, float]]:
        """Give (generation, when it was first seen) of what is kept, oldest first."""
        first: dict[int, float] = {}
        for snapshot in list(self._kept):
            first.setdefault(snapshot.generation, snapshot.at)
        return list(first.items())


def _own_bytes(snapshot: Snapshot, neighbour: Snapshot | None) -> int:
    """Give the bytes of the arrays that ``snapshot`` doesn't share with its neighbour in time."""
    cells = 0 if neighbour and snapshot.cells is neighbour.cells else snapshot.cells.nbytes
    if neighbour and snapshot.tensor_bytes is neighbour.tensor_bytes:
        return cells
    return cells + snapshot.tensor_bytes.nbytes
