"""Loading, sharing, ending: the runtime with real workers on the starter model."""

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import psutil
import pytest

from octavo.core.config.paths import Home
from octavo.core.config.settings import SettingsFile
from octavo.core.engine import client as engine_client
from octavo.core.engine.protocol import Finished, Sampling, Text
from octavo.core.errors import (
    Cancelled,
    InstanceBusy,
    InvalidConfig,
    ModelNotFound,
    ModelWasUnloaded,
    QueueFull,
    WorkerCrashed,
)
from octavo.core.events import AnyEvent, LoadEnded, LoadStarted, ModelLoaded, ModelUnloaded, WorkerDied
from octavo.core.library.catalog import Catalog
from octavo.core.prompts.messages import Message
from octavo.core.runtime.requests import ChatRequest, CompletionRequest, Loading
from octavo.core.runtime.runtime import Runtime

SMALL = {"context": 1024, "threads": 1}
NAME = "local/SmolLM2-135M-Instruct.Q4_1"


class Stage:
    """A runtime over the starter model, and what it told."""

    def __init__(self, home: Home, model: Path) -> None:
        self.events: list[AnyEvent] = []
        self.settings = SettingsFile(home.settings)
        self.settings.change("loading", defaults=SMALL)
        self.runtime = Runtime(
            home, Catalog([model.parent], home.cache / "index"), self.settings, self.events.append
        )

    def told(self, kind: type) -> list[AnyEvent]:
        return [event for event in self.events if isinstance(event, kind)]

    async def complete(self, tokens: int = 4, **more: object) -> Finished:
        """Run a greedy completion to its end."""
        last: object = None
        async with contextlib.aclosing(self.runtime.complete(self.request(tokens, **more))) as steps:
            async for step in steps:
                last = step
        assert isinstance(last, Finished)
        return last

    def request(self, tokens: int, **more: object) -> CompletionRequest:
        given = {"model": "SmolLM2", "prompt": "One, two,", "max_tokens": tokens, "ignore_end": True, **more}
        return CompletionRequest(sampling=Sampling(temperature=0), **given)  # type: ignore[arg-type]

    async def first_text(self, tokens: int) -> tuple[object, "asyncio.Task[list[object]]"]:
        """Start a stream and give it once text flows."""
        flowing = asyncio.Event()

        async def stream() -> list[object]:
            steps = []
            async with contextlib.aclosing(self.runtime.complete(self.request(tokens))) as given:
                async for step in given:
                    steps.append(step)
                    if isinstance(step, Text):
                        flowing.set()
            return steps

        task = asyncio.create_task(stream())
        await flowing.wait()
        return None, task


@contextlib.asynccontextmanager
async def running(home: Path, model: Path) -> AsyncIterator[Stage]:
    place = Home(home)
    place.prepare()
    stage = Stage(place, model)
    await stage.runtime.start()
    try:
        async with asyncio.timeout(120):
            yield stage
    finally:
        await stage.runtime.close()
        commands = [" ".join(child.cmdline()) for child in psutil.Process().children()]
        assert not [command for command in commands if "octavo.core" in command]


def on_stage(home: Path, model: Path, play: Callable[[Stage], Awaitable[None]]) -> None:
    async def run() -> None:
        async with running(home, model) as stage:
            await play(stage)

    asyncio.run(run())


def test_c10_eight_first_requests_share_one_load(octavo_home: Path, smollm2: Path) -> None:
    async def play(stage: Stage) -> None:
        done = await asyncio.gather(*(stage.complete() for _ in range(8)))
        assert [one.completion_tokens for one in done] == [4] * 8
        assert len(stage.told(LoadStarted)) == len(stage.told(ModelLoaded)) == 1
        (instance,) = stage.runtime.instances()
        assert (instance.model, instance.active, instance.queued) == (NAME, 0, 0)

    on_stage(octavo_home, smollm2, play)


def test_a_waiter_is_told_how_far_the_load_is(octavo_home: Path, smollm2: Path) -> None:
    async def play(stage: Stage) -> None:
        steps = [step async for step in stage.runtime.complete(stage.request(1))]
        shares = [step.share for step in steps if isinstance(step, Loading)]
        assert shares
        assert shares == sorted(shares)

    on_stage(octavo_home, smollm2, play)


