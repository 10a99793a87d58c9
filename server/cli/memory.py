"""``octavo memory``: where a loaded model's memory is, and what moves its pages."""

import asyncio
import contextlib
import functools
import os
import re
import shutil
import sys
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from typing import TYPE_CHECKING, Annotated, Literal, TypeVar

import typer

from octavo.server.cli.console import Json, amount, answer, done, say, utf8
from octavo.server.cli.loaded import loaded_name

if TYPE_CHECKING:
    from octavo.core.client import ServiceClient
    from octavo.core.client.types import MemoryAnswer, PinAnswer, StreamEvent
    from octavo.core.errors import OctavoError
    from octavo.core.events import InstanceStatus
    from octavo.core.memory.figures import PagesMoved

# every fourth sample, also when one comes a little early
EACH_S = 0.9

Move = Literal["warm", "drop", "pin", "unpin"]
Value = TypeVar("Value")

Name = Annotated[
    str | None, typer.Argument(metavar="MODEL", callback=utf8, help="May be left out when one is loaded.")
]
Watch = Annotated[bool, typer.Option("--watch", "-w", help="Once a second, until Ctrl+C.")]
Warm = Annotated[bool, typer.Option("--warm", help="Bring the model's pages into memory.")]
Drop = Annotated[bool, typer.Option("--drop", help="Drop the model's pages from memory.")]
Pin = Annotated[bool, typer.Option("--pin", help="Keep the model's pages in memory, too.")]
Unpin = Annotated[bool, typer.Option("--unpin", help="Let go of what is kept in memory.")]
Layers = Annotated[
    str | None, typer.Option("--layers", help="Only of these layers: 0-3,7; other: what is in none.")
]


def memory(
    model: Name = None,
    watch: Watch = False,
    warm: Warm = False,
    drop: Drop = False,
    pin: Pin = False,
    unpin: Unpin = False,
    layers: Layers = None,
    json: Json = False,
) -> None:
    """Tell where a loaded model's memory is, layer by layer; or warm, drop or pin its pages."""
    moves: dict[Move, bool] = {"warm": warm, "drop": drop, "pin": pin, "unpin": unpin}
    move = _one_of([name for name, is_wanted in moves.items() if is_wanted], watch, layers)
    wanted = parsed_layers(layers) if layers is not None else None
    if watch:
        _watch(model, json)
    elif move is None:
        answer(lambda: asyncio.run(_with_model(model, _ask)), json, _show)
    elif move in ("warm", "drop"):
        moving = functools.partial(_move, move=move, layers=wanted)
        answer(lambda: asyncio.run(_with_model(model, moving)), json, functools.partial(_show_moved, move))
    else:
        pinning = functools.partial(_pin, layers=wanted, is_on=move == "pin")
        answer(lambda: asyncio.run(_with_model(model, pinning)), json, _show_pin)


def parsed_layers(text: str) -> list[int]:
    """Read layers such as ``0-3,7`` or ``other``."""
    from octavo.core.memory.layout import OTHER

    found: set[int] = set()
    for part in text.split(","):
        if part.strip() == "other":
            found.add(OTHER)
            continue
        span = re.fullmatch(r"\s*(\d{1,5})\s*(?:-\s*(\d{1,5})\s*)?", part)
        if span is None or (span[2] and int(span[2]) < int(span[1])):
            raise typer.BadParameter(
                f"--layers takes numbers below 100,000 such as 0-3,7, or other, not {text!r}"
            )
        found.update(range(int(span[1]), int(span[2] or span[1]) + 1))
    return sorted(found)


def _one_of(moves: list[Move], watch: bool, layers: str | None) -> Move | None:
    if len(moves) > 1 or (moves and watch):
        raise typer.BadParameter("one of --watch, --warm, --drop, --pin and --unpin at a time")
    move = moves[0] if moves else None
    if layers is not None and move is None:
        raise typer.BadParameter("--layers goes with --warm, --drop, --pin or --unpin")
    return move


# ---- asking the service


async def _with_model(name: str | None, work: "Callable[[ServiceClient, str], Awaitable[Value]]") -> Value:
    from octavo.server.cli.reach import running

    client = await running()
    if client is None:
        raise _nothing_loaded(name)
    async with client:
        return await work(client, _chosen(name, await client.instances()))


def _chosen(name: str | None, loaded: "list[InstanceStatus]") -> str:
    from octavo.core.errors import AmbiguousModel

    if not loaded:
        raise _nothing_loaded(name)
    if name is not None:
        return loaded_name(name, loaded)
    names = [status.instance for status in loaded]
    if len(names) > 1:
        raise AmbiguousModel(
            "More than one model is loaded.", hint=f"Name one: {', '.join(names)}.", candidates=names
        )
    return names[0]


def _nothing_loaded(name: str | None) -> "OctavoError":
    from octavo.core.errors import ModelNotFound

    what = "No model is loaded" if name is None else f"No loaded model is named {name!r}"
    return ModelNotFound(f"{what}.", hint=f"octavo load {name or 'MODEL'} loads it.", candidates=[])


