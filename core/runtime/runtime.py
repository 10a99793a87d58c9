"""Loads models, hands requests to their workers, and unloads what is not needed any more."""

import asyncio
import contextlib
import itertools
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from typing import Protocol

import msgspec
import psutil

from octavo.core.config.load_config import Resolved
from octavo.core.config.paths import Home
from octavo.core.config.settings import SettingsFile
from octavo.core.engine.protocol import Ready
from octavo.core.errors import InstanceBusy, ModelNotFound, ServiceUnavailable
from octavo.core.events import FiguresSampled, InstanceStatus, ModelUnloaded, Publish
from octavo.core.library.models import Model
from octavo.core.memory.budget import Claim
from octavo.core.memory.types import Report
from octavo.core.prompts.messages import Segment
from octavo.core.prompts.template import Templates
from octavo.core.runtime.answers import Answers
from octavo.core.runtime.assess import Assessor
from octavo.core.runtime.attribution import Stopwatch
from octavo.core.runtime.defaults import is_fitted
from octavo.core.runtime.fast import FastMode
from octavo.core.runtime.instance import Instance, checked_name
from octavo.core.runtime.observer import Observer
from octavo.core.runtime.requests import ChatRequest, CompletionRequest, Step
from octavo.core.runtime.room import Room, claim_of

TICK_S = 0.25
QUIET_TICKS = 8  # while nothing runs, figures are told every 2 s


class Models(Protocol):
    """What the runtime needs of the library; ``Catalog`` in core/library."""

    def find(self, name: str, *, allow_path: bool = True) -> Model:
        """Find a model by id, part of one, or path; raises ``ModelNotFound`` or ``AmbiguousModel``."""
        ...

    def models(self) -> list[Model]:
        """List the library."""
        ...


