"""Read the load settings of a body: ``LoadConfig``'s names, and LM Studio's where they mean the same."""

from collections.abc import Mapping

from octavo.core.config.load_config import LoadConfig

_ALIASES = {
    "context_length": "context",
    "eval_batch_size": "batch",
    "parallel": "slots",
    "n_parallel": "slots",
    "rope_frequency_base": "rope_base",
    "rope_frequency_scale": "rope_scale",
}


def load_fields(body: Mapping[str, object]) -> dict[str, object]:
    """Give the fields of ``LoadConfig`` that a body says; unknown ones are dropped, ``null`` is unsaid."""
    known = set(LoadConfig.__struct_fields__)
    named = {_ALIASES.get(name, name): value for name, value in body.items() if value is not None}
    fields = {name: value for name, value in named.items() if name in known}
    if isinstance(fields.get("flash_attention"), bool):
        fields["flash_attention"] = "on" if fields["flash_attention"] else "off"
    return fields
