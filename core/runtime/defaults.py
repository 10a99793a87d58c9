"""The load settings that apply when nobody said others, and where each came from."""

import os
from collections.abc import Callable, Mapping

import psutil

from octavo.core.config.load_config import Layer, LoadConfig, Resolved, resolve
from octavo.core.config.settings import Settings
from octavo.core.library.models import Model

FITTED = "fitted to the model and this machine"
CONTEXT_FITS = "largest that fits"
"""How the reason begins for a context that nobody said."""

Fitted = Callable[[LoadConfig], tuple[int, str]]
"""From the other settings to the context and the reason for it."""


def resolve_for(model: Model, settings: Settings, wished: Mapping[str, object], fitted: Fitted) -> Resolved:
    """Merge the layers of a load; ``fitted`` gives a context that nobody said. Raises ``InvalidConfig``."""
    said: list[Layer] = [
        (FITTED, {"threads": usable_threads()}),
        ("global settings", settings.loading.defaults),
        ("this model's settings", settings.loading.models.get(model.id, {})),
        ("this request", wished),
    ]
    resolved = resolve(*said)
    if resolved.config.context is None:
        context, reason = fitted(resolved.config)
        resolved = resolve((reason, {"context": context}), *said)
    return resolved


def is_fitted(resolved: Resolved) -> bool:
    """Tell whether the context was fitted, not said by somebody."""
    return resolved.reasons["context"].startswith(CONTEXT_FITS)


def usable_threads() -> int:
    """Give the physical cores that this process may use, less one for everything else; at least 1."""
    physical = psutil.cpu_count(logical=False) or 1
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else physical
    return max(min(physical, allowed) - 1, 1)
