"""``octavo show``: describe one model."""

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer

from octavo.server.cli.console import Json, answer, print_table, size

if TYPE_CHECKING:
    from octavo.core.client.types import ShownModel
    from octavo.core.memory.ledger import Entry

Model = Annotated[str, typer.Argument(metavar="MODEL", help="An id, part of one, or a GGUF file's path.")]


def show(model: Model, json: Json = False) -> None:
    """Describe one model of the library; exit code 1 for one that can't be used."""

    async def work() -> "ShownModel":
        from octavo.server.cli.library import shown

        return await shown(model)

    if answer(lambda: asyncio.run(work()), json, _show).fault:
        raise typer.Exit(1)


def _show(model: "ShownModel") -> None:
    quant = model.quantization
    lines = {
        "model": model.key,
        "name": model.display_name,
        "type": model.type,
        "architecture": model.architecture,
        "parameters": model.params_string,
        "quantisation": quant.name and f"{quant.name} ({quant.bits_per_weight} bits per weight)",
        "context": f"{model.max_context_length} tokens" if model.max_context_length else "",
        "size": size(model.size_bytes),
        "file": model.path,
        "loaded": ", ".join(instance.id for instance in model.loaded_instances) or "no",
        "fault": model.fault or "",
    }
    for name, text in lines.items():
        if text:
            print(f"{name + ':':<14}{text}")
    if model.last_load is not None:
        _show_load(model.last_load)


def _show_load(last: "Entry") -> None:
    import msgspec

    predicted, actual = msgspec.structs.asdict(last.predicted), msgspec.structs.asdict(last.actual)
    rows = [
        (name.replace("_", " "), size(count), size(actual[name]), f"{actual[name] - count:+,}")
        for name, count in predicted.items()
        if count or actual[name]
    ]
    print(f"\nlast load, {last.n_ctx:,} cells of context:")
    print_table(("part", "predicted", "actual", "difference in bytes"), rows)
