"""Octavo against llama.cpp's own server: same model, threads, cells, prompts; in one run and in turn.

    make bench                  # seven rounds, about ten minutes on a quiet machine
    make bench ARGS="--rounds 3"

Each figure is the median over the rounds of the ratio ours/theirs with a 95 % bootstrap interval; a goal
holds when the interval reaches it.
"""

import argparse
import random
import statistics
from collections.abc import Callable
from pathlib import Path

from tests.benchmarks.sides import Side, ours, peer
from tests.benchmarks.streams import together

MODEL = Path(__file__).resolve().parents[2] / ".models" / "SmolLM2-135M-Instruct.Q4_1.gguf"
SLOTS, CONTEXT, THREADS = 8, 2048, 1
TOKENS = 64
LONG = "The printer set the page in small type and counted every line of it twice. "

Figures = dict[str, float]
# figure → whether more is better; the goal is a ratio of 1.0 in each
GOALS = {
    "decode tok/s, 1 stream": True,
    "decode tok/s, 4 streams": True,
    "decode tok/s, 8 streams": True,
    "prefill tok/s": True,
    "first token s, cold": False,
    "first token s, cached prefix": False,
}
WANTED = {*list(GOALS)[:3], "first token s, cached prefix", "peak RSS MiB"}


def measure(side: Side, round_: int) -> Figures:
    """Take all figures of one side in one round; prompts are new in each round, so that nothing is cached."""
    figures: Figures = {}
    for streams in (1, 4, 8):
        prompts = [f"Round {round_}, {streams} streams, number {number}: once" for number in range(streams)]
        done = together(side, prompts, TOKENS)
        figures[f"decode tok/s, {streams} stream{'s' if streams > 1 else ''}"] = sum(
            s.tokens_per_s for s in done
        )
    long = f"Report {round_}. {LONG * 70}"
    (cold,) = together(side, [long], 1)
    (warm,) = together(side, [f"{long} And then"], 1)
    figures["prefill tok/s"] = cold.prompt_tokens / cold.first_s
    figures["first token s, cold"] = cold.first_s
    figures["first token s, cached prefix"] = warm.first_s
    return figures


def interval(
    values: list[float], of: Callable[[list[float]], float] = statistics.median
) -> tuple[float, float]:
    """Give the 95 % bootstrap interval of a statistic (percentiles of 10,000 resamples)."""
    draw = random.Random(1)
    means = sorted(of(draw.choices(values, k=len(values))) for _ in range(10_000))
    return means[250], means[9749]


def report(name: str, mine: list[float], theirs: list[float], *, more_is_better: bool) -> str:
    """Give one line: both medians, the ratio, its interval, and whether the goal of 1.0 is reached."""
    ratios = [a / b for a, b in zip(mine, theirs, strict=True)]
    low, high = interval(ratios)
    holds = high >= 1 if more_is_better else low <= 1
    verdict = ("holds" if holds else "MISSED") if name in WANTED else ""
    return (
        f"{name:30} {statistics.median(mine):9.2f} {statistics.median(theirs):9.2f} "
        f"{statistics.median(ratios):7.3f}  [{low:.3f}, {high:.3f}]  {verdict}"
    )


def main() -> None:
    """Run the rounds and print the table."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    arguments.add_argument("--rounds", type=int, default=7)
    rounds = arguments.parse_args().rounds
    sides = [ours(MODEL, SLOTS, CONTEXT, THREADS), peer(MODEL, SLOTS, CONTEXT, THREADS)]
    try:
        taken = measure_in_turn(sides, rounds)
        print(f"\n{'figure':30} {'octavo':>9} {'peer':>9} {'ratio':>7}  95 % interval")
        for name, more_is_better in GOALS.items():
            columns = [[figures[name] for figures in taken[side.name]] for side in sides]
            print(report(name, *columns, more_is_better=more_is_better))
        peaks = [[side.peak_bytes() / 2**20] for side in sides]
        print(report("peak RSS MiB", *peaks, more_is_better=False))
        for what, pid in sides[0].beside.items():
            print(f"{'peak RSS MiB, our ' + what:30} {sides[0].peak_bytes(pid) / 2**20:9.2f}")
    finally:
        for side in sides:
            side.stop()


def measure_in_turn(sides: list[Side], rounds: int) -> dict[str, list[Figures]]:
    """Let both sides run each round, the order changing from round to round."""
    taken: dict[str, list[Figures]] = {side.name: [] for side in sides}
    for round_ in range(rounds):
        for side in sides if round_ % 2 == 0 else reversed(sides):
            figures = measure(side, round_)
            taken[side.name].append(figures)
            print(
                f"round {round_ + 1} {side.name:13}",
                "  ".join(f"{value:.2f}" for value in figures.values()),
                flush=True,
            )
    return taken


if __name__ == "__main__":
    main()
