"""A context without llama.cpp: cells are counted, decodes can be made to fail, logits are a rule."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from octavo.core.memory.probe import Counts


@dataclass
class FakeBatch:
    """Rows of (sequence, position, token, wants logits)."""

    rows: list[tuple[int, int, int, bool]] = field(default_factory=list)

    def clear(self) -> None:
        self.rows = []

    def add(self, tokens: Sequence[int], position: int, sequence: int, *, wants_logits: bool) -> int:
        for offset, token in enumerate(tokens):
            is_last = offset == len(tokens) - 1
            self.rows.append((sequence, position + offset, token, wants_logits and is_last))
        return len(self.rows) - 1


class FakeContext:
    """Keeps what each sequence holds as llama.cpp's unified cache would: sequences may share a cell."""

    def __init__(
        self, cells: int = 64, batch_limit: int = 32, *, unified: bool = True, window: int = 0
    ) -> None:
        self.cells = self.usable = cells
        self.batch_limit = batch_limit
        self.unified = unified
        self.window = window
        self.held: dict[int, list[int]] = {}
        self.origin: dict[int, list[object]] = {}
        self.results: list[int] = []
        self.batches: list[list[tuple[int, int, int, bool]]] = []
        self.first: dict[int, int] = {}
        self.can_cut = True

    @property
    def used_cells(self) -> int:
        """Count the different cells."""
        return len({id(cell) for cells in self.origin.values() for cell in cells})

    def shared_cells(self, sequence: int) -> int:
        others = {id(cell) for other, cells in self.origin.items() if other != sequence for cell in cells}
        return sum(id(cell) in others for cell in self.origin.get(sequence, []))

    def decode(self, batch: FakeBatch) -> int:
        if self.results and (result := self.results.pop(0)):
            return result
        if self.used_cells + len(batch.rows) > self.cells:
            return 1
        self.batches.append(list(batch.rows))
        for sequence, position, token, _ in batch.rows:
            tokens = self.held.setdefault(sequence, [])
            assert position == len(tokens), "positions must follow one another"
            tokens.append(token)
            self.origin.setdefault(sequence, []).append(object())
        return 0

    def keep(self, sequence: int, count: int) -> bool:
        if not self.can_cut:
            return False
        del self.held.setdefault(sequence, [])[count:]
        del self.origin.setdefault(sequence, [])[count:]
        return True

    def drop(self, sequence: int) -> None:
        self.held[sequence], self.origin[sequence] = [], []

    def share(self, source: int, target: int, count: int) -> None:
        assert self.unified, "llama.cpp aborts here"
        assert not self.held.get(target)
        self.held[target] = self.held[source][:count]
        self.origin[target] = self.origin[source][:count]

    def first_position(self, sequence: int) -> int:
        return self.first.get(sequence, 0 if self.held.get(sequence) else -1)

    def abort(self) -> None:
        raise AssertionError("no test of the scheduler aborts from outside")


class FakeWords:
    """Token ``n`` is the text ``<n>``; token 1 ends a turn."""

    size = 1000

    def piece(self, token: int) -> bytes:
        return f"<{token}>".encode()

    def tokenize(self, text: str, *, special: bool) -> list[int]:
        return [int(number) for number in text.strip("<>").split("><")]

    def is_end(self, token: int) -> bool:
        return token == 1


class FakeSampler:
    """The next token is the sum of the sequence's last token and 1, in 2 to 999, unless told otherwise."""

    def __init__(self, context: FakeContext, script: list[int] | None = None) -> None:
        self._context = context
        self._script = script or []
        self.is_free = False

    def sample(self, context: object, index: int) -> int:
        _, _, token, wants_logits = self._context.batches[-1][index]
        assert wants_logits
        if self._script:
            return self._script.pop(0)
        return 2 + (token - 1) % 998

    def free(self) -> None:
        assert not self.is_free
        self.is_free = True


class FakeCounters:
    """Counts what a test says."""

    def __init__(self) -> None:
        self.disk_bytes = self.major_faults = 0
        self.off_cpu_s = 0.0

    def read(self) -> Counts:
        return Counts(self.disk_bytes, 0, self.major_faults, self.off_cpu_s)
