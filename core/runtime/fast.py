"""Fast mode: weights repacked for the processor, proven by one token in a child before it is used.

Some virtual machines advertise instructions that they then refuse; the first decode dies with SIGILL. That
must happen to a trial, not to a conversation. A refusal is remembered in the settings, for this machine.
"""

import contextlib

import msgspec

from octavo.core.config.load_config import Resolved
from octavo.core.config.paths import Home
from octavo.core.config.settings import SettingsFile
from octavo.core.engine.client import Engine
from octavo.core.engine.protocol import Generate, Load, Sampling
from octavo.core.errors import WrongCpuBuild
from octavo.core.library.models import Model
from octavo.core.prompts.messages import Segment

TRIAL_CONTEXT = 256


class FastMode:
    """Decides whether ``repack`` may be used; remembers what was tried."""

    def __init__(self, settings: SettingsFile, home: Home) -> None:
        self._settings = settings
        self._home = home
        self._proven: set[str] = set()

    async def checked(self, model: Model, resolved: Resolved) -> Resolved:
        """Give ``resolved`` as it is, or with repacking off and a note that says why."""
        if not resolved.config.repack:
            return resolved
        refused = self._settings.current.loading.fast_refused
        if not refused and str(model.path) not in self._proven:
            refused = await self._try(model, resolved)
        return _without_repack(resolved, refused) if refused else resolved

    async def _try(self, model: Model, resolved: Resolved) -> str:
        """Decode one token in a worker of its own; give the reason when the processor refuses."""
        config = msgspec.structs.replace(
            resolved.config, context=TRIAL_CONTEXT, slots=1, batch=TRIAL_CONTEXT, micro_batch=TRIAL_CONTEXT
        )
        load = Load(str(model.path), config)
        engine = Engine(load, self._home.logs / "fast-trial.log", lambda _: None)
        try:
            await engine.start()
            command = Generate(
                "trial", [Segment("a b", True)], sampling=Sampling(temperature=0), max_tokens=1
            )
            async with contextlib.aclosing(engine.generate(command)) as reports:
                async for _ in reports:
                    pass
        except WrongCpuBuild as fault:
            self._settings.change("loading", fast_refused=fault.message)
            return fault.message
        finally:
            await engine.stop()
        self._proven.add(str(model.path))
        return ""


def _without_repack(resolved: Resolved, reason: str) -> Resolved:
    note = f"Fast was turned off on this machine: {reason}"
    config = msgspec.structs.replace(resolved.config, repack=False)
    return Resolved(config, resolved.reasons | {"repack": "this machine refuses it"}, [*resolved.notes, note])
