"""The load settings that apply when nobody said others, and where each came from."""

import os
from collections.abc import Mapping

import psutil

from octavo.core.config.load_config import Layer, Resolved, resolve
from octavo.core.config.settings import Settings
from octavo.core.library.models import Model

# a context that most conversations fit and most machines hold; a model trained on less gets less
DEFAULT_CONTEXT = 8192


def resolve_for(model: Model, settings: Settings, wished: Mapping[str, object]) -> Resolved:
    """Merge all layers for one load; raises ``InvalidConfig``."""
    return resolve(
        _fitted(model),
        ("global settings", settings.loading.defaults),
        ("this model's settings", settings.loading.models.get(model.id, {})),
        ("this request", wished),
    )


def _fitted(model: Model) -> Layer:
    trained = model.description.context_length if model.description else None
    context = min(trained or DEFAULT_CONTEXT, DEFAULT_CONTEXT)
    return "fitted to the model and this machine", {"context": max(context, 256), "threads": usable_threads()}


def usable_threads() -> int:
    """Give the physical cores that this process may use, less one for everything else; at least 1."""
    physical = psutil.cpu_count(logical=False) or 1
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else physical
    return max(min(physical, allowed) - 1, 1)
