"""A slot's part of one batch."""

from dataclasses import dataclass

from octavo.core.engine.slots import Slot


@dataclass(slots=True)
class Share:
    """A slot's part of a batch: tokens ``start`` to ``stop``; ``output`` is the index of its logits."""

    slot: Slot
    start: int
    stop: int
    output: int = -1

    @property
    def rows(self) -> int:
        """Tokens of this part."""
        return self.stop - self.start
