"""``octavo ls``: list the library."""

import asyncio
from typing import TYPE_CHECKING

from octavo.server.cli.console import Json, answer, print_table, size

if TYPE_CHECKING:
    from octavo.core.client.types import ModelRecord


def ls(json: Json = False) -> None:
    """List the models in the library."""
    from octavo.server.cli.library import records

    answer(lambda: asyncio.run(records()), json, _show)


def _show(models: "list[ModelRecord]") -> None:
    if not models:
        print("There are no models yet: octavo import FILE.gguf brings one in.")
        return
    head = ("MODEL", "PARAMS", "QUANT", "CONTEXT", "SIZE", "")
    print_table(head, (_row(model) for model in models))


def _row(model: "ModelRecord") -> tuple[str, ...]:
    note = model.fault or ("loaded" if model.loaded_instances else "")
    context = str(model.max_context_length or "")
    kind = model.quantization.name if model.type in ("llm", "embedding") else model.type
    return model.key, model.params_string, kind, context, size(model.size_bytes), note
