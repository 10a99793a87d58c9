"""Describe the library's models as the native dialect and the command line show them."""

from collections.abc import Iterable

from octavo.core.client.types import Capabilities, LoadedInstance, ModelRecord, Quantization
from octavo.core.events import InstanceStatus
from octavo.core.gguf import Description, printable
from octavo.core.library.models import Model

_TYPES = {"model": "llm", "embedding": "embedding"}


def model_records(models: Iterable[Model], instances: Iterable[InstanceStatus] = ()) -> list[ModelRecord]:
    """Describe all models, each with the instances of it that are loaded."""
    loaded: dict[str, list[LoadedInstance]] = {}
    for status in instances:
        if status.state == "ready":
            loaded.setdefault(status.model, []).append(LoadedInstance(status.instance, status.config))
    return [model_record(model, loaded.get(model.id, [])) for model in models]


def model_record(model: Model, loaded: list[LoadedInstance]) -> ModelRecord:
    """Describe one model; what its header doesn't tell is empty or 0."""
    facts = model.description
    return ModelRecord(
        type=_TYPES.get(model.kind, model.kind),
        publisher=model.publisher,
        key=model.id,
        display_name=model.name.rsplit("/", 1)[-1],  # a header's own name is often the training run's
        architecture=(facts.architecture if facts else None) or "",
        quantization=Quantization(
            (facts.quant if facts else None) or "", round(facts.bits_per_weight, 2) if facts else 0.0
        ),
        size_bytes=model.size_bytes,
        params_string=_parameters(facts),
        loaded_instances=loaded,
        max_context_length=(facts.context_length if facts else None) or 0,
        capabilities=_capabilities(model),
        path=printable(model.path),
        fault=model.fault.message if model.fault else None,
        is_offline=model.is_offline,
        source=model.source,
        files=[printable(path) for path in model.files],
        projector=printable(model.projector.path) if model.projector else None,
        layers=(facts.layers if facts else None) or 0,
        modified_at=model.modified_ns / 1e9,
    )


def _parameters(facts: Description | None) -> str:
    if facts is None or not facts.parameters:
        return ""
    if facts.size_label:
        return facts.size_label
    billions = facts.parameters / 1e9
    return f"{billions:.1f}B" if billions >= 1 else f"{billions * 1000:.0f}M"


def _capabilities(model: Model) -> Capabilities:
    facts = model.description
    template = (facts.chat_template if facts else None) or ""
    return Capabilities(vision=model.sees_images, trained_for_tool_use="tools" in template)
