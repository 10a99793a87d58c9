"""``octavo show``: describe one model."""

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer

from octavo.server.cli.console import Json, answer, size

if TYPE_CHECKING:
    from octavo.core.client.types import ModelRecord

Model = Annotated[str, typer.Argument(metavar="MODEL", help="An id, part of one, or a GGUF file's path.")]


def show(model: Model, json: Json = False) -> None:
    """Describe one model of the library."""

    async def work() -> "ModelRecord":
        from octavo.server.cli.library import record

        return await record(model)

    answer(lambda: asyncio.run(work()), json, _show)


def _show(model: "ModelRecord") -> None:
    lines = {
        "model": model.key,
        "name": model.display_name,
        "type": model.type,
        "architecture": model.architecture,
        "parameters": model.params_string,
        "quantisation": f"{model.quantization.name} ({model.quantization.bits_per_weight} bits per weight)",
        "context": f"{model.max_context_length} tokens",
        "size": size(model.size_bytes),
        "file": model.path,
        "loaded": ", ".join(instance.id for instance in model.loaded_instances) or "no",
        "fault": model.fault or "",
    }
    for name, text in lines.items():
        if text:
            print(f"{name + ':':<14}{text}")
