"""``octavo chat``: talk with a model in the terminal."""

import contextlib
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from octavo.server.cli.console import Json, answer, done, say

if TYPE_CHECKING:
    from octavo.server.cli.conversation import Answer

Model = Annotated[str | None, typer.Argument(help="A model; else the loaded or the first one.")]
Prompt = Annotated[str | None, typer.Option("--prompt", "-p", help="Ask this and end.")]
System = Annotated[str, typer.Option("--system", "-s", help="Instructions for the model.")]
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
            answer(lambda: conversation.ask(prompt), json, _end)
        else:
            _converse(conversation.ask, conversation.model, json)


def _converse(ask: "Callable[[str], Answer]", model: str, as_json: bool) -> None:
    if sys.stdin.isatty():
        say(f"Talking with {model}. /exit ends.")
    while (line := _line()) is not None:
        if line.strip() == "/exit":
            return
        if text := line.strip():
            _turn(ask, text, as_json)


def _turn(ask: "Callable[[str], Answer]", text: str, as_json: bool) -> None:
    try:
        answer(lambda: ask(text), as_json, _end)
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
