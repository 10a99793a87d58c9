"""``octavo unload``: unload models."""

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer

from octavo.server.cli.console import Json, amount, answer, utf8
from octavo.server.cli.loaded import loaded_name, no_such_model

if TYPE_CHECKING:
    from octavo.core.client.types import UnloadAnswer
    from octavo.core.events import InstanceStatus

Name = Annotated[
    str | None,
    typer.Argument(
        callback=utf8, help="The name it is loaded under, or its model; none: the one that is loaded."
    ),
]
All = Annotated[bool, typer.Option("--all", "-a", help="Unload all.")]


def unload(name: Name = None, everything: All = False, json: Json = False) -> None:
    """Unload a model now; what it is answering ends."""
    if name is not None and not name.strip():
        raise typer.BadParameter("no model was named")
    if name is not None and everything:
        raise typer.BadParameter("name a model, or give --all, not both")
    answer(lambda: asyncio.run(_unload(name, everything)), json, _show)


async def _unload(name: str | None, everything: bool) -> "list[UnloadAnswer]":
    from octavo.server.cli.reach import running

    client = await running()
    if client is None:
        if name is not None:
            raise no_such_model(name, [])
        _chosen(None, everything, [])
        return []
    async with client:
        loaded = await client.instances()
        return [await client.unload(instance) for instance in _chosen(name, everything, loaded)]


def _chosen(name: str | None, everything: bool, loaded: "list[InstanceStatus]") -> list[str]:
    if name is not None:
        return [loaded_name(name, loaded)]
    if not everything and len(loaded) != 1:
        told = ", ".join(status.instance for status in loaded) or "none is loaded"
        raise typer.BadParameter(f"name a model, or give --all ({told})")
    return [status.instance for status in loaded]


def _show(answers: "list[UnloadAnswer]") -> None:
    if not answers:
        print("Nothing is loaded.")
    for freed in answers:
        came_back = "" if freed.came_back else ", but not all of its memory came back"
        print(f"{freed.instance_id} is unloaded: {amount(freed.freed_bytes)} given back{came_back}.")
