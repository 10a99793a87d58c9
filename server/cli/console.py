"""How every verb speaks: data on stdout, all else on stderr, honest exit codes."""

import sys
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Annotated, NoReturn, TypeVar

import typer

if TYPE_CHECKING:
    from octavo.core.errors import OctavoError

Value = TypeVar("Value")

Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]

INTERRUPTED = 130


def answer(work: Callable[[], Value], as_json: bool, show: Callable[[Value], None]) -> None:
    """Do a verb's work and print what came of it; a failure ends the program with exit code 1."""
    value = done(work, as_json)
    if as_json:
        print_json(value)
    else:
        show(value)


def done(work: Callable[[], Value], as_json: bool) -> Value:
    """Do a verb's work and give what came of it; a failure ends the program with exit code 1."""
    from octavo.core.errors import OctavoError

    try:
        return work()
    except OctavoError as error:
        fail(error, as_json)
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None


def fail(error: "OctavoError", as_json: bool) -> NoReturn:
    """Say what went wrong and what to do, and end with exit code 1."""
    say(f"octavo: {error.message}")
    if error.hint:
        say(error.hint)
    if as_json:
        print_json({"error": error.report()})
    raise typer.Exit(1)


def say(text: str) -> None:
    """Print a line for the person, not for the next program."""
    print(text, file=sys.stderr, flush=True)


def print_json(value: object) -> None:
    """Print a value as JSON."""
    import msgspec

    print(msgspec.json.format(msgspec.json.encode(value), indent=2).decode(), flush=True)


def print_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print rows in columns."""
    table = [list(head), *(list(row) for row in rows)]
    widths = [max(len(row[column]) for row in table) for column in range(len(head))]
    for row in table:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def size(count: int) -> str:
    """Write bytes as people read them."""
    amount = float(count)
    for unit in ("B", "KB", "MB"):
        if amount < 1000:
            return f"{amount:.0f} {unit}"
        amount /= 1000
    return f"{amount:.2f} GB"
