"""What ``lms`` prints as JSON for the same verb, beside what we say: a script moves over by a new name.

The fields are those of LM Studio's command line of November 2026; ours come first and keep their names.
"""

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from octavo.core.client.types import ModelRecord
    from octavo.core.events import InstanceStatus


def listed(models: "Sequence[ModelRecord]") -> list[dict[str, Any]]:
    """Describe the library as ``lms ls --json`` does."""
    variants: dict[str, list[str]] = {}
    for model in models:
        variants.setdefault(_base(model.key), []).append(model.key)
    return [_listed(model, variants[_base(model.key)]) for model in models]


def running(statuses: "Sequence[InstanceStatus]", models: "Sequence[ModelRecord]") -> list[dict[str, Any]]:
    """Describe what is loaded as ``lms ps --json`` does."""
    known = {model.key: model for model in models}
    return [_running(status, known.get(status.model)) for status in statuses]


def _listed(model: "ModelRecord", variants: list[str]) -> dict[str, Any]:
    told = _builtins(model)
    told["quantization"]["bits"] = model.quantization.bits_per_weight
    return {
        **told,
        "modelKey": model.key,
        "displayName": model.display_name,
        "sizeBytes": model.size_bytes,
        "indexedModelIdentifier": model.key,
        "deviceIdentifier": None,
        "paramsString": model.params_string or None,
        "variants": variants,
        "selectedVariant": model.key,
        "vision": model.capabilities.vision,
        "trainedForToolUse": model.capabilities.trained_for_tool_use,
        "maxContextLength": model.max_context_length,
    }


def _running(status: "InstanceStatus", model: "ModelRecord | None") -> dict[str, Any]:
    busy = "generating" if status.active else "idle"
    return {
        **({} if model is None else _listed(model, [model.key])),
        **_builtins(status),
        "identifier": status.instance,
        "modelKey": status.model,
        "ttlMs": None if status.ttl_s is None else round(status.ttl_s * 1000),
        "lastUsedTime": round((time.time() - status.idle_s) * 1000),
        "contextLength": status.context,
        "parallel": status.config.get("slots"),
        "status": busy if status.state == "ready" else status.state,
    }


def _base(key: str) -> str:
    return key.partition("@")[0]


def _builtins(value: object) -> dict[str, Any]:
    import msgspec

    told: dict[str, Any] = msgspec.to_builtins(value)
    return told
