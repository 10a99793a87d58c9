"""A worker that knows its model's files, as the runtime starts it, and what it gave back."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec

from octavo.core.engine.client import Engine
from octavo.core.engine.protocol import GaveBack
from octavo.core.memory.figures import ProcessFigures
from octavo.core.memory.probe import process
from octavo.core.runtime.placing import load_command
from tests.core.engine.real_engine import SMALL

SETTLE_S = 0.4


class Watched:
    """A worker, and what it gave back so far."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.given_back: list[GaveBack] = []
        engine.on_given_back = self.given_back.append

    def sampled(self) -> ProcessFigures:
        """Sample the worker's memory."""
        assert self.engine.pid is not None
        found = process(self.engine.pid)
        assert found is not None
        return found

    async def settled(self) -> ProcessFigures:
        """Sample it once its reports have come and nothing is on its way."""
        await asyncio.sleep(SETTLE_S)
        return self.sampled()


@contextlib.asynccontextmanager
async def elastic_engine(model: Path, folder: Path, **config: object) -> AsyncIterator[Watched]:
    """Start a worker with one thread, and end it by its id."""
    load = load_command(model, msgspec.structs.replace(SMALL, **config))
    engine = Engine(load, folder / "worker.log", lambda _: None)
    watched = Watched(engine)
    try:
        async with asyncio.timeout(60):
            await engine.start()
        yield watched
    finally:
        await engine.stop()
