"""Which repository and which of its choices ``octavo get`` takes: by name, by search, by asking."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import typer

from octavo.server.cli.console import say, utf8
from octavo.server.cli.hub_words import show_page, show_repository

if TYPE_CHECKING:
    from octavo.core.client import ServiceClient
    from octavo.core.hub.types import Repository


def words(said: list[str] | None) -> list[str] | None:
    """Let words through that are text; usage error for other bytes."""
    for word in said or ():
        utf8(word)
    return said


@dataclass(frozen=True, slots=True)
class Asking:
    """How much is asked: ``yes`` nothing, ``select`` all; ``lists`` shows what there is first."""

    yes: bool = False
    select: bool = False
    lists: bool = False
    limit: int = 10

    @property
    def can_ask(self) -> bool:
        """Tell whether somebody is there to answer."""
        return not self.yes and sys.stdin.isatty()


async def chosen(
    client: "ServiceClient", name: str, choice: str | None, asking: Asking
) -> tuple[str, str | None, str | None]:
    """Give the repository, the choice and the revision.

    Raises ``HubFileNotFound`` and ``ModelNotFound`` with ``candidates`` where nobody can be asked.
    """
    from octavo.core.errors import InvalidRequest
    from octavo.core.hub.reference import Reference, is_reference, parse_reference

    endpoint = (await client.hub_status()).endpoint if "://" in name else ""
    if "/" in name or is_reference(name):
        reference = parse_reference(name, endpoint)
    else:
        text, _, quant = name.partition("@")
        if not text.strip():
            raise InvalidRequest(f"{name} names no model.", hint="Give org/name, or words of its name.")
        reference = Reference(await _searched(client, text.strip(), asking), quant.strip() or None)
    if choice and reference.wanted and choice != reference.wanted:
        raise InvalidRequest("More than one choice is named.", hint="Name one.")
    wanted = choice or reference.wanted
    if wanted is None or asking.select:
        found = await client.hub_model(reference.repo, reference.revision)
        wanted = wanted if wanted and not asking.select else _one_of(found, asking)
    return reference.repo, wanted, reference.revision


async def _searched(client: "ServiceClient", text: str, asking: Asking) -> str:
    from octavo.core.errors import ModelNotFound
    from octavo.core.hub.search import HubQuery

    page = await client.hub_search(HubQuery(text=text, limit=asking.limit))
    names = [model.id for model in page.models]
    if not names:
        raise ModelNotFound(f"Nothing on the Hub is called {text}.", hint="Try fewer words.")
    if len(names) == 1 and not asking.select:
        return names[0]
    if asking.can_ask or asking.lists:
        _to_stderr(lambda: show_page(page))
    if asking.yes:
        return names[0]
    if not asking.can_ask:
        raise ModelNotFound(
            f"{len(names)} repositories fit {text}.",
            hint=f"Name one, or take the first with -y: {', '.join(names)}.",
            candidates=names,
        )
    return _asked(names, names[0])


def _one_of(found: "Repository", asking: Asking) -> str | None:
    from octavo.core.errors import HubFileNotFound

    names = [choice.name for choice in found.choices]
    if not names or (len(names) == 1 and not asking.select):
        return names[0] if names else None  # the service says why there are none
    if asking.can_ask or asking.lists:
        _to_stderr(lambda: show_repository(found))
    if asking.yes and found.recommended:
        return found.recommended
    if not asking.can_ask:
        raise HubFileNotFound(
            f"{found.id} offers {len(names)} choices.",
            hint=f"Name one as {found.id}@QUANT, or take the recommended one with -y: {', '.join(names)}.",
            repo=found.id,
            candidates=names,
        )
    return _asked(names, found.recommended or names[0])


def _asked(names: Sequence[str], default: str) -> str:
    while True:
        said: str = typer.prompt("Which one", default=default, err=True)
        if said in names:
            return said
        say(f"There is no {said}.")


def _to_stderr(show: Callable[[], None]) -> None:
    from contextlib import redirect_stdout

    with redirect_stdout(sys.stderr):
        show()
