"""``octavo rm``: delete a model."""

import asyncio
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from octavo.server.cli.console import Json, answer, done, say, size, utf8

if TYPE_CHECKING:
    from octavo.core.library.removal import Removal, RemovedFile

Model = Annotated[
    str, typer.Argument(metavar="MODEL", callback=utf8, help="An id, part of one, or its file's path.")
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Don't ask.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Tell what would go, and do nothing.")]
Force = Annotated[bool, typer.Option("--force", help="Unload it first, where it is loaded.")]
Permanently = Annotated[bool, typer.Option("--permanently", help="Delete for good, not into the trash.")]


def rm(
    model: Model,
    yes: Yes = False,
    dry_run: DryRun = False,
    force: Force = False,
    permanently: Permanently = False,
    json: Json = False,
) -> None:
    """Delete a model, all its parts, into the trash where there is one; says first what will go."""
    plan = done(lambda: asyncio.run(_removed(model, True, force, permanently)), json)
    if dry_run:
        answer(lambda: plan, json, _show)
        return
    _confirm(plan, yes)
    answer(lambda: asyncio.run(_removed(plan.model, False, force, permanently)), json, _show)


async def _removed(name: str, dry_run: bool, force: bool, permanently: bool) -> "Removal":
    from octavo.server.cli.library import catalog, record
    from octavo.server.cli.reach import running
    from octavo.server.library import removed

    client = await running()
    found = (await record(name)).key
    if client is None:
        return removed(catalog(), found, dry_run=dry_run, permanently=permanently)
    async with client:
        return await client.remove_model(found, dry_run=dry_run, force=force, permanently=permanently)


def _confirm(plan: "Removal", yes: bool) -> None:
    if yes:
        return
    if not sys.stdin.isatty():
        raise typer.BadParameter("there is no terminal to ask at: give --yes, or --dry-run to look")
    for line in _lines(plan):
        say(line)
    if not typer.confirm("Go on?", default=False, err=True):
        raise typer.Exit(1)


def _show(told: "Removal") -> None:
    for line in _lines(told):
        print(line)


def _lines(told: "Removal") -> list[str]:
    verb = "Would go" if told.dry_run else "Gone"
    where = "into the trash" if told.to_trash else "for good"
    lines = [f"{verb}: {_said(file, where)}" for file in told.files]
    lines += [f"{verb}: the empty folder {folder}" for folder in told.folders]
    freed = f"{size(told.freed_bytes)} {'once the trash is emptied' if told.to_trash else 'freed'}"
    return [*lines, *told.notes, f"Space: {freed}."]


def _said(file: "RemovedFile", where: str) -> str:
    if file.is_link:
        return f"the link {file.path}"
    return f"{file.path} ({size(file.size_bytes)}, {where})"