def test_c10_ttl_counts_from_the_end_of_the_last_request(octavo_home: Path, smollm2: Path) -> None:
    async def play(stage: Stage) -> None:
        await stage.runtime.load("SmolLM2", ttl_s=1.0)
        _, stream = await stage.first_text(150)
        while not stream.done():  # busy for longer than its TTL
            assert stage.runtime.instances()[0].state == "ready"
            await asyncio.sleep(0.1)
        assert isinstance(stream.result()[-1], Finished)
        while stage.runtime.instances():
            await asyncio.sleep(0.05)
        (event,) = stage.told(ModelUnloaded)
        assert event.came_back
        assert event.freed_bytes > 10_000_000

    on_stage(octavo_home, smollm2, play)


def test_c10_unloading_ends_a_stream_with_an_error(octavo_home: Path, smollm2: Path) -> None:
    async def play(stage: Stage) -> None:
        _, stream = await stage.first_text(800)
        pid = stage.runtime.instances()[0].pid
        event = await stage.runtime.unload(NAME)
        with pytest.raises(ModelWasUnloaded):
            await stream
        assert event.came_back
        assert not psutil.pid_exists(pid or 0)
        assert stage.runtime.instances() == []

    on_stage(octavo_home, smollm2, play)


def test_c08_a_crash_is_told_and_the_next_request_starts_anew(octavo_home: Path, smollm2: Path) -> None:
    async def play(stage: Stage) -> None:
        for crash in range(2):
            _, stream = await stage.first_text(800)
            os.kill(stage.runtime.instances()[0].pid or 0, signal.SIGKILL)
            with pytest.raises(WorkerCrashed, match="signal 9"):
                await stream
            assert len(stage.told(WorkerDied)) == crash + 1
            status = stage.runtime.instances()[0]
            assert status.state == "crashed"
            assert status.error is not None
            assert "signal 9" in status.error.message
        assert (await stage.complete()).completion_tokens == 4
        assert len(stage.told(LoadStarted)) == 3

    on_stage(octavo_home, smollm2, play)


def test_c09_the_last_waiter_that_leaves_calls_the_load_off(octavo_home: Path, smollm2: Path) -> None:
    async def play(stage: Stage) -> None:
        one, two = (asyncio.create_task(stage.complete()) for _ in range(2))
        while not stage.told(LoadStarted):
            await asyncio.sleep(0.01)
        one.cancel()
        assert (await two).completion_tokens == 4  # somebody still waited
        await stage.runtime.unload(NAME)
        three = asyncio.create_task(stage.complete())
        while len(stage.told(LoadStarted)) < 2:
            await asyncio.sleep(0.01)
        three.cancel()
        with pytest.raises(asyncio.CancelledError):
            await three
        assert stage.runtime.instances() == []
        assert len(stage.told(LoadEnded)) == 1
        assert (await stage.complete()).completion_tokens == 4

    on_stage(octavo_home, smollm2, play)


def test_an_unload_during_a_load_ends_all_who_wait(octavo_home: Path, smollm2: Path) -> None:
    async def play(stage: Stage) -> None:
        waiting = asyncio.create_task(stage.complete())
        while not stage.told(LoadStarted):
            await asyncio.sleep(0.01)
        await stage.runtime.unload(NAME)
        with pytest.raises(Cancelled):
            await waiting

    on_stage(octavo_home, smollm2, play)


def test_a_model_goes_with_its_window_but_not_while_it_answers(octavo_home: Path, smollm2: Path) -> None:
    async def play(stage: Stage) -> None:
        await stage.runtime.load("SmolLM2", holder="window-1")
        _, stream = await stage.first_text(60)
        await stage.runtime.release("window-1")
        assert isinstance((await stream)[-1], Finished)
        while stage.runtime.instances():
            await asyncio.sleep(0.05)

    on_stage(octavo_home, smollm2, play)


def test_what_two_windows_hold_stays_until_both_are_gone(octavo_home: Path, smollm2: Path) -> None:
    async def play(stage: Stage) -> None:
        await stage.runtime.load("SmolLM2", holder="window-1")
        await stage.runtime.load("SmolLM2", holder="window-2")
        await stage.runtime.release("window-1")
        assert len(stage.runtime.instances()) == 1
        await stage.runtime.release("window-2")
        assert stage.runtime.instances() == []

    on_stage(octavo_home, smollm2, play)


