"""A real worker on a real model, for tests."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec

from octavo.core.config.load_config import LoadConfig
from octavo.core.engine.client import Engine
from octavo.core.engine.protocol import Finished, Generate, Load, Sampling, Started, Text
from octavo.core.prompts.messages import Segment

GREEDY = Sampling(temperature=0)
SMALL = LoadConfig(context=2048, threads=1)


@contextlib.asynccontextmanager
async def real_engine(model: Path, folder: Path, **config: object) -> AsyncIterator[Engine]:
    """Start a worker with one thread and a context of 2,048, and end it by its id."""
    load = Load(str(model), msgspec.structs.replace(SMALL, **config))
    engine = Engine(load, folder / "worker.log", lambda _: None)
    try:
        async with asyncio.timeout(60):
            await engine.start()
        yield engine
    finally:
        await engine.stop()


class Answer:
    """What came of one request."""

    def __init__(self) -> None:
        self.text = ""
        self.tokens: list[int] = []
        self.started: Started | None = None
        self.finished: Finished | None = None


async def ask(engine: Engine, prompt: str | list[int], most: int, **more: object) -> Answer:
    """Run a greedy request to its end."""
    answer = Answer()
    given = (
        {"prompt": [Segment(prompt, True)]} if isinstance(prompt, str) else {"prompt": [], "tokens": prompt}
    )
    settings = {"sampling": GREEDY, **given, **more}
    command = Generate(engine.next_request(), max_tokens=most, **settings)  # type: ignore[arg-type]
    async with asyncio.timeout(120), contextlib.aclosing(engine.generate(command)) as reports:
        async for report in reports:
            match report:
                case Started():
                    answer.started = report
                case Text():
                    answer.text += report.text
                    answer.tokens += report.tokens
                case Finished():
                    answer.finished = report
    return answer
