"""Room for loads: idle models leave, the longest unused first; busy ones are waited for; nothing fails."""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from octavo.core.config.paths import Home
from octavo.core.config.settings import SettingsFile
from octavo.core.engine.protocol import Finished, Sampling, Text
from octavo.core.errors import InsufficientMemory
from octavo.core.events import ActionTaken, AnyEvent, LoadStarted, ModelUnloaded
from octavo.core.library.catalog import Catalog
from octavo.core.memory.budget import GIB
from octavo.core.memory.ledger import Ledger
from octavo.core.runtime.requests import CompletionRequest
from octavo.core.runtime.runtime import Runtime

NAMES = ("one", "two", "three")
SMALL = {"context": 512, "threads": 1, "slots": 1, "batch": 128, "micro_batch": 128}


class Stage:
    """A runtime over three copies of the starter model."""

    def __init__(self, home: Home, models: Path) -> None:
        self.home = home
        self.events: list[AnyEvent] = []
        self.settings = SettingsFile(home.settings)
        self.settings.change("loading", defaults=SMALL)
        catalog = Catalog([models], home.cache / "index")
        self.runtime = Runtime(home, catalog, self.settings, self.events.append)

    @property
    def loaded(self) -> set[str]:
        return {status.model.rpartition("/")[2] for status in self.runtime.instances()}

    def told(self, kind: type) -> list[AnyEvent]:
        return [event for event in self.events if isinstance(event, kind)]

    async def needs(self, model: str = "one") -> int:
        """Give what one model needs in all, in bytes."""
        _, report = await self.runtime.estimate(model)
        found = report.estimate
        assert report.verdict.kind == "resident"
        return found.private_bytes + found.hot_mapped_bytes

    async def limit(self, share: float) -> None:
        """Let models have so many times what one needs."""
        self.settings.change("memory", limit_gib=await self.needs() * share / GIB)

    async def complete(self, model: str, tokens: int = 3, flowing: asyncio.Event | None = None) -> Finished:
        """Run a completion to its end."""
        request = CompletionRequest(
            model=model,
            prompt="One, two,",
            max_tokens=tokens,
            ignore_end=True,
            sampling=Sampling(temperature=0),
        )
        last: object = None
        async with contextlib.aclosing(self.runtime.complete(request)) as steps:
            async for step in steps:
                last = step
                if flowing is not None and isinstance(step, Text):
                    flowing.set()
        assert isinstance(last, Finished)
        return last


