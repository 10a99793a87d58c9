"""Slots: the sequences of one context, what each holds in the KV cache, and the request that it serves."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from octavo.core.engine.meter import Cost
from octavo.core.engine.protocol import Generate, Timings
from octavo.core.engine.text import Characters, StopStrings

if TYPE_CHECKING:
    from octavo.core.engine.llama import Sampler


@dataclass(slots=True, eq=False)
class Work:
    """A request on its way: what it was given, what it made so far. ``prompt`` and ``made`` are token ids."""

    request: Generate
    prompt: list[int]
    limit: int
    received_at: float
    ends: frozenset[int] = frozenset()
    sampler: "Sampler | None" = None
    seed: int = 0
    made: list[int] = field(default_factory=list)
    cached: int = 0
    characters: Characters = field(default_factory=Characters)
    stops: StopStrings = field(default_factory=lambda: StopStrings(()))
    admitted_at: float = 0.0
    prefilled_at: float = 0.0
    last_token_at: float = 0.0
    longest_gap_s: float = 0.0
    unsent: list[int] = field(default_factory=list)
    cost: Cost = field(default_factory=Cost)

    @property
    def is_seeded(self) -> bool:
        """The client wants the same draw again: a seed was given, and there is something to draw."""
        return self.request.sampling.seed is not None and self.request.sampling.temperature > 0

    @property
    def tokens(self) -> list[int]:
        """All tokens that must be in the cache before the next one can be sampled."""
        return self.prompt + self.made

    def token(self, index: int) -> int:
        """Give one of ``tokens`` without building the list."""
        here = index - len(self.prompt)
        return self.prompt[index] if here < 0 else self.made[here]

    def span(self, start: int, stop: int) -> Sequence[int]:
        """Give ``tokens[start:stop]`` without building the whole list."""
        border = len(self.prompt)
        if start >= border:
            return self.made[start - border : stop - border]
        return self.prompt[start:stop] if stop <= border else self.tokens[start:stop]

    def __len__(self) -> int:
        return len(self.prompt) + len(self.made)

    def note_token(self, now: float) -> None:
        """Keep the clock of tokens."""
        if not self.made:
            self.prefilled_at = now
        else:
            self.longest_gap_s = max(self.longest_gap_s, now - self.last_token_at)
        self.last_token_at = now

    def timings(self) -> Timings:
        """Give where the time went, as far as the request came."""
        admitted = self.admitted_at or time.monotonic()
        prefilled = self.prefilled_at or admitted
        return Timings(
            queue_s=admitted - self.received_at,
            prefill_s=prefilled - admitted,
            first_token_s=prefilled - self.received_at,
            decode_s=max(self.last_token_at - prefilled, 0.0),
            longest_gap_s=self.longest_gap_s,
            disk_s=self.cost.disk_s,
            prefill_disk_bytes=self.cost.prefill_disk_bytes,
            decode_disk_bytes=self.cost.decode_disk_bytes,
            prefill_major_faults=self.cost.prefill_major_faults,
            decode_major_faults=self.cost.decode_major_faults,
        )


@dataclass(slots=True, eq=False)
class Slot:
    """One sequence: ``held`` are the tokens whose cells are in the cache, in order of position."""

    index: int
    held: list[int] = field(default_factory=list)
    work: Work | None = None
    used_at: float = 0.0

    @property
    def is_idle(self) -> bool:
        """No request is served here."""
        return self.work is None

    @property
    def missing(self) -> int:
        """Tokens of the request that are not in the cache yet."""
        return len(self.work) - len(self.held) if self.work else 0

    @property
    def is_decoding(self) -> bool:
        """The prompt is read; one token at a time is added."""
        return self.work is not None and bool(self.work.made) and self.missing == 1

    @property
    def is_prefilling(self) -> bool:
        """Part of the prompt is still to be read."""
        return self.work is not None and not self.is_decoding