async def _ask(client: "ServiceClient", instance: str) -> "MemoryAnswer":
    """Ask for the memory of one instance, in the shape of the route for all."""
    from octavo.core.client.types import MemoryAnswer

    told = await client.memory()
    found = [detail for detail in told.instances if detail.instance == instance]
    return MemoryAnswer(at=told.at, system=told.system, instances=found or [await client.memory_of(instance)])


async def _follow(client: "ServiceClient", instance: str, show: "Callable[[MemoryAnswer], None]") -> None:
    """Ask once a second, by the clock of the service's own samples, until the service ends."""
    from octavo.core.client.types import MemoryAnswer
    from octavo.core.errors import ServiceUnavailable
    from octavo.core.events import MemorySampled

    shown_at = 0.0
    async with aclosing(client.memory_stream(residency=True)) as events:
        async for event in events:
            if isinstance(event, MemorySampled) and event.at - shown_at >= EACH_S:
                detail = await client.memory_of(instance)
                show(MemoryAnswer(at=event.at, system=event.system, instances=[detail]))
                shown_at = event.at
    raise ServiceUnavailable("The service ended.")


async def _move(client: "ServiceClient", instance: str, move: Move, layers: list[int] | None) -> "PagesMoved":
    from octavo.server.cli.reach import held

    if move == "drop":
        return await client.drop(instance, layers)
    async with held(client, Progress(instance)):
        return await client.warm(instance, layers)


async def _pin(client: "ServiceClient", instance: str, layers: list[int] | None, is_on: bool) -> "PinAnswer":
    from octavo.core.client.types import PinAnswer

    return PinAnswer(await client.pin(instance, layers, is_on=is_on))


# ---- showing


class Progress:
    """Tells how far a warm-up is: in place at a terminal, else a line for each tenth."""

    def __init__(self, instance: str) -> None:
        self._instance = instance
        self._tenth = 0

    def __call__(self, event: "StreamEvent") -> None:
        """Tell an event that is about it."""
        from octavo.core.events import WarmProgressed

        if not isinstance(event, WarmProgressed) or event.instance != self._instance:
            return
        share = event.done_bytes / event.total_bytes if event.total_bytes else 1.0
        text = f"Warming {self._instance}: {share:.0%}"
        if sys.stderr.isatty():
            print(f"\r{text}", end="\n" if share >= 1 else "", file=sys.stderr, flush=True)
        elif int(share * 10) > self._tenth:
            self._tenth = int(share * 10)
            say(text)


class Screen:
    """Draws one page over the last: in place, cut to what the terminal holds."""

    def __init__(self) -> None:
        self._begin = "\x1b[2J"

    def show(self, made: "Callable[[int | None], list[str]]") -> None:
        """Draw a page; one that is too long is ``made`` again, folded to the terminal's width."""
        columns, rows = shutil.get_terminal_size()
        room, lines = max(rows - 1, 1), made(None)
        if len(lines) > room:
            lines = made(columns)
        if len(lines) > room:
            lines = [*lines[: room - 1], f"… {len(lines) - room + 1} more lines in a taller window"]
        body = "".join(f"{line[:columns]}\x1b[K\n" for line in lines)
        print(f"{self._begin}\x1b[H{body}\x1b[J", end="", flush=True)
        self._begin = ""


def _watch(name: str | None, as_json: bool) -> None:
    show = _printer(as_json)

    def work() -> None:
        # Ctrl+C is how it is ended, so it is no failure
        with contextlib.suppress(KeyboardInterrupt):
            asyncio.run(_with_model(name, lambda client, instance: _follow(client, instance, show)))

    done(work, as_json)


def _printer(as_json: bool) -> "Callable[[MemoryAnswer], None]":
    import msgspec

    from octavo.server.cli.memory_page import line, page

    screen = Screen()

    def show(told: "MemoryAnswer") -> None:
        (detail,) = told.instances
        if as_json:
            print(msgspec.json.encode(told).decode(), flush=True)
        elif sys.stdout.isatty() and os.environ.get("TERM") != "dumb":
            screen.show(functools.partial(page, detail, told.system))
        else:
            print(line(detail, told.at), flush=True)

    return show


def _show(told: "MemoryAnswer") -> None:
    from octavo.server.cli.memory_page import page

    for text in page(told.instances[0], told.system):
        print(text)


def _show_moved(move: str, moved: "PagesMoved") -> None:

    before, after = moved.resident_before_bytes, moved.resident_after_bytes
    did = {"warm": "brought into memory", "drop": "dropped"}[move]
    print(f"{moved.instance}: {amount(moved.page_bytes)} {did} in {moved.seconds:.2f} s.")
    if before is None or after is None:
        print("How much of its files is in the page cache is unknown here.")
    else:
        print(f"Of its files {amount(after)} are in the page cache, {amount(before)} before.")
        if move == "drop" and before == after > 0:
            print("Nothing changed: another process has these pages mapped, or they were not there.")


def _show_pin(told: "PinAnswer") -> None:
    from octavo.server.cli.memory_page import pin_words

    print(f"Kept in memory: {pin_words(told.pin)}." if told.pin else "No pages are kept in memory any more.")
