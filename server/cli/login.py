"""``octavo login`` and ``octavo logout``: the token for the Hub, which never is an argument."""

import asyncio
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from octavo.server.cli.console import Json, answer

if TYPE_CHECKING:
    from octavo.core.client.types import TokenAnswer
    from octavo.core.hub.tokens import TokenPlace

TokenStdin = Annotated[bool, typer.Option("--token-stdin", help="Read the token from standard input.")]
_LONGEST = 4096


def login(token_stdin: TokenStdin = False, json: Json = False) -> None:
    """Keep a token for the Hub: in this system's keyring, or else in a file that only you can read.

    Without --token-stdin it is asked for at the terminal, unseen. Make one at huggingface.co/settings/tokens.
    """
    token = _read(token_stdin)
    answer(lambda: asyncio.run(_log_in(token)), json, _show_login)


def logout(json: Json = False) -> None:
    """Delete the token that login kept."""
    answer(lambda: asyncio.run(_log_out()), json, _show_logout)


def _read(from_stdin: bool) -> str:
    if from_stdin:
        # any bytes come through here: what is no token is said by who knows
        return sys.stdin.buffer.readline(_LONGEST).decode("utf-8", "replace").strip()
    if not sys.stdin.isatty():
        raise typer.BadParameter("there is no terminal to ask at; give --token-stdin")
    return str(typer.prompt("Token (it isn't shown)", hide_input=True, err=True)).strip()


async def _log_in(token: str) -> "TokenAnswer":
    from octavo.core.hub.tokens import checked_token
    from octavo.server.cli.hub_reach import reached

    token = checked_token(token)
    async with reached() as hub:
        if hub.service is not None:
            return await hub.service.keep_hub_token(token)
        return await hub.own.log_in(token)


async def _log_out() -> "TokenAnswer":
    from octavo.server.cli.hub_reach import reached

    async with reached() as hub:
        if hub.service is not None:
            return await hub.service.forget_hub_token()
        return await hub.own.log_out()


def _show_login(kept: "TokenAnswer") -> None:
    who = f" of {kept.account}" if kept.account else ""
    print(f"The token{who} is kept in {_place(kept.token)}.")
    if kept.account is None:
        print("The Hub could not be asked whether it is a good one.")


def _show_logout(left: "TokenAnswer") -> None:
    if not left.token.is_there:
        print("There is no token any more.")
        return
    print(f"The token that octavo kept is deleted; one still comes from {_place(left.token)}.")


def _place(place: "TokenPlace") -> str:
    names = {
        "keyring": f"the keyring ({place.place})",
        "file": f"the file {place.place}, which only you can read, since there is no keyring",
        "environment": f"the variable {place.place}",
        "hugging_face": f"Hugging Face's own file {place.place}",
    }
    return names.get(place.source, "nowhere")
