"""What being watched costs a model: decode speed with samples at 4 Hz and maps at 1 Hz, in turn with none.

    python -m tests.benchmarks.sampling --rounds 40

Each round decodes the same tokens unwatched and watched, in changing order, and gives one ratio; the median
and its 95 % interval (bootstrap) are printed beside the CPU time of the watching process; goal: under 1 %.
"""

import argparse
import asyncio
import contextlib
import random
import resource
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from octavo.core.config.paths import Home
from octavo.core.config.settings import SettingsFile
from octavo.core.engine.protocol import Finished, Sampling
from octavo.core.library.catalog import Catalog
from octavo.core.runtime.requests import CompletionRequest
from octavo.core.runtime.runtime import Runtime
from tests.conftest import MODELS

GOAL = 0.01
TOKENS = 256
MODEL = "SmolLM2-135M-Instruct.Q4_1.gguf"


class Side:
    """One way to decode: speeds (tokens per second), and what the watching process spent meanwhile."""

    def __init__(self) -> None:
        self.speeds: list[float] = []
        self.cpu_s = self.wall_s = 0.0

    @property
    def cpu_share(self) -> float:
        """The part of one core that this process took."""
        return self.cpu_s / self.wall_s


async def decode(runtime: Runtime, model: str) -> float:
    """Decode once; give the speed after the first token."""
    request = CompletionRequest(
        model=model,
        prompt="Once upon a time",
        sampling=Sampling(temperature=0),
        max_tokens=TOKENS,
        ignore_end=True,
        allow_path=True,
    )
    async with contextlib.aclosing(runtime.complete(request)) as steps:
        async for step in steps:
            if isinstance(step, Finished):
                return (step.completion_tokens - 1) / step.timings.decode_s
    raise AssertionError("it never finished")


async def measure(rounds: int) -> tuple[Side, Side]:
    """Decode in turn, unwatched and watched."""
    with tempfile.TemporaryDirectory() as folder:
        home = Home(Path(folder))
        home.prepare()
        settings = SettingsFile(home.settings)
        runtime = Runtime(
            home, Catalog([MODELS], home.cache / "catalog.msgpack"), settings, lambda event: None
        )
        await runtime.start()
        try:
            model = str(MODELS / MODEL)
            await runtime.load(model, {"threads": 1, "context": 4096}, allow_path=True)
            return await _in_turn(runtime, model, rounds)
        finally:
            await runtime.close()


async def _in_turn(runtime: Runtime, model: str, rounds: int) -> tuple[Side, Side]:
    unwatched, watched = Side(), Side()
    sides: list[tuple[Side, Callable[[], contextlib.AbstractContextManager[None]]]] = [
        (unwatched, contextlib.nullcontext),
        (watched, runtime.observer.watch),
    ]
    await decode(runtime, model)
    for _ in range(rounds):
        for side, looking in sides:
            with looking():
                cpu, wall = _cpu_s(), time.monotonic()
                side.speeds.append(await decode(runtime, model))
                side.cpu_s += _cpu_s() - cpu
                side.wall_s += time.monotonic() - wall
        sides.reverse()
    return unwatched, watched


def _cpu_s() -> float:
    spent = resource.getrusage(resource.RUSAGE_SELF)
    return spent.ru_utime + spent.ru_stime


def interval(values: list[float]) -> tuple[float, float]:
    """Give the 95 % interval of the median."""
    draw = random.Random(1)
    medians = sorted(statistics.median(draw.choices(values, k=len(values))) for _ in range(2000))
    return medians[50], medians[-51]


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=40)
    unwatched, watched = asyncio.run(measure(parser.parse_args().rounds))
    ratios = [seen / alone for seen, alone in zip(watched.speeds, unwatched.speeds, strict=True)]
    low, high = interval(ratios)
    print(
        f"unwatched {statistics.median(unwatched.speeds):.2f} tok/s, CPU {unwatched.cpu_share:.2%} of a core"
    )
    print(f"watched   {statistics.median(watched.speeds):.2f} tok/s, CPU {watched.cpu_share:.2%} of a core")
    median = statistics.median(ratios)
    print(f"watched/unwatched {median:.4f} (95 % {low:.4f} to {high:.4f}); goal above {1 - GOAL}")


if __name__ == "__main__":
    main()
