"""How every verb speaks: data on stdout, all else on stderr, honest exit codes."""

import contextlib
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, NoReturn, TypeVar

import typer

if TYPE_CHECKING:
    from octavo.core.errors import OctavoError

Value = TypeVar("Value")

Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]

INTERRUPTED = 130


def answer(work: Callable[[], Value], as_json: bool, show: Callable[[Value], None]) -> Value:
    """Do a verb's work, print and give what came of it; a failure ends the program with exit code 1."""
    value = done(work, as_json)
    if as_json:
        print_json(value)
    else:
        show(value)
    return value


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


def utf8(value: str | None) -> str | None:
    """Let an argument through that is text, for what is sent to the service; usage error for other bytes."""
    if value is not None and any("\ud800" <= character <= "\udfff" for character in value):
        raise typer.BadParameter("it holds bytes that are no UTF-8 text")
    return value


@contextlib.contextmanager
def usage() -> Iterator[None]:
    """Turn what is wrong with the words of the command line into a usage error (exit code 2)."""
    from octavo.core.errors import InvalidRequest

    try:
        yield
    except InvalidRequest as error:
        raise typer.BadParameter(str(error)) from error


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


MIB, GIB = 1 << 20, 1 << 30


def amount(count: float) -> str:
    """Write bytes of memory in GiB, MiB or KiB (powers of 1024), with a digit where it is small."""
    if count >= GIB:
        return f"{count / GIB:.2f} GiB"
    if count >= 100 * MIB:
        return f"{count / MIB:.0f} MiB"
    if count >= MIB / 10 or count == 0:
        return f"{count / MIB:.1f} MiB"
    return f"{count / 1024:.1f} KiB"


def size(count: int) -> str:
    """Write bytes of a file as the Hub and file managers do, in MB and GB (powers of 1000)."""
    amount = float(count)
    for unit in ("B", "KB", "MB"):
        if amount < 1000:
            return f"{amount:.0f} {unit}"
        amount /= 1000
    return f"{amount:.2f} GB"
