"""Reuse of what the KV cache already holds: a new prompt starts from the longest prefix in any slot."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from octavo.core.engine.slots import Slot

if TYPE_CHECKING:
    from octavo.core.engine.llama import Context


@dataclass(frozen=True, slots=True)
class Reuse:
    """``count`` tokens of ``source`` can serve a prompt that will run in ``target``."""

    target: Slot
    source: Slot
    count: int


def common_prefix(left: Sequence[int], right: Sequence[int]) -> int:
    """Count the equal tokens at the start of both."""
    limit = min(len(left), len(right))
    if left[:limit] == right[:limit]:
        return limit
    low, high = 0, limit  # the first `low` are equal, the first `high` are not
    while high - low > 1:
        middle = (low + high) // 2
        if left[low:middle] == right[low:middle]:
            low = middle
        else:
            high = middle
    return low


class PrefixCache:
    """Chooses a slot for a prompt and brings its cells into the state that the prompt needs.

    ``whole_states`` models (recurrent, hybrid) keep one state for all tokens so far: it can be gone on from,
    or copied whole, but not cut.
    """

    def __init__(self, slots: Sequence[Slot], memory: "Context", *, whole_states: bool) -> None:
        self._slots = slots
        self._memory = memory
        self._whole_states = whole_states

    def place(self, tokens: Sequence[int]) -> Slot | None:
        """Give an idle slot that holds the longest usable prefix of ``tokens``, at most all but one; None if
        busy.

        The last token is always decoded anew, because its logits are needed.
        """
        reuse = self.choose(tokens)
        if reuse is None:
            return None
        self._prepare(reuse)
        return reuse.target

    def choose(self, tokens: Sequence[int]) -> Reuse | None:
        """Find the target and the source of the longest prefix, changing nothing."""
        idle = [slot for slot in self._slots if slot.is_idle]
        if not idle:
            return None
        reach = {slot.index: self._usable(slot, tokens) for slot in self._slots}
        best = max(idle, key=lambda slot: (reach[slot.index], -len(slot.held), -slot.used_at))
        if self._worth_overwriting(best, reach[best.index], idle):
            target = best
        else:
            target = min(idle, key=lambda slot: (bool(slot.held), slot.used_at))
        if not self._memory.unified:
            return Reuse(target, target, reach[target.index])
        source = max(self._slots, key=lambda slot: (reach[slot.index], slot is target))
        return Reuse(target, source, reach[source.index])

    def free_oldest(self) -> bool:
        """Drop the cells of the idle slot that was used longest ago; False when no idle slot holds any."""
        idle = [slot for slot in self._slots if slot.is_idle and slot.held]
        if not idle:
            return False
        self.forget(min(idle, key=lambda slot: slot.used_at))
        return True

    def forget(self, slot: Slot) -> None:
        """Drop all cells of a slot."""
        self._memory.drop(slot.index)
        slot.held = []

    def forget_all(self) -> None:
        """Start from an empty cache, as a fresh load does.

        What was reused, and where its cells lie, changes the rounding (attention adds in the order of the
        cells, in 16 bits), and with it what a seed draws.
        """
        for slot in self._slots:
            self.forget(slot)

    def cut(self, slot: Slot, count: int) -> None:
        """Keep the first ``count`` tokens of a slot; none, when its memory can't go back there."""
        if count and self._reaches_back(slot, count) and self._memory.keep(slot.index, count):
            del slot.held[count:]
        else:
            self.forget(slot)

    def _worth_overwriting(self, slot: Slot, reach: int, idle: Sequence[Slot]) -> bool:
        """A slot goes on with a prompt that keeps at least half of what it holds; else another is taken."""
        return reach * 2 >= len(slot.held) or len(idle) == 1

    def _usable(self, slot: Slot, tokens: Sequence[int]) -> int:
        count = min(common_prefix(slot.held, tokens), len(tokens) - 1)
        if count <= 0:
            return 0
        if self._whole_states:
            return count if count == len(slot.held) and slot.is_idle else 0
        if count < len(slot.held) and not self._reaches_back(slot, count):
            return 0
        return count

    def _reaches_back(self, slot: Slot, count: int) -> bool:
        """A window cache forgets what slid out; going back needs the ``window`` cells before ``count``."""
        window = self._memory.window
        return not window or self._memory.first_position(slot.index) <= max(0, count - window)

    def _prepare(self, reuse: Reuse) -> None:
        target, source, count = reuse.target, reuse.source, reuse.count
        if source is target:
            if count < len(target.held):
                self.cut(target, count)
            return
        self.forget(target)
        if count:
            self._memory.share(source.index, target.index, count)
            target.held = list(source.held[:count])
