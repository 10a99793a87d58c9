"""Do random things to a real context and compare the cells that llama.cpp writes with those that we follow.

Run as ``follow_cells.py MODEL SEED STEPS SLOTS UNIFIED``. Before each decode one layer's K is set to zero,
so that afterwards the rows that are not zero are the cells it wrote; what the text would be does not matter
here. Prints a JSON summary.
"""

import ctypes
import json
import random
import sys
import threading

import numpy as np

from octavo.core.config.load_config import LoadConfig
from octavo.core.engine import llama
from octavo.core.engine.log import EngineLog
from octavo.core.engine.tensors import KvTensor, Tensors

CELLS, MICRO_BATCH, BATCH = 512, 16, 48


class Walk:
    """One context, what each sequence holds, and what happened."""

    def __init__(self, path: str, seed: int, slots: int, *, unified: bool) -> None:
        config = LoadConfig(
            context=CELLS, slots=slots, batch=BATCH, micro_batch=MICRO_BATCH, kv_unified=unified, threads=1
        )
        model = llama.Model(path, config, EngineLog(llama.C), lambda share: None)
        self.context = llama.Context(model, config, EngineLog(llama.C))
        self.batch = llama.Batch(BATCH)
        pool = self.context.pools[0].size
        rows = Tensors(self.context.handle, MICRO_BATCH, slots).kv(range(model.layers))
        self.tensor = next(row for row in rows if row.cells == pool)
        self.held = [0] * slots
        self.random = random.Random(seed)
        self.seen: dict[str, int] = {}
        self.written = 0

    def step(self) -> None:
        """Do one random thing."""
        kind = self.random.choices(
            ("decode", "keep", "drop", "share", "abort"), (10, 3, 1, 2 if self.context.unified else 0, 1)
        )[0]
        self.seen[kind] = self.seen.get(kind, 0) + 1
        getattr(self, kind)()

    def decode(self) -> None:
        """Decode a few tokens of some sequences, as many as there is room for."""
        self._fill()
        before = self._cells()
        ctypes.memset(self.tensor.address, 0, self.tensor.nbytes)
        result = self.context.decode(self.batch)
        if result == llama.NO_ROOM:
            self.seen["no room"] = self.seen.get("no room", 0) + 1
            return
        assert result == llama.DONE
        self._note()
        new = self._cells() - before
        assert new == written(self.tensor), (sorted(new), sorted(written(self.tensor)))
        self.written += len(new)

    def abort(self) -> None:
        """Break a decode off at a random moment, and take back what it may have placed."""
        self._fill()
        timer = threading.Timer(self.random.uniform(0, 0.01), self.context.abort)
        timer.start()
        result = self.context.decode(self.batch)
        timer.join()
        if result == llama.DONE:
            self._note()
        elif result != llama.NO_ROOM:
            self.seen["aborted"] = self.seen.get("aborted", 0) + 1
            for sequence, position, _ in self.batch.parts:
                self.context.keep(sequence, position)

    def keep(self) -> None:
        """Cut a sequence."""
        sequence = self._some()
        self.held[sequence] = self.random.randint(0, self.held[sequence])
        self.context.keep(sequence, self.held[sequence])

    def drop(self) -> None:
        """Drop a sequence."""
        sequence = self._some()
        self.held[sequence] = 0
        self.context.drop(sequence)

    def share(self) -> None:
        """Let a sequence begin as another one does."""
        source, target = self._some(), self._some()
        if source == target:
            return
        self.context.drop(target)
        self.held[target] = self.random.randint(0, self.held[source])
        if self.held[target]:
            self.context.share(source, target, self.held[target])

    def _some(self) -> int:
        return self.random.randrange(len(self.held))

    def _fill(self) -> None:
        self.batch.clear()
        for sequence in self.random.sample(range(len(self.held)), self.random.randint(1, len(self.held))):
            room = min(BATCH - len(self.batch), self.random.choice((1, 1, 2, 7, 30)))
            if room > 0:
                tokens = [self.random.randrange(300, 2000) for _ in range(room)]
                self.batch.add(tokens, self.held[sequence], sequence, wants_logits=False)

    def _note(self) -> None:
        for sequence, position, count in self.batch.parts:
            self.held[sequence] = position + count

    def _cells(self) -> set[int]:
        return {
            cell + stream * pool.size
            for stream, pool in enumerate(self.context.pools)
            for cell in pool.cells()
        }


def written(tensor: KvTensor) -> set[int]:
    """Give the rows that are not zero."""
    data = (ctypes.c_ubyte * tensor.nbytes).from_address(tensor.address)
    rows = np.frombuffer(data, np.uint8).reshape(-1, tensor.row_bytes)
    return set(map(int, np.flatnonzero(rows.any(axis=1))))


def main() -> None:
    """Walk, and tell what was done."""
    path, seed, steps, slots, unified = sys.argv[1:]
    walk = Walk(path, int(seed), int(slots), unified=unified == "unified")
    unsure = 0
    for _ in range(int(steps)):
        walk.step()
        unsure += not all(pool.is_sure for pool in walk.context.pools)
        if unsure:
            break
    print(json.dumps({"written": walk.written, "unsure": unsure, **walk.seen}))


if __name__ == "__main__":
    main()
