"""Compare the closed form with llama.cpp's own allocator."""

import itertools
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from octavo.core.config.load_config import KvType, LoadConfig, LoadMode
from octavo.core.engine.simulate import Outcome, Refused, Simulated, simulate
from octavo.core.gguf.shards import read_model
from octavo.core.memory.estimate import estimate
from octavo.core.memory.shape import Shape, read_shape
from octavo.core.memory.types import Components
from tests.fixtures.zoo_models import MODELS

MIB = 1024 * 1024
SAME: tuple[KvType, ...] = ("f32", "f16", "bf16", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0", "iq4_nl")
MIXED: tuple[tuple[KvType, KvType], ...] = (
    ("f16", "q8_0"), ("q8_0", "f16"), ("q8_0", "q4_0"), ("f32", "f16"), ("bf16", "q5_1"), ("q5_0", "iq4_nl"),
)  # fmt: skip
PAIRS = (*((kind, kind) for kind in SAME), *MIXED)
# context, slots, unified, swa_full
PLACES = tuple(itertools.product((2048, 8192, 32768), (1, 4), (True, False), (True, False)))

MIXED_LATENT = "model does not support different K"
"""llama.cpp refuses this of models with a latent cache (MLA): they have no V of its own."""


@dataclass(frozen=True)
class Row:
    """One configuration of one model: what was forecast and what llama.cpp says."""

    model: str
    config: LoadConfig
    forecast: Components
    simulated: Simulated

    @property
    def held_difference(self) -> int:
        """Bytes by which KV cache and recurrent states differ."""
        forecast = self.forecast.kv + self.forecast.recurrent
        return forecast - self.simulated.kv - self.simulated.recurrent

    @property
    def total(self) -> int:
        """The forecast without the runtime, in bytes."""
        return self.forecast.private_bytes + self.forecast.weights_mapped - self.forecast.runtime

    @property
    def error(self) -> float:
        """The total's error as a share of what is allowed: 16 MiB or 2 %."""
        return abs(self.total - self.simulated.total) / max(16 * MIB, 0.02 * self.simulated.total)

    def __str__(self) -> str:
        config = self.config
        kind = "unified" if config.kv_unified else "split"
        window = "full" if config.swa_full else "window"
        wish = f"{config.context:>6} x{config.slots} {kind:7} {window:6} {config.kv_k}/{config.kv_v}"
        error = self.total - self.simulated.total
        share = 100 * error / self.simulated.total
        figures = f"{self.simulated.total / MIB:10.2f} {error / MIB:+8.2f} MiB {share:+6.2f} %"
        return f"{self.model:22} {wish:40} {figures}"


def config(pair: tuple[KvType, KvType], place: tuple[int, int, bool, bool]) -> LoadConfig:
    """Give one point of the grid; private weights, as the simulation has them."""
    context, slots, unified, full = place
    return LoadConfig(
        context=context,
        slots=slots,
        kv_unified=unified,
        swa_full=full,
        kv_k=pair[0],
        kv_v=pair[1],
        load_mode=LoadMode.NONE,
    )


def few(shape: Shape, number: int) -> list[LoadConfig]:
    """Give 15 points with each pair once and every value of each other setting; ``number`` turns them."""
    count = len(PAIRS) if shape.kv_layers else 4
    return [config(PAIRS[i], PLACES[(7 * i + 5 * number) % len(PLACES)]) for i in range(count)]


def odd() -> list[LoadConfig]:
    """Give points off the grid: a context that is no multiple of 256, long ones, wide and narrow steps."""
    wishes = ((300, 1, 512), (1024, 2, 4096), (131072, 2, 1024), (4096, 8, 64))
    return [
        LoadConfig(
            context=context, slots=slots, micro_batch=step, batch=max(512, step), load_mode=LoadMode.NONE
        )
        for context, slots, step in wishes
    ]


def every(shape: Shape) -> list[LoadConfig]:
    """Give the whole grid; without a KV cache its types make no difference."""
    pairs = PAIRS if shape.kv_layers else PAIRS[1:2]
    return [config(pair, place) for pair in pairs for place in PLACES]


def written(name: str) -> Iterator[tuple[Path, Shape]]:
    """Lend one model of the zoo."""
    with tempfile.TemporaryDirectory() as folder:
        path = MODELS[name]().write(Path(folder))
        yield path, read_shape(read_model(path))


def rows(name: str, path: Path, shape: Shape, configs: Sequence[LoadConfig]) -> Iterator[Row]:
    """Give a row per configuration that llama.cpp accepts; a refusal but the known one is a failure."""
    outcomes: Iterable[Outcome] = simulate(path, configs)
    for wish, outcome in zip(configs, outcomes, strict=True):
        if isinstance(outcome, Refused):
            assert MIXED_LATENT in outcome.reason and wish.kv_k != wish.kv_v, (name, wish, outcome)
            continue
        yield Row(name, wish, estimate(shape, wish).components, outcome)
