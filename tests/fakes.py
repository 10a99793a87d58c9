"""Stand-ins with the real signatures: a runtime that answers from a script, without a model or a process."""

import asyncio
import time
from collections.abc import AsyncGenerator, Mapping, Sequence

from octavo.core.config.paths import Home
from octavo.core.config.settings import SettingsFile
from octavo.core.engine.protocol import Finished, FinishReason, Prefilled, Started, Text, Timings
from octavo.core.errors import ModelNotFound
from octavo.core.events import (
    FiguresSampled,
    InstanceStatus,
    LoadProgressed,
    LoadStarted,
    ModelLoaded,
    ModelUnloaded,
    Publish,
)
from octavo.core.runtime.requests import ChatRequest, CompletionRequest, Loading, Serving, Step
from tests.fake_observer import FakeObserver

Script = Sequence[str | float | Exception | asyncio.Event | Step]

MODEL = "acme/fake"
CONTEXT = 2048
SLOW_S = 1.0


class FakeRuntime:
    """A runtime whose answers are scripts.

    A script's texts become text, its numbers seconds of waiting, its events waiting until they are
    set; errors are raised, and other steps given as they are. The model ``slow`` waits after each step.
    ``refusal`` is raised before anything else.
    """

    def __init__(self, home: Home, catalog: object, settings: SettingsFile, publish: Publish) -> None:
        self.script: Script = ["Hel", "lo"]
        self.reason: FinishReason = "stop"
        self.cached_tokens = 0
        self.refusal: Exception | None = None
        self.load_wait: asyncio.Event | None = None
        self.requests: list[ChatRequest | CompletionRequest] = []
        self.loads: list[tuple[str, dict[str, object], str | None]] = []
        self.cancelled = 0
        self.cancelled_at = 0.0
        self.released: list[str] = []
        self.active = 0
        self.is_closed = False
        self._publish = publish
        self._loaded: dict[str, InstanceStatus] = {}
        self.observer = FakeObserver(self.instances, publish)

    async def start(self) -> None:
        """Start nothing."""

    async def close(self) -> None:
        """Note the end."""
        self.is_closed = True

    async def load(
        self,
        model: str,
        fields: Mapping[str, object] | None = None,
        *,
        instance: str | None = None,
        ttl_s: float | None = None,
        holder: str | None = None,
        allow_path: bool = False,
        force: bool = False,
    ) -> InstanceStatus:
        """Load at once, or when ``load_wait`` is set."""
        if self.refusal:
            raise self.refusal
        name = instance or model
        self._publish(LoadStarted(instance=name, model=model))
        if self.load_wait is not None:
            try:
                await self.load_wait.wait()
            except asyncio.CancelledError:
                self.cancelled += 1
                raise
        self.loads.append((model, dict(fields or {}), holder))
        status = InstanceStatus(
            instance=name,
            model=model,
            state="ready",
            share=1.0,
            context=CONTEXT,
            ttl_s=ttl_s,
            stays=ttl_s is None and holder is None,
            pid=1,
        )
        self._loaded[name] = status
        self._publish(LoadProgressed(instance=name, model=model, share=1.0))
        self._publish(ModelLoaded(instance=name, model=model, context=CONTEXT, load_s=0.0))
        return status

    async def unload(self, instance: str) -> ModelUnloaded:
        """Forget an instance."""
        if instance not in self._loaded:
            raise ModelNotFound(f"{instance} is not loaded.", candidates=list(self._loaded))
        model = self._loaded.pop(instance).model
        event = ModelUnloaded(
            instance=instance, model=model, reason="unloaded", freed_bytes=1000, came_back=True
        )
        self._publish(event)
        return event

    async def release(self, holder: str) -> None:
        """Note which lease ended and unload what it had loaded."""
        self.released.append(holder)
        for model, _fields, held_by in list(self.loads):
            if held_by == holder and model in self._loaded:
                await self.unload(model)

    def instances(self) -> list[InstanceStatus]:
        """Give what is loaded."""
        return list(self._loaded.values())

    async def chat(self, request: ChatRequest) -> AsyncGenerator[Step, None]:
        """Answer from the script."""
        async for step in self._serve(request):
            yield step

    async def complete(self, request: CompletionRequest) -> AsyncGenerator[Step, None]:
        """Answer from the script."""
        async for step in self._serve(request):
            yield step

    async def tokenize(self, model: str, text: str) -> list[int]:
        """Make a token of each character."""
        return [ord(character) for character in text]

    def figures(self) -> FiguresSampled:
        """Give no figures."""
        return FiguresSampled(at=time.time(), instances=[], memory_total_bytes=2, memory_available_bytes=1)

    async def _serve(self, request: ChatRequest | CompletionRequest) -> AsyncGenerator[Step, None]:
        self.requests.append(request)
        if self.refusal:
            raise self.refusal
        self.active += 1
        try:
            async for step in self._steps():
                yield step
                if request.model == "slow":
                    await asyncio.sleep(SLOW_S)
        except (asyncio.CancelledError, GeneratorExit):
            self.cancelled += 1
            self.cancelled_at = time.monotonic()
            raise
        finally:
            self.active -= 1

    async def _steps(self) -> AsyncGenerator[Step, None]:
        yield Serving(MODEL, MODEL, CONTEXT)
        yield Started("r", 0, 10, self.cached_tokens, 0.0, 1)
        yield Prefilled("r", 10, 10)
        tokens = 0
        for part in self.script:
            match part:
                case str():
                    tokens += 1
                    yield Text("r", part, [tokens])
                case float() | int():
                    await asyncio.sleep(part)
                case asyncio.Event():
                    await part.wait()
                case Exception():
                    raise part
                case _:
                    yield part
        yield Finished("r", self.reason, 10, self.cached_tokens, tokens, Timings())


def loading(share: float) -> Loading:
    """Make the step of a load in progress."""
    return Loading(MODEL, share)
