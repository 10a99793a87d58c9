"""What the closed form is not sure of is asked of llama.cpp's own allocator, once for each configuration."""

import importlib.metadata
from pathlib import Path

import msgspec

from octavo.core.config.load_config import LoadConfig
from octavo.core.config.paths import Home
from octavo.core.engine.simulate import Refused, Simulated, SimulationCache
from octavo.core.errors import OctavoError
from octavo.core.memory.types import Estimate

SIMULATED = "llama.cpp's own allocator was asked: KV, recurrent state, compute and output are its figures."


class Settler:
    """Replaces uncertain figures by simulated ones: about a second the first time, then they are kept."""

    def __init__(self, home: Home) -> None:
        self._cache = SimulationCache(
            home.cache / "simulations", importlib.metadata.version("llama-cpp-python")
        )

    def settled(self, path: Path, config: LoadConfig, found: Estimate) -> Estimate:
        """Give ``found`` as it is when exact; else with llama.cpp's figures, or with why there are none."""
        if found.confidence == "exact":
            return found
        try:
            (outcome,) = self._cache.simulate(path, [config])
        except (OctavoError, OSError) as fault:
            return _with_reason(found, f"llama.cpp's own allocator could not be asked: {fault}")
        if isinstance(outcome, Refused):
            return _with_reason(found, f"llama.cpp would refuse these settings: {outcome.reason}")
        return _applied(found, outcome)


def _applied(found: Estimate, simulated: Simulated) -> Estimate:
    components = msgspec.structs.replace(
        found.components,
        kv=simulated.kv,
        recurrent=simulated.recurrent,
        compute=simulated.compute,
        output=simulated.output,
    )
    settled = msgspec.structs.replace(
        found,
        n_ctx=simulated.n_ctx,
        components=components,
        private_bytes=components.private_bytes,
        confidence="exact",
    )
    return _with_reason(settled, SIMULATED)


def _with_reason(found: Estimate, reason: str) -> Estimate:
    return msgspec.structs.replace(found, reasons=[*found.reasons, reason])