def test_a_window_does_not_keep_what_was_loaded_on_demand(octavo_home: Path, smollm2: Path) -> None:
    async def play(stage: Stage) -> None:
        await stage.complete()
        ttl = stage.runtime.instances()[0].ttl_s
        status = await stage.runtime.load("SmolLM2", holder="window-1")
        assert status.ttl_s == ttl == stage.settings.current.server.ttl_s
        await stage.runtime.release("window-1")
        assert stage.runtime.instances()[0].state == "ready"
        assert (await stage.runtime.load("SmolLM2")).ttl_s is None  # asked for by name: it stays

    on_stage(octavo_home, smollm2, play)


def test_other_settings_load_it_anew_unless_it_is_busy(octavo_home: Path, smollm2: Path) -> None:
    async def play(stage: Stage) -> None:
        first = await stage.runtime.load("SmolLM2", {"context": 512})
        assert (await stage.runtime.load("SmolLM2")).pid == first.pid
        second = await stage.runtime.load("SmolLM2", {"context": 768})
        assert (second.context, second.reasons["context"]) == (768, "this request")
        _, stream = await stage.first_text(400)
        with pytest.raises(InstanceBusy):
            await stage.runtime.load("SmolLM2", {"context": 512})
        stream.cancel()

    on_stage(octavo_home, smollm2, play)


def test_the_queue_has_an_end(octavo_home: Path, smollm2: Path) -> None:
    async def play(stage: Stage) -> None:
        stage.settings.change("server", queue_limit=1)
        stage.settings.change("loading", defaults={**SMALL, "slots": 1})
        _, stream = await stage.first_text(400)
        queued = asyncio.create_task(stage.complete())
        while not stage.runtime.instances()[0].queued:
            await asyncio.sleep(0.01)
        with pytest.raises(QueueFull) as caught:
            await stage.complete()
        assert caught.value.details["retry_after_s"]
        stream.cancel()
        assert (await queued).completion_tokens == 4

    on_stage(octavo_home, smollm2, play)


def test_two_turns_reuse_the_first(octavo_home: Path, smollm2: Path) -> None:
    async def play(stage: Stage) -> None:
        said = Message("user", "Name a colour.")
        text, last = "", None
        request = ChatRequest(
            model="SmolLM2", messages=[said], sampling=Sampling(temperature=0), max_tokens=12
        )
        async for step in stage.runtime.chat(request):
            text, last = text + (step.text if isinstance(step, Text) else ""), step
        assert isinstance(last, Finished)
        turns = [said, Message("assistant", text), Message("user", "Another one.")]
        request = ChatRequest(model="SmolLM2", messages=turns, sampling=Sampling(temperature=0), max_tokens=4)
        async for step in stage.runtime.chat(request):
            again = step
        assert isinstance(again, Finished)
        assert again.cached_tokens >= last.prompt_tokens

    on_stage(octavo_home, smollm2, play)


def test_c13_fast_is_tried_in_a_child_and_a_refusal_is_remembered(
    octavo_home: Path, smollm2: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker that dies of SIGILL stands for a processor that refuses what its flags promise."""

    async def play(stage: Stage) -> None:
        dies = [sys.executable, "-c", "import os, signal; os.kill(os.getpid(), signal.SIGILL)"]
        programs = iter([dies, engine_client.worker_program()])
        monkeypatch.setattr(engine_client, "worker_program", lambda: next(programs))
        status = await stage.runtime.load("SmolLM2", {"repack": True})
        assert status.config["repack"] is False
        assert any("does not fit this CPU" in note for note in status.notes)
        assert "SIGILL" in SettingsFile(Home(octavo_home).settings).current.loading.fast_refused

    on_stage(octavo_home, smollm2, play)


def test_fast_that_works_is_used(octavo_home: Path, smollm2: Path) -> None:
    async def play(stage: Stage) -> None:
        assert (await stage.runtime.load("SmolLM2", {"repack": True})).config["repack"] is True

    on_stage(octavo_home, smollm2, play)


def test_what_is_wrong_is_refused_before_a_worker_starts(octavo_home: Path, smollm2: Path) -> None:
    async def play(stage: Stage) -> None:
        with pytest.raises(InvalidConfig):
            await stage.runtime.load("SmolLM2", {"context": 3})
        with pytest.raises(ModelNotFound):
            await stage.runtime.load("no-such-model")
        with pytest.raises(ModelNotFound):
            await stage.runtime.unload("nothing")
        stage.settings.change("server", jit=False)
        with pytest.raises(ModelNotFound, match="on demand"):
            await stage.complete()
        assert stage.told(LoadStarted) == []

    on_stage(octavo_home, smollm2, play)