@pytest.fixture(scope="module")
def models(smollm2: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three models, which are one file under three names."""
    root = tmp_path_factory.mktemp("models")
    for name in NAMES:
        (root / "acme" / name).mkdir(parents=True)
        os.link(smollm2, root / "acme" / name / f"{name}.gguf") if _same_disk(smollm2, root) else (
            root / "acme" / name / f"{name}.gguf"
        ).write_bytes(smollm2.read_bytes())
    return root


def _same_disk(file: Path, folder: Path) -> bool:
    return file.stat().st_dev == folder.stat().st_dev


def on_stage(home: Path, models: Path, play: Callable[[Stage], Awaitable[None]]) -> None:
    @contextlib.asynccontextmanager
    async def running() -> AsyncIterator[Stage]:
        place = Home(home)
        place.prepare()
        stage = Stage(place, models)
        await stage.runtime.start()
        try:
            async with asyncio.timeout(150):
                yield stage
        finally:
            await stage.runtime.close()

    async def run() -> None:
        async with running() as stage:
            await play(stage)

    asyncio.run(run())


def test_three_models_in_turn_under_a_budget_for_two_answer_all(octavo_home: Path, models: Path) -> None:
    async def play(stage: Stage) -> None:
        await stage.limit(2.5)
        for turn in range(12):
            assert (await stage.complete(NAMES[turn % 3])).completion_tokens == 3
            assert len(stage.loaded) <= 2
        unloaded = [event.instance for event in stage.told(ModelUnloaded)]  # type: ignore[attr-defined]
        assert unloaded[:3] == ["acme/one", "acme/two", "acme/three"]  # the longest unused first
        said = [event.text for event in stage.told(ActionTaken)]  # type: ignore[attr-defined]
        assert len([text for text in said if "to make room" in text]) == len(unloaded)

    on_stage(octavo_home, models, play)


def test_requests_at_once_under_a_budget_for_two_answer_all(octavo_home: Path, models: Path) -> None:
    async def play(stage: Stage) -> None:
        await stage.limit(2.5)
        done = await asyncio.gather(*(stage.complete(NAMES[turn % 3]) for turn in range(9)))
        assert [one.completion_tokens for one in done] == [3] * 9
        assert len(stage.loaded) <= 2

    on_stage(octavo_home, models, play)


def test_models_loaded_by_name_stand_under_the_same_budget(octavo_home: Path, models: Path) -> None:
    async def play(stage: Stage) -> None:
        await stage.limit(2.5)
        for name in NAMES:
            await stage.runtime.load(name)
        assert stage.loaded == {"two", "three"}
        pinned = stage.runtime._instances["acme/two"]
        pinned.is_pinned = True
        await stage.runtime.load("one")
        assert stage.loaded == {"two", "one"}

    on_stage(octavo_home, models, play)


def test_what_will_not_run_is_refused_with_the_figures_and_forced(octavo_home: Path, models: Path) -> None:
    async def play(stage: Stage) -> None:
        stage.settings.change("memory", limit_gib=0.04)
        with pytest.raises(InsufficientMemory) as caught:
            await stage.runtime.load("one")
        details = caught.value.details
        assert isinstance(details["needed_bytes"], int) and isinstance(details["available_bytes"], int)
        assert details["needed_bytes"] > details["budget_bytes"] == int(0.04 * GIB)
        assert ">" in str(details["inequality"])
        with pytest.raises(InsufficientMemory):
            await stage.complete("one")  # on demand, by the same function
        assert stage.told(LoadStarted) == []
        assert (await stage.runtime.load("one", force=True)).state == "ready"
        stage.settings.change("memory", enforce=False)
        assert (await stage.runtime.load("two")).state == "ready"

    on_stage(octavo_home, models, play)


def test_a_load_waits_for_a_busy_model_and_not_for_ever(octavo_home: Path, models: Path) -> None:
    async def play(stage: Stage) -> None:
        _, report = await stage.runtime.estimate("one")
        private = report.estimate.private_bytes
        stage.settings.change("memory", limit_gib=1.5 * private / GIB, wait_s=0)
        flowing = asyncio.Event()
        busy = asyncio.create_task(stage.complete("one", 200, flowing))
        await flowing.wait()
        with pytest.raises(InsufficientMemory):
            await stage.runtime.load("two")
        assert stage.loaded == {"one"}  # a busy one never leaves
        stage.settings.change("memory", wait_s=60)
        waiting = asyncio.create_task(stage.complete("two"))
        await asyncio.sleep(0)
        assert (await busy).completion_tokens == 200
        assert (await waiting).completion_tokens == 3
        assert stage.loaded == {"two"}

    on_stage(octavo_home, models, play)


def test_the_context_that_nobody_said_is_the_largest_that_fits(octavo_home: Path, models: Path) -> None:
    async def play(stage: Stage) -> None:
        stage.settings.change("loading", defaults={"threads": 1})
        status = await stage.runtime.load("one", {"slots": 2})
        assert status.context == 8192
        assert status.reasons["context"].startswith("largest that fits ")
        again = await stage.runtime.load("one", {"slots": 2})
        assert again.pid == status.pid
        await stage.runtime.unload("acme/one")
        stage.settings.change("memory", limit_gib=0.25)
        status = await stage.runtime.load("one", {"slots": 2})
        assert 256 < status.context < 8192
        assert status.reasons["context"] == "largest that fits 256 MiB"

    on_stage(octavo_home, models, play)


def test_every_load_is_noted_and_close_to_what_was_predicted(octavo_home: Path, models: Path) -> None:
    async def play(stage: Stage) -> None:
        await stage.runtime.load("one")
        ledger = Ledger(stage.home.cache)
        while (last := ledger.last("acme/one")) is None:
            await asyncio.sleep(0.05)
            ledger = Ledger(stage.home.cache)
        rounding = 11 << 10  # the log tells 0.01 MiB
        for name in ("kv", "recurrent", "output"):
            assert abs(getattr(last.actual, name) - getattr(last.predicted, name)) <= rounding, name
        assert last.anonymous_bytes > 10 << 20

    on_stage(octavo_home, models, play)