class Runtime:
    """Owner of the workers. All methods are called on the service's event loop, on its main thread."""

    def __init__(self, home: Home, catalog: Models, settings: SettingsFile, publish: Publish) -> None:
        self._home = home
        self._catalog = catalog
        self._settings = settings
        self._publish = publish
        self._instances: dict[str, Instance] = {}
        self._templates = Templates()
        self._answers = Answers(settings, self._templates)
        self._fast = FastMode(settings, home)
        self.assessor = Assessor(home, settings)
        instances = self._instances
        self.observer = Observer(lambda: list(instances.values()), publish)
        self._room = Room(self.assessor, settings, lambda: list(instances.values()), self._end, publish)
        self._notes: set[asyncio.Task[None]] = set()
        self._clock: asyncio.Task[None] | None = None
        self._is_closing = False

    async def start(self) -> None:
        """Start the template helper and the clocks of TTLs, figures and memory."""
        await self._templates.start()
        await self.observer.start()
        self._clock = asyncio.create_task(self._tick(), name="runtime clock")

    async def close(self) -> None:
        """End all workers and helpers; what runs ends with an error."""
        self._is_closing = True
        if self._clock is not None:
            self._clock.cancel()
        await self.observer.close()
        await asyncio.gather(
            *(self._end(instance, "the service stops") for instance in list(self._instances.values()))
        )
        await self._templates.close()

    # ---- loading

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
        """Load a model and wait until it answers; cancelling the call cancels the load.

        ``holder`` is the lease (a window) with which the model goes again; None keeps it until unloaded or
        its TTL. A model that is loaded with other settings is loaded anew, unless it is busy
        (``InstanceBusy``). Raises ``InsufficientMemory`` for what would not run, unless ``force`` is given.
        """
        found = await self._find(model, allow_path)
        name = checked_name(instance) if instance else found.id
        resolved = await self._resolve(found, fields or {}, name)
        loaded = await self._replace_or_reuse(name, found, resolved, says_fields=bool(fields))
        is_new = loaded is None
        if loaded is None:
            known = self._instances.get
            loaded, is_new = await self._begin_with_room(
                name, found, resolved, None, lambda: known(name), force=force
            )
        loaded.keep_for(holder, ttl_s, is_new=is_new)
        await self._loaded(loaded)
        return loaded.status()

    async def estimate(
        self,
        model: str,
        fields: Mapping[str, object] | None = None,
        *,
        budget_bytes: int | None = None,
        allow_path: bool = False,
    ) -> tuple[Model, Report]:
        """Say what a load with these settings would need and what would come of it; loads nothing.

        ``budget_bytes`` stands for another machine's memory.
        """
        found = await self._find(model, allow_path)

        def work() -> Report:
            others = self._catalog.models()
            return self.assessor.assess(found, fields or {}, claims, budget_bytes=budget_bytes, others=others)

        claims = self._claims(found.id)
        return found, await asyncio.to_thread(work)

    def claims(self) -> list[Claim]:
        """Give what all that is loaded needs, for a budget beside it."""
        return self._claims("")

    async def unload(self, instance: str) -> ModelUnloaded:
        """End an instance now; its streams end with an error. Raises ``ModelNotFound``."""
        return await self._end(self._named(instance), "unloaded")

    async def release(self, holder: str) -> None:
        """Let go of what only this lease had loaded: it is unloaded as soon as it is idle."""
        for instance in list(self._instances.values()):
            if holder in instance.holders:
                instance.holders.discard(holder)
                if not instance.holders:
                    instance.goes_when_idle = True
                    await self._end_if_overdue(instance)

    def instances(self) -> list[InstanceStatus]:
        """Give what is loaded, loading, or has crashed."""
        return [instance.status() for instance in self._instances.values()]

    # ---- answering

    def chat(self, request: ChatRequest) -> AsyncGenerator[Step, None]:
        """Answer a conversation; closing the generator cancels the request within one decode step."""
        return self._serve(request)

    def complete(self, request: CompletionRequest) -> AsyncGenerator[Step, None]:
        """Continue a raw prompt; closing the generator cancels the request."""
        return self._serve(request)

    async def tokenize(self, model: str, text: str) -> list[int]:
        """Turn text into token ids of a loaded or loadable model; control tokens count as such."""
        instance = await self._ensure(model, None, allow_path=False)
        await self._loaded(instance)
        assert instance.engine is not None
        return await instance.engine.tokenize([Segment(text, True)])

    def figures(self) -> FiguresSampled:
        """Sample memory and speed of all instances now."""
        memory = psutil.virtual_memory()
        return FiguresSampled(
            at=time.time(),
            instances=[instance.figures() for instance in self._instances.values()],
            memory_total_bytes=memory.total,
            memory_available_bytes=memory.available,
        )

    # ---- finding and starting

    async def _find(self, name: str, allow_path: bool) -> Model:
        model = await asyncio.to_thread(self._catalog.find, name, allow_path=allow_path)
        model.require_sound()
        return model

    async def _resolve(self, model: Model, fields: Mapping[str, object], name: str) -> Resolved:
        resolved = await asyncio.to_thread(self.assessor.resolve, model, fields, self._claims(name))
        return await self._fast.checked(model, resolved)

    def _claims(self, name: str) -> list[Claim]:
        """Give what all instances but the one of this name need."""
        return [claim_of(one) for one in self._instances.values() if one.name != name]

    def _named(self, name: str) -> Instance:
        instance = self._instances.get(name)
        if instance is None:
            loaded = list(self._instances)
            raise ModelNotFound(
                f"Nothing is loaded under the name {name!r}.",
                hint="octavo ps lists what is.",
                candidates=loaded,
            )
        return instance

    async def _replace_or_reuse(
        self, name: str, model: Model, resolved: Resolved, *, says_fields: bool
    ) -> Instance | None:
        """Give the instance of that name if it can serve; end it if it was loaded with other settings."""
        known = self._instances.get(name)
        if known is None:
            return None
        is_same = known.model.path == model.path and _means_the_same(known.resolved, resolved)
        if is_same or (not says_fields and known.model.path == model.path):
            return known
        if known.is_busy:
            raise InstanceBusy(f"{name} is answering; its settings can't change now.", hint="Try again soon.")
        await self._end(known, "loaded anew with other settings")
        return None

    async def _ensure(self, name: str, ttl_s: float | None, *, allow_path: bool) -> Instance:
        """Give the instance that serves ``name``, starting one when none does."""
        known = self._serving(name)
        while known is not None and known.state == "unloading":
            await known.ended.wait()
            known = self._serving(name)
        if known is not None:
            await self._make_room_again(known)
            return known
        if not self._settings.current.server.jit and not allow_path:
            raise ModelNotFound(
                f"{name!r} is not loaded, and loading on demand is off.",
                hint="Load it first.",
                candidates=list(self._instances),
            )
        model = await self._find(name, allow_path)
        resolved = await self._resolve(model, {}, model.id)
        ttl_s = ttl_s or self._settings.current.server.ttl_s or None
        begun, _ = await self._begin_with_room(
            model.id, model, resolved, ttl_s, lambda: self._serving(model.id)
        )
        return begun

    def _serving(self, name: str) -> Instance | None:
        return self._instances.get(name) or self._by_model(name)

    def _by_model(self, model: str) -> Instance | None:
        return next((known for known in self._instances.values() if known.model.id == model), None)

    async def _begin_with_room(
        self,
        name: str,
        model: Model,
        resolved: Resolved,
        ttl_s: float | None,
        known: Callable[[], Instance | None],
        *,
        force: bool = False,
    ) -> tuple[Instance, bool]:
        """Start a load once there is room for it; gives the instance, and whether it is new.

        Meanwhile another request may have been faster: then ``known`` gives what it started.
        """
        async with self._room.turn:
            if (faster := known()) is not None and faster.state != "unloading":
                return faster, False
            report = await self._room.make(model, resolved.config, name=name, force=force)
            return self._begin(name, model, resolved, ttl_s, report), True

    async def _make_room_again(self, crashed: Instance) -> None:
        """See that a model that crashed finds room again, before its next use starts it."""
        if crashed.state != "crashed":
            return
        async with self._room.turn:
            was_forced = crashed.report is not None and crashed.report.verdict.kind == "wont_run"
            config = crashed.resolved.config
            await self._room.make(crashed.model, config, name=crashed.name, force=was_forced)

    def _begin(
        self, name: str, model: Model, resolved: Resolved, ttl_s: float | None, report: Report
    ) -> Instance:
        if self._is_closing:
            raise ServiceUnavailable("The service is stopping.")
        instance = Instance(name, model, resolved, ttl_s, self._home.logs, self._publish)
        instance.report = report
        self._instances[name] = instance
        instance.launch().add_done_callback(lambda _: self._after_load(instance))
        return instance

    def _after_load(self, instance: Instance) -> None:
        self._forget_if_never_loaded(instance)
        if instance.ready is None or instance.engine is None:
            return
        noted = asyncio.create_task(self._note_load(instance, instance.engine.log_lines(), instance.ready))
        self._notes.add(noted)
        noted.add_done_callback(self._notes.discard)

    async def _note_load(self, instance: Instance, log: list[str], ready: Ready) -> None:
        instance.memory.actual = await asyncio.to_thread(
            self.assessor.note_load, instance.model, instance.resolved.config, log, ready.anonymous_bytes
        )

    def _forget_if_never_loaded(self, instance: Instance) -> None:
        if instance.ready is None:
            self._forget(instance)

    def _forget(self, instance: Instance) -> None:
        self.observer.forget(instance)
        if self._instances.get(instance.name) is instance:
            del self._instances[instance.name]

    async def _loaded(self, instance: Instance) -> None:
        async with contextlib.aclosing(instance.wait_loaded()) as shares:
            async for _ in shares:
                pass

    async def _serve(self, request: ChatRequest | CompletionRequest) -> AsyncGenerator[Step, None]:
        known = self._serving(request.model)
        watch = Stopwatch(was_ready=known is not None and known.state == "ready")
        instance = await self._ensure(request.model, request.ttl_s, allow_path=request.allow_path)
        async with contextlib.aclosing(self._answers.answer(instance, request, watch)) as steps:
            async for step in steps:
                yield step

    # ---- ending

    async def _end(self, instance: Instance, reason: str) -> ModelUnloaded:
        event = await instance.end(reason)
        self._forget(instance)
        return event

    async def _end_if_overdue(self, instance: Instance) -> None:
        if instance.is_overdue:
            await self._end(instance, "its window closed" if instance.goes_when_idle else "idle for its TTL")

    async def _tick(self) -> None:
        """Unload what is overdue and tell the figures, often while something runs."""
        for tick in itertools.count():
            await asyncio.sleep(TICK_S)
            for instance in list(self._instances.values()):
                await self._end_if_overdue(instance)
            if tick % QUIET_TICKS == 0 or any(instance.is_busy for instance in self._instances.values()):
                self._publish(self.figures())


def _means_the_same(loaded: Resolved, wished: Resolved) -> bool:
    """Compare settings; a context that nobody said stays as it was fitted when the model was loaded."""
    config = wished.config
    if is_fitted(wished) and is_fitted(loaded):
        config = msgspec.structs.replace(config, context=loaded.config.context)
    return loaded.config == config
