"""``octavo ls``: list the library."""

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from octavo.server.cli.console import Json, answer, done, print_json, print_table, size

if TYPE_CHECKING:
    from octavo.core.client.types import ModelRecord
    from octavo.core.library.fingerprint import Duplicates

Text = Annotated[
    list[str] | None, typer.Argument(metavar="TEXT…", help="Only what holds these words: a name, a quant …")
]
Llm = Annotated[bool, typer.Option("--llm", help="Only models that write text.")]
Embedding = Annotated[bool, typer.Option("--embedding", help="Only models that make vectors.")]
Variants = Annotated[bool, typer.Option("--variants", help="A row for each quant; there always is.")]
Detailed = Annotated[bool, typer.Option("--detailed", help="Also architecture, whose folder, and file.")]
Doubles = Annotated[bool, typer.Option("--duplicates", help="What is on disk more than once.")]


def ls(
    text: Text = None,
    llm: Llm = False,
    embedding: Embedding = False,
    variants: Variants = False,
    detailed: Detailed = False,
    duplicates: Doubles = False,
    json: Json = False,
) -> None:
    """List the models in the library."""
    if duplicates:
        answer(lambda: asyncio.run(_duplicates()), json, _show_duplicates)
        return
    kinds = {name for name, asked in (("llm", llm), ("embedding", embedding)) if asked}
    words = " ".join(text or [])
    models = done(lambda: asyncio.run(_listed(words, kinds)), json)
    if json:
        from octavo.server.cli.lms_shapes import listed

        print_json(listed(models))
    else:
        _show(models, detailed, bool(words or kinds))


async def _listed(text: str, kinds: set[str]) -> "list[ModelRecord]":
    from octavo.server.cli.library import records

    return [model for model in await records(text) if not kinds or model.type in kinds]


async def _duplicates() -> "list[Duplicates]":
    from octavo.server.cli.library import catalog
    from octavo.server.cli.reach import checked_home, running
    from octavo.server.library import duplicates_of

    client = await running()
    if client is None:
        return duplicates_of(catalog(), checked_home())
    async with client:
        return await client.duplicates()


def _show(models: "list[ModelRecord]", detailed: bool, is_part: bool) -> None:
    if not models:
        print(
            "No model fits." if is_part else "There are no models yet: octavo import FILE.gguf brings one in."
        )
        return
    head: Sequence[str] = ("MODEL", "PARAMS", "QUANT", "CONTEXT", "SIZE", "")
    rows: list[Sequence[str]] = [_row(model) for model in models]
    if detailed:
        head = (*head[:-1], "ARCH", "FOLDER OF", "FILE", "")
        rows = [
            (*row[:-1], model.architecture, model.source, model.path, row[-1])
            for model, row in zip(models, rows, strict=True)
        ]
    print_table(head, rows)


def _row(model: "ModelRecord") -> tuple[str, ...]:
    note = model.fault or ("loaded" if model.loaded_instances else "")
    if model.is_offline:
        note = f"offline: {note}"
    context = str(model.max_context_length or "")
    kind = model.quantization.name if model.type in ("llm", "embedding") else model.type
    return model.key, model.params_string, kind, context, size(model.size_bytes), note


def _show_duplicates(groups: "list[Duplicates]") -> None:
    if not groups:
        print("Nothing is on disk more than once.")
    for group in groups:
        waste = f"{size(group.wasted_bytes)} too many" if group.wasted_bytes else "one file by several names"
        print(f"{size(group.size_bytes)}, {len(group.models)} rows, {waste}:")
        for model, path in zip(group.models, group.paths, strict=True):
            print(f"  {model}  {path}")
