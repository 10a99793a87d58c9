"""``octavo chat``: talk with a model in the terminal."""

import contextlib
import io
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from octavo.server.cli.console import INTERRUPTED, Json, answer, done, say, utf8

if TYPE_CHECKING:
    from octavo.server.cli.conversation import Answer


def _said(prompt: str | None) -> str | None:
    if prompt is not None and not prompt.strip():
        raise typer.BadParameter("it is empty")
    return utf8(prompt)


Model = Annotated[
    str | None, typer.Argument(callback=utf8, help="A model; else the loaded or the first one.")
]
Prompt = Annotated[str | None, typer.Option("--prompt", "-p", callback=_said, help="Ask this and end.")]
System = Annotated[str, typer.Option("--system", "-s", callback=utf8, help="Instructions for the model.")]
Temperature = Annotated[float | None, typer.Option("--temperature", "-t", min=0, help="0 never varies.")]
MaxTokens = Annotated[int | None, typer.Option("--max-tokens", min=1, help="Most tokens of an answer.")]
Seed = Annotated[int | None, typer.Option("--seed", help="The same seed gives the same answer.")]


def chat(
    model: Model = None,
    prompt: Prompt = None,
    system: System = "",
    temperature: Temperature = None,
    max_tokens: MaxTokens = None,
    seed: Seed = None,
    json: Json = False,
) -> None:
    """Talk with a model; answers stream. /exit or the end of input ends the conversation."""
    from octavo.server.cli.conversation import Conversation

    fields = {"temperature": temperature, "max_tokens": max_tokens, "seed": seed}
    with Conversation(system, fields, quiet=json) as conversation:
        done(lambda: conversation.begin(model), json)
        if prompt is not None:
            _ask_once(lambda: conversation.ask(prompt), json)
        else:
            _converse(conversation.ask, conversation.model, json)


def _ask_once(ask: "Callable[[], Answer]", as_json: bool) -> None:
    if answer(ask, as_json, _end).finish_reason == "cancelled":
        raise typer.Exit(INTERRUPTED)


def _converse(ask: "Callable[[str], Answer]", model: str, as_json: bool) -> None:
    if sys.stdin.isatty():
        say(f"Talking with {model}. /exit ends.")
    elif isinstance(sys.stdin, io.TextIOWrapper):
        # what is no UTF-8 is refused like any other request, not by the decoder
        sys.stdin.reconfigure(encoding="utf-8", errors="surrogateescape")
    while (line := _line()) is not None:
        if line.strip() == "/exit":
            return
        if text := line.strip():
            _turn(ask, text, as_json)


def _turn(ask: "Callable[[str], Answer]", text: str, as_json: bool) -> None:
    try:
        if sys.stdin.isatty():
            answer(lambda: ask(text), as_json, _end)
        else:
            _ask_once(lambda: ask(text), as_json)
    except typer.Exit:
        # who sits at the terminal has read the error and may ask again
        if not sys.stdin.isatty():
            raise


def _line() -> str | None:
    if not sys.stdin.isatty():
        return sys.stdin.readline() or None
    with contextlib.suppress(ImportError):  # Windows has none
        import readline  # noqa: F401 - editing and history for input()
    try:
        return input("> ")
    except (EOFError, KeyboardInterrupt):
        print()
        return None


def _end(given: "Answer") -> None:
    print()
    if sys.stderr.isatty():
        say(given.summary)
