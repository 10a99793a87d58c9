"""``octavo verify``: check that a model's files are still what they should be."""

import asyncio
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from octavo.server.cli.console import Json, answer, utf8

if TYPE_CHECKING:
    from octavo.core.client.types import StreamEvent, VerifyAnswer
    from octavo.core.library.verify import VerifiedFile

Model = Annotated[
    str, typer.Argument(metavar="MODEL", callback=utf8, help="An id, part of one, or a GGUF file's path.")
]
Accept = Annotated[bool, typer.Option("--accept", help="Take what was changed here as right from now on.")]

_WORDS = {
    "sound": "sound",
    "remembered": "no published checksum is known; this one is remembered now",
    "damaged": "DAMAGED",
    "changed": "CHANGED since it was first checked; --accept takes it as right",
    "unreadable": "UNREADABLE",
}


def verify(model: Model, accept: Accept = False, json: Json = False) -> None:
    """Read a model whole and compare its SHA-256; exit code 1 when it isn't what it should be."""
    if not answer(lambda: asyncio.run(_verified(model, accept)), json, _show).is_sound:
        raise typer.Exit(1)


async def _verified(name: str, accept: bool) -> "VerifyAnswer":
    from octavo.server.cli.library import catalog
    from octavo.server.cli.reach import checked_home, held, model_argument, running
    from octavo.server.library import verified

    client = await running()
    if client is None:
        return verified(catalog(), checked_home(), name, _progress, lambda: False, accept=accept)
    async with client, held(client, _on_event):
        return await client.verify_model(model_argument(name), accept=accept)


def _on_event(event: "StreamEvent") -> None:
    from octavo.core.events import VerifyProgressed

    if isinstance(event, VerifyProgressed):
        _progress(event.done_bytes, event.total_bytes)


def _progress(done: int, total: int) -> None:
    if total and sys.stderr.isatty():
        end = "\n" if done >= total else ""
        print(f"\rReading: {done / total:.0%}", end=end, file=sys.stderr, flush=True)


def _show(told: "VerifyAnswer") -> None:
    for file in told.files:
        print(f"{file.path}: {_said(file)}")


def _said(file: "VerifiedFile") -> str:
    words = _WORDS[file.outcome]
    if file.error:
        return f"{words}: {file.error.message}"
    source = "as first seen here" if file.source == "first" else f"as published ({file.source})"
    if file.outcome == "sound":
        return f"{words}, {source}"
    if file.outcome == "remembered":
        return words
    return f"{words}: its SHA-256 is {file.sha256}, not {file.expected_sha256} {source}"
