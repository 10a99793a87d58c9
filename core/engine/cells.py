"""Which cells of the KV cache hold what: llama.cpp's own placing, followed step by step.

llama.cpp does not tell which cells it uses, and what lies beyond the highest one can be given back only when
that is known. Its placing is simple and the same each time (src/llama-kv-cache.cpp, ``find_slot``,
``apply_ubatch`` and ``seq_rm``): the tokens of a micro-batch take the free cells from the head on, the head
moves behind the last one, and goes back to the lowest cell that is freed.
"""

from array import array
from collections.abc import Sequence

Part = tuple[int, int, int]
"""Tokens of a batch: sequence, first position, count."""


class CellPool:
    """The cells that sequences share; positions of a sequence are 0, 1, 2 …

    ``peak`` is one more than the highest cell that was written since it was last set back. ``is_sure`` is
    False once a decode was broken off where the placing can't be known; a pool that is emptied begins anew.
    """

    def __init__(self, size: int, micro_batch: int) -> None:
        self.size = size
        self._micro_batch = micro_batch
        self._taken = bytearray(size)  # 1 for a cell in use; searched for free ones
        self._uses = array("H", bytes(2 * size))  # how many sequences use a cell
        self._held: dict[int, array[int]] = {}
        self._head = 0
        self.used = self.peak = 0
        self.is_sure = True
        self._shared: dict[int, int] = {}

    @property
    def high_water(self) -> int:
        """One more than the highest cell in use."""
        return len(self._taken.rstrip(b"\0"))

    def shared(self, sequence: int) -> int:
        """Count the cells of a sequence that others use as well."""
        if sequence not in self._shared:
            held = self._held.get(sequence, ())
            self._shared[sequence] = sum(self._uses[cell] > 1 for cell in held)
        return self._shared[sequence]

    def cells(self) -> list[int]:
        """List the cells in use."""
        return [cell for cell, is_taken in enumerate(self._taken) if is_taken]

    def place(self, parts: Sequence[Part]) -> bool:
        """Follow a batch that was decoded; tells whether the placing began anew at the bottom."""
        tokens = [(sequence, position + step) for sequence, position, count in parts for step in range(count)]
        starts = range(0, len(tokens), self._micro_batch)
        return any([self._place(tokens[start : start + self._micro_batch]) for start in starts])

    def place_broken_off(self, parts: Sequence[Part]) -> None:
        """Follow a batch that was broken off on the way; its tokens must be dropped next.

        Only some of its micro-batches were placed. That makes no difference once all their cells are free
        again, unless the placing began anew at the bottom.
        """
        if self.place(parts):
            self.is_sure = False

    def keep(self, sequence: int, count: int) -> None:
        """Follow the removal of all positions of a sequence from ``count`` on."""
        held = self._held.get(sequence)
        if held is None:
            return
        freed = [cell for cell in held[count:] if self._release(cell)]
        del held[count:]
        self._shared.clear()
        if freed:
            self._head = min(self._head, *freed)

    def share(self, source: int, target: int, count: int) -> None:
        """Follow a copy of a sequence's first positions."""
        cells = self._held.get(source, array("I"))[:count]
        for cell in cells:
            self._uses[cell] += 1
        self._held[target] = cells
        self._shared.clear()

    def clear(self) -> None:
        """Begin anew, as llama.cpp's memory does when it is cleared."""
        self._held.clear()
        self._shared.clear()
        self._taken = bytearray(len(self._taken))
        self._uses = array("H", bytes(2 * len(self._taken)))
        self._head = self.used = 0
        self.is_sure = True

    def _place(self, tokens: Sequence[tuple[int, int]]) -> bool:
        cell = self._head if self._head <= self.used + 2 * len(tokens) else 0
        has_wrapped = False
        for sequence, position in tokens:
            free = self._taken.find(0, cell)
            if free < 0:
                free, has_wrapped = self._taken.find(0), True
            held = self._held.setdefault(sequence, array("I"))
            if free < 0 or position != len(held):
                self.is_sure = False
                return has_wrapped
            self._taken[free] = self._uses[free] = 1
            self.used += 1
            held.append(free)
            cell = free + 1
            self.peak = max(self.peak, cell)
        self._head = cell
        return has_wrapped

    def _release(self, cell: int) -> bool:
        """Take one use from a cell; True when it is free now."""
        self._uses[cell] -= 1
        if self._uses[cell]:
            return False
        self._taken[cell] = 0
        self.used -= 1
        return True
