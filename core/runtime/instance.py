"""One model that is loaded, or being loaded: its worker, who uses it, and until when."""

import asyncio
import re
import time
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Literal

import msgspec
import psutil

from octavo.core.config.load_config import Resolved
from octavo.core.engine.client import Engine
from octavo.core.engine.protocol import Ready
from octavo.core.errors import Cancelled, InvalidRequest, OctavoError
from octavo.core.events import (
    InstanceFigures,
    InstanceState,
    InstanceStatus,
    LoadEnded,
    LoadProgressed,
    LoadStarted,
    ModelLoaded,
    ModelUnloaded,
    Publish,
    WorkerDied,
)
from octavo.core.library.models import Model
from octavo.core.memory.types import Report
from octavo.core.prompts.builtin import Choice, choose
from octavo.core.runtime.memory_log import MemoryLog
from octavo.core.runtime.placing import identities, load_command
from octavo.core.runtime.requests import Loading

MEMORY_BACK_DEADLINE_S = 5.0
LONGEST_NAME = 200
UNLOCKED = "The weights are not locked in memory: the system allows too little (ulimit -l). The model works."


class Instance:
    """A model under a name of its own; lives on after a crash, so that its next use starts it again."""

    def __init__(
        self, name: str, model: Model, resolved: Resolved, ttl_s: float | None, logs: Path, publish: Publish
    ) -> None:
        self.name = name
        self.model = model
        self.resolved = resolved
        self.ttl_s = ttl_s
        self.state: InstanceState = "loading"
        self.engine: Engine | None = None
        self.ready: Ready | None = None
        self.template: Choice | None = None
        self.holders: set[str] = set()
        self.goes_when_idle = False
        self.is_pinned = False
        self.report: Report | None = None
        self.file_identities: list[tuple[int, int]] = []
        self.memory = MemoryLog(name, model.id, model.size_bytes, publish)
        self.ended = asyncio.Event()
        self.running = 0
        self.queued = 0
        self.idle_since = time.monotonic()
        self._share = 0.0
        self._error: OctavoError | None = None
        self._load_task: asyncio.Task[None] | None = None
        self._load_waiters = 0
        self._changed = asyncio.Event()
        self._logs = logs
        self._publish = publish
        self._speed = Speed()

    @property
    def is_busy(self) -> bool:
        """A request is running or waiting here."""
        return self.running + self.queued > 0

    @property
    def fault(self) -> str:
        """Why it crashed; empty unless it did."""
        return self._error.message if self._error and self.state == "crashed" else ""

    @property
    def is_overdue(self) -> bool:
        """Nobody uses it and its time is up."""
        if self.is_busy or self.state != "ready":
            return False
        return self.goes_when_idle or (self.ttl_s is not None and self.idle_s >= self.ttl_s)

    @property
    def idle_s(self) -> float:
        """Seconds since the last request ended; 0 while one is running."""
        return 0.0 if self.is_busy else time.monotonic() - self.idle_since

    def keep_for(self, holder: str | None, ttl_s: float | None, *, is_new: bool) -> None:
        """Note who wants it: a lease, with whose last it goes, or somebody by name: it stays, or has a TTL.

        A lease changes nothing for a model that was loaded by name or on demand before.
        """
        if holder is None:
            self.holders.clear()
            self.ttl_s = ttl_s if ttl_s is not None else self.resolved.config.ttl_s
        elif is_new or self.holders or self.goes_when_idle:
            self.holders.add(holder)
            self.ttl_s = ttl_s if ttl_s is not None else self.ttl_s
        self.goes_when_idle = False

    # ---- loading

    def launch(self) -> "asyncio.Task[None]":
        """Start the one load that all waiters share, and give it."""
        self.state, self._error, self._share = "loading", None, 0.0
        self._load_task = asyncio.create_task(self._load(), name=f"load {self.name}")
        self._load_task.add_done_callback(_retrieve)
        return self._load_task

    async def wait_loaded(self) -> AsyncGenerator[Loading, None]:
        """Wait until the model answers, telling how far the load is; after a crash, load it again first.

        The last waiter that goes away calls the load off. Raises what the load failed with.
        """
        if self.state == "crashed":
            self.launch()
        task = self._load_task
        if self.state == "ready" or task is None:
            return
        self._load_waiters += 1
        try:
            while not task.done():
                yield Loading(self.name, self._share)
                await self._next_change(task)
            if task.cancelled():
                raise Cancelled(f"The load of {self.name} was called off.", hint="Load it again.")
            task.result()
        finally:
            self._load_waiters -= 1
            if self._load_waiters == 0:
                await self._call_off()

    async def end(self, reason: str) -> ModelUnloaded:
        """End the worker, see that its memory came back, and say so."""
        private = memory_of(self.engine.pid)[1] if self.engine else 0
        self.state = "unloading"
        await self._call_off()
        if self.engine is not None:
            await self.engine.stop()
        event = ModelUnloaded(
            instance=self.name,
            model=self.model.id,
            reason=reason,
            freed_bytes=private,
            came_back=await _is_gone(self.engine.pid if self.engine else None),
        )
        self.ended.set()
        self._publish(event)
        return event

    async def _load(self) -> None:
        started = time.monotonic()
        self._publish(LoadStarted(instance=self.name, model=self.model.id))
        self.engine = None  # of one that crashed, nothing is left to ask
        try:
            self.ready = await self._start()
        except BaseException as fault:
            self._note_failure(fault)
            raise
        self.state, self._share, self.idle_since = "ready", 1.0, time.monotonic()
        seconds = time.monotonic() - started
        self._publish(
            ModelLoaded(instance=self.name, model=self.model.id, context=self.ready.context, load_s=seconds)
        )
        self._wake()

    async def _start(self) -> Ready:
        """Start a worker and prepare what its answers need."""
        path, config = self.model.path, self.resolved.config
        command = await asyncio.to_thread(load_command, path, config, self.report)
        self.file_identities = identities(command.files)
        engine = self.engine = Engine(command, self._logs / _log_name(self.name), self._note_share)
        engine.on_given_back = self.memory.note_given_back
        ready = await engine.start()
        self.template = self._choose_template(ready)
        self._note_unlocked(engine)
        engine.on_death = self._note_death
        self.memory.note_lock(config, engine.log_lines())
        return ready

    def _note_unlocked(self, engine: Engine) -> None:
        """Say so when the system refused to lock the weights in memory; llama.cpp only logs it."""
        if any("failed to mlock" in line for line in engine.log_lines()):
            notes = [*self.resolved.notes, UNLOCKED]
            self.resolved = msgspec.structs.replace(self.resolved, notes=notes)

    def _choose_template(self, ready: Ready) -> Choice:
        description = self.model.description
        architecture = (description.architecture if description else None) or ""
        return choose(architecture, ready.control_tokens, description.chat_template if description else None)

    async def _next_change(self, task: "asyncio.Task[None]") -> None:
        change = asyncio.ensure_future(self._changed.wait())
        try:
            await asyncio.wait({task, change}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            change.cancel()

    async def _call_off(self) -> None:
        if self._load_task is not None and not self._load_task.done():
            self._load_task.cancel()
            await asyncio.wait({self._load_task})

    def _note_share(self, share: float) -> None:
        self._share = share
        self._publish(LoadProgressed(instance=self.name, model=self.model.id, share=share))
        self._wake()

    def _note_failure(self, fault: BaseException) -> None:
        error = fault if isinstance(fault, OctavoError) else Cancelled("The load was called off.")
        self.state, self._error = "crashed", error
        self._publish(LoadEnded(instance=self.name, model=self.model.id, error=error.report()))
        self._wake()

    def _note_death(self, death: OctavoError) -> None:
        self.state, self._error = "crashed", death
        self.memory.change_pin(None)
        self._publish(WorkerDied(instance=self.name, model=self.model.id, error=death.report()))

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    # ---- as values

    def status(self) -> InstanceStatus:
        """Give the instance as a value."""
        return InstanceStatus(
            instance=self.name,
            model=self.model.id,
            state=self.state,
            share=self._share,
            pid=self.engine.pid if self.engine and self.state != "crashed" else None,
            context=self.ready.context if self.ready else 0,
            config=msgspec.to_builtins(self.resolved.config),
            reasons=self.resolved.reasons,
            notes=self.resolved.notes,
            ttl_s=self.ttl_s,
            stays=self.ttl_s is None and not self.holders and not self.goes_when_idle,
            idle_s=self.idle_s,
            active=self.running,
            queued=self.queued,
            error=self._error.report() if self._error else None,
        )

    def figures(self) -> InstanceFigures:
        """Sample what it uses now; a worker that is gone uses nothing."""
        rss, private = memory_of(self.engine.pid) if self.engine else (0, 0)
        counted = self.engine.figures if self.engine else None
        return InstanceFigures(
            instance=self.name,
            model=self.model.id,
            rss_bytes=rss,
            private_bytes=private,
            file_bytes=rss - private,
            kv_used=counted.kv.used_cells if counted else 0,
            kv_size=self.ready.kv_size if self.ready else 0,
            tokens_per_s=self._speed.after(counted.tokens_total if counted else 0),
            active=self.running,
            queued=self.queued,
        )


class Visit:
    """One request at an instance: waiting, then running, then gone."""

    def __init__(self, instance: Instance) -> None:
        self._instance = instance
        self._stage: Literal["queued", "running", "gone"] = "queued"
        instance.queued += 1

    def note_started(self) -> None:
        """It has a slot."""
        self._move("running")

    def leave(self) -> None:
        """It ended, however it did; the clock of idleness starts anew."""
        self._move("gone")
        self._instance.idle_since = time.monotonic()

    def _move(self, stage: Literal["running", "gone"]) -> None:
        self._instance.queued -= self._stage == "queued"
        self._instance.running += (stage == "running") - (self._stage == "running")
        self._stage = stage


class Speed:
    """Tokens per second between two looks that are at least a second apart."""

    def __init__(self) -> None:
        self._at = time.monotonic()
        self._count = 0
        self._value = 0.0

    def after(self, count: int) -> float:
        """Give the speed now that ``count`` tokens were made in all."""
        now = time.monotonic()
        if count < self._count:  # the worker was started anew
            self._count = count
        if now - self._at >= 1:
            self._value = (count - self._count) / (now - self._at)
            self._at, self._count = now, count
        return self._value


def checked_name(name: str) -> str:
    """Give a name to load a model under; raises ``InvalidRequest`` for one that can't be shown or typed."""
    if not name.isprintable() or not name.strip() or len(name) > LONGEST_NAME:
        raise InvalidRequest(
            f"A model can't be loaded under that name: it takes up to {LONGEST_NAME} printable characters.",
            hint="Choose another identifier.",
            param="identifier",
        )
    return name


def memory_of(pid: int | None) -> tuple[int, int]:
    """Give (resident, private) bytes of a process; zeros when it is gone.

    Private is resident less file-backed.
    """
    if pid is None:
        return 0, 0
    try:
        memory = psutil.Process(pid).memory_info()
    except psutil.Error:
        return 0, 0
    return memory.rss, memory.rss - min(getattr(memory, "shared", 0), memory.rss)


def _log_name(instance: str) -> Path:
    """Give the file name of a worker's log: the instance's name without what a file system may refuse."""
    return Path(f"worker-{re.sub(r'[^A-Za-z0-9._-]+', '-', instance)[:80]}.log")


async def _is_gone(pid: int | None) -> bool:
    """Tell whether a worker's process, and with it all its memory, is gone within the deadline."""
    deadline = time.monotonic() + MEMORY_BACK_DEADLINE_S
    while memory_of(pid)[0] > 0:
        if time.monotonic() > deadline:
            return False
        await asyncio.sleep(0.02)
    return True


def _retrieve(task: "asyncio.Task[None]") -> None:
    """Take note of a load's failure, which is told by an event, also when nobody waits any more."""
    if not task.cancelled():
        task.exception()
