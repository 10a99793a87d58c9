"""Compare batched with single decoding, teacher-forced, in a process of its own; prints JSON.

    python teacher.py MODEL STREAMS STEPS

Each stream is run alone with greedy choice first; then all run together on four slots, and whatever the
logits say, the tokens of the single run are taken. Reported: the most streams in one batch, the share of
steps with the same best token, and the mean Kullback-Leibler divergence (nats) of the batched from the single
distribution.
"""

import json
import sys

import numpy as np
from numpy.typing import NDArray

from octavo.core.config.load_config import LoadConfig
from octavo.core.engine import llama
from octavo.core.engine.log import EngineLog
from octavo.core.engine.meter import Meter
from octavo.core.engine.protocol import AnyReport, Generate
from octavo.core.engine.scheduler import Scheduler
from octavo.core.engine.slots import Work
from octavo.core.memory.probe import OwnCounters

Logits = NDArray[np.float32]
WIDTHS: list[int] = []


class Pupil:
    """A sampler that keeps the logits and takes the forced token, or the best one."""

    def __init__(self, size: int, forced: list[int]) -> None:
        self.size = size
        self.forced = forced
        self.seen: list[Logits] = []

    def sample(self, context: llama.Context, index: int) -> int:
        logits = np.ctypeslib.as_array(context.logits(index), (self.size,)).copy()
        self.seen.append(logits)
        return self.forced[len(self.seen) - 1] if self.forced else int(logits.argmax())

    def free(self) -> None:
        """Nothing to give back."""


def run(
    context: llama.Context, config: LoadConfig, prompts: list[list[int]], forced: list[list[int]], steps: int
) -> list[Pupil]:
    """Run all prompts together and give each one's pupil."""
    words = context.model.vocabulary
    pupils = [Pupil(words.size, tokens) for tokens in forced]
    reports: list[AnyReport] = []

    def make_sampler(work: Work) -> Pupil:
        return pupils[int(work.request.request)]

    batch = llama.Batch(context.batch_limit)
    scheduler = Scheduler(context, batch, words, config, make_sampler, reports.append, Meter(OwnCounters()))  # type: ignore[arg-type]
    for number, prompt in enumerate(prompts):
        scheduler.submit(Generate(str(number), [], max_tokens=steps, ignore_end=True), prompt)
    while scheduler.has_work:
        scheduler.step()
        WIDTHS.append(sum(slot.is_decoding for slot in scheduler.slots))
    for slot in scheduler.slots:
        context.drop(slot.index)
    return pupils


def divergence(left: Logits, right: Logits) -> float:
    """Give KL(left || right) of the two distributions, in nats."""
    p, q = (x.astype(np.float64) - x.max() for x in (left, right))
    log_p, log_q = p - np.log(np.exp(p).sum()), q - np.log(np.exp(q).sum())
    return float((np.exp(log_p) * (log_p - log_q)).sum())


def main(path: str, streams: int, steps: int) -> None:
    """Measure and print."""
    config = LoadConfig(context=2048, threads=1, slots=4)
    log = EngineLog(llama.C)
    model = llama.Model(path, config, log, lambda _: None)
    context = llama.Context(model, config, log)
    words = model.vocabulary
    prompts = []
    for number in range(streams):
        tokens = words.tokenize(
            f"Story number {number} about the marker M{number}{number}: once", special=True
        )
        prompts.append([words.bos, *tokens] if words.adds_bos else tokens)
    alone = [run(context, config, [prompt], [[]], steps)[0] for prompt in prompts]
    taught = [[int(logits.argmax()) for logits in pupil.seen] for pupil in alone]
    together = run(context, config, prompts, taught, steps)
    both = zip(alone, together, strict=True)
    pairs = [pair for one, many in both for pair in zip(one.seen, many.seen, strict=True)]
    equal = sum(int(a.argmax()) == int(b.argmax()) for a, b in pairs) / len(pairs)
    kl = float(np.mean([divergence(*pair) for pair in pairs]))
    print(json.dumps({"streams": max(WIDTHS), "steps": len(pairs), "equal": equal, "kl": kl}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
