"""How fast the header of a 262k-token vocabulary is read, against ``gguf.GGUFReader``: in one run, in turn.

    python -m tests.benchmarks.header               # three rounds, about a minute on a quiet machine
    python -m tests.benchmarks.header --rounds 1

The goal, 40 times as fast, is held when the smallest ratio of a round reaches it. Files are read from the
page cache on both sides; each side reads the whole header, the tensor table included.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

from octavo.core.config.load_config import LoadConfig
from octavo.core.gguf import ArraySkipped, describe, read_header
from octavo.core.memory.estimate import estimate
from octavo.core.memory.shape import read_shape

MODEL = Path(__file__).resolve().parents[2] / ".models" / "gemma-3-270m-q4_k_m.gguf"
GOAL = 40.0
READS = 5


def ours(path: Path) -> int:
    """Read and describe with Octavo; give the length of the vocabulary."""
    header = read_header(path)
    describe(header)
    tokens = header.metadata["tokenizer.ggml.tokens"]
    assert isinstance(tokens, ArraySkipped)
    return tokens.count


def theirs(path: Path) -> int:
    """Read with the ``gguf`` package; give the length of the vocabulary."""
    from gguf import GGUFReader

    return len(GGUFReader(path).fields["tokenizer.ggml.tokens"].data)


def seconds(read: Callable[[Path], int], path: Path, times: int) -> float:
    """Give the median time (s) of some reads in a row."""
    taken = []
    for _ in range(times):
        started = time.perf_counter()
        read(path)
        taken.append(time.perf_counter() - started)
    return statistics.median(taken)


def estimate_us(path: Path) -> float:
    """Give the median time (µs) of an estimate, as a slider asks for it."""
    shape = read_shape(read_header(path))
    taken = []
    for context in range(1024, 32768, 256):
        started = time.perf_counter()
        estimate(shape, LoadConfig(context=context))
        taken.append(time.perf_counter() - started)
    return statistics.median(taken) * 1e6


def main() -> int:
    """Measure both sides in turn, print the ratios, and fail below the goal."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--model", type=Path, default=MODEL)
    given = parser.parse_args()
    assert ours(given.model) == theirs(given.model)  # warms both up, and both read the same
    ratios = []
    for number in range(1, given.rounds + 1):
        fast, slow = seconds(ours, given.model, READS), seconds(theirs, given.model, 1)
        ratios.append(slow / fast)
        print(f"round {number}: {fast * 1000:.1f} ms, GGUFReader {slow * 1000:,.0f} ms, {slow / fast:.1f} ×")
    print(f"one estimate, its header read: {estimate_us(given.model):.0f} µs, goal 1,000 µs")
    holds = min(ratios) >= GOAL
    verdict = "holds" if holds else "MISSED"
    print(f"median {statistics.median(ratios):.1f} ×, least {min(ratios):.1f} ×: goal {GOAL:.0f} × {verdict}")
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())
