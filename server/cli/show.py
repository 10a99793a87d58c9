"""``octavo show``: describe one model."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from octavo.server.cli.console import Json, amount, answer, print_table, size, utf8

if TYPE_CHECKING:
    from octavo.core.client.types import ShownModel
    from octavo.core.memory.ledger import Entry

Model = Annotated[str, typer.Argument(metavar="MODEL", help="An id, part of one, or a GGUF file's path.")]
Projector = Annotated[
    str | None,
    typer.Option(
        "--projector", metavar="PATH|none|auto", callback=utf8, help="What goes with it from now on."
    ),
]


def show(model: Model, projector: Projector = None, json: Json = False) -> None:
    """Describe one model of the library; exit code 1 for one that can't be used.

    Of a repository of the Hub (hf:org/name) its choices are listed, as octavo search --repo does.
    """
    if model.startswith("hf:"):
        from octavo.server.cli.search import show_choices

        show_choices(model, json)
        return

    async def work() -> "ShownModel":
        from octavo.server.cli.library import shown

        if projector is not None:
            await _choose(model, projector)
        return await shown(model)

    if answer(lambda: asyncio.run(work()), json, _show).fault:
        raise typer.Exit(1)


async def _choose(model: str, projector: str) -> None:
    from octavo.server.cli.library import catalog, record
    from octavo.server.cli.reach import running
    from octavo.server.library import projector_chosen

    # the service works in another folder
    choice = projector if projector in ("none", "auto") else str(Path(projector).expanduser().absolute())
    client = await running()
    if client is None:
        projector_chosen(catalog(), model, choice)
        return
    async with client:
        await client.choose_projector((await record(model)).key, choice)


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
        "parts": str(len(model.files)) if len(model.files) > 1 else "",
        "projector": model.projector or "",
        "offline": "yes: its folder isn't there" if model.is_offline else "",
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
        (name.replace("_", " "), amount(count), amount(actual[name]), f"{actual[name] - count:+,}")
        for name, count in predicted.items()
        if count or actual[name]
    ]
    print(f"\nlast load, {last.n_ctx:,} cells of context:")
    print_table(("part", "predicted", "actual", "difference in bytes"), rows)
