"""Room for a load: idle models leave for it, busy ones are waited for, and what can't run is refused."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from octavo.core.config.load_config import LoadConfig
from octavo.core.config.settings import SettingsFile
from octavo.core.errors import InsufficientMemory
from octavo.core.events import ActionTaken, Publish
from octavo.core.library.models import Model
from octavo.core.memory.budget import Claim
from octavo.core.memory.types import Report, VerdictKind
from octavo.core.memory.verdict import gib
from octavo.core.runtime.assess import Assessor, staying
from octavo.core.runtime.instance import Instance, memory_of

POLL_S = 0.1
# a load that would have to page beside busy models waits so long at most before it does
WAIT_NOT_TO_PAGE_S = 15.0
_RANK: dict[VerdictKind, int] = {"resident": 0, "pages": 1, "wont_run": 2}

End = Callable[[Instance, str], Awaitable[object]]


class Room:
    """Makes room, one load after the other (``turn``), so that two never count on the same bytes."""

    def __init__(
        self,
        assessor: Assessor,
        settings: SettingsFile,
        instances: Callable[[], Sequence[Instance]],
        end: End,
        publish: Publish,
    ) -> None:
        self._assessor = assessor
        self._settings = settings
        self._instances = instances
        self._end = end
        self._publish = publish
        self.turn = asyncio.Lock()

    async def make(self, model: Model, config: LoadConfig, *, name: str, force: bool = False) -> Report:
        """Unload what must leave for this load and say what to expect of it.

        Idle models leave in the order of their last use, as few as the best verdict needs. A load that only
        busy models keep from running waits for them, for a while; one that would page, for a shorter while.
        Raises ``InsufficientMemory`` when it would not run, unless ``force`` is given or the person turned
        refusals off.
        """
        memory = self._settings.current.memory
        is_lenient = force or not memory.enforce
        started = time.monotonic()
        while True:
            others = self._others(name)
            claims = [claim_of(one) for one in others]
            goal = await self._report(model, config, claims)
            will_not_run = goal.verdict.kind == "wont_run" and not is_lenient
            patience = memory.wait_s if will_not_run else min(memory.wait_s, WAIT_NOT_TO_PAGE_S)
            is_over = time.monotonic() - started >= patience
            if is_over or not await self._gets_better(model, config, others, goal):
                break
            await asyncio.sleep(POLL_S)
        if will_not_run:
            raise refusal(model, await self._report(model, config, claims, advises=True))
        return await self._evict(model, config, name, goal)

    async def _evict(self, model: Model, config: LoadConfig, name: str, goal: Report) -> Report:
        """Unload idle models, the one that was used longest ago first, until the verdict is the best one."""
        while True:
            claims = staying([claim_of(one) for one in self._others(name)])
            now = await self._report(model, config, claims)
            leaving = next((one for one in by_last_use(self._others(name)) if may_leave(one)), None)
            # of a load that is forced in, nobody can say what is enough
            is_enough = now.verdict.kind != "wont_run" and _RANK[now.verdict.kind] <= _RANK[goal.verdict.kind]
            if is_enough or leaving is None:
                return now
            await self._end(leaving, f"made room for {model.id}")
            self._publish(ActionTaken(text=f"{leaving.name} was unloaded to make room for {model.id}."))

    def _others(self, name: str) -> list[Instance]:
        return [one for one in self._instances() if one.name != name]

    async def _gets_better(
        self, model: Model, config: LoadConfig, others: list[Instance], goal: Report
    ) -> bool:
        """Tell whether the verdict would be a better one once those that are busy or loading were idle."""
        if goal.verdict.kind == "resident" or all(one.is_pinned or may_leave(one) for one in others):
            return False
        everyone = [replace(claim_of(one), may_leave=not one.is_pinned) for one in others]
        later = await self._report(model, config, everyone)
        return _RANK[later.verdict.kind] < _RANK[goal.verdict.kind]

    async def _report(
        self, model: Model, config: LoadConfig, claims: list[Claim], *, advises: bool = False
    ) -> Report:
        def work() -> Report:
            budget = self._assessor.budget(claims)
            return self._assessor.report(model, config, budget, advises=advises)

        return await asyncio.to_thread(work)


def claim_of(instance: Instance) -> Claim:
    """Give what an instance needs; where that isn't known, what it has."""
    taken = memory_of(instance.engine.pid)[1] if instance.engine else 0
    report = instance.report
    if report is None or instance.state == "crashed":
        return Claim(taken, taken, may_leave=may_leave(instance))
    found = report.estimate
    mapped = found.hot_mapped_bytes + found.expert_bytes
    return Claim(found.private_bytes, taken, mapped, may_leave=may_leave(instance))


def may_leave(instance: Instance) -> bool:
    """Tell whether an instance may be unloaded for another: idle, loaded, and not pinned."""
    return instance.state == "ready" and not instance.is_busy and not instance.is_pinned


def by_last_use(instances: Sequence[Instance]) -> list[Instance]:
    """Order instances by the end of their last request, the longest ago first."""
    return sorted(instances, key=lambda one: one.idle_since)


def refusal(model: Model, report: Report) -> InsufficientMemory:
    """Make the error for a load that would not run."""
    needed, there = report.estimate.private_bytes, report.budget.budget_bytes
    best = next((one for one in report.suggestions if one.verdict != "wont_run"), None)
    helps = f"{best.title} would fit. " if best else ""
    return InsufficientMemory(
        f"{model.id} needs {gib(needed)} of memory for itself, and {gib(there)} can be had: "
        f"{report.verdict.inequality}.",
        hint=f"{helps}Choose a smaller context, or insist with force.",
        needed_bytes=needed,
        available_bytes=report.budget.available_bytes,
        budget_bytes=there,
        inequality=report.verdict.inequality,
    )
