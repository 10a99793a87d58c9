"""``octavo search``: find models on the Hub, or list what one repository offers for this machine."""

import asyncio
import re
from typing import TYPE_CHECKING, Annotated, Any

import typer

from octavo.server.cli.choosing import words
from octavo.server.cli.console import Json, answer, utf8
from octavo.server.cli.hub_words import show_page, show_repository

if TYPE_CHECKING:
    from octavo.core.hub.types import Repository, SearchPage

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "b": 10**9, "t": 10**12}
SORTS = ("downloads", "likes", "modified", "trending", "created")


def _parameters(text: str | None) -> str | None:
    if text is not None and parsed_count(text) is None:
        raise typer.BadParameter(f"a size is written 8B, 500M or as a number, not {text!r}")
    return text


def _sort(text: str) -> str:
    if text not in SORTS:
        raise typer.BadParameter(f"choose one of {', '.join(SORTS)}")
    return text


Query = Annotated[
    list[str] | None, typer.Argument(metavar="[QUERY]", callback=words, help="Words of its name.")
]
Repo = Annotated[
    str | None, typer.Option("--repo", callback=utf8, help="List the choices of this repository instead.")
]
Author = Annotated[str | None, typer.Option("--author", callback=utf8, help="An organisation or a person.")]
Order = Annotated[str, typer.Option("--sort", callback=_sort, help=f"{', '.join(SORTS)}.")]
Gated = Annotated[
    bool | None, typer.Option("--gated/--no-gated", help="Only those whose terms must be accepted; or none.")
]
Architecture = Annotated[
    str | None, typer.Option("--arch", "--architecture", callback=utf8, help="llama, qwen3moe …")
]
Least = Annotated[
    str | None, typer.Option("--min-params", callback=_parameters, help="Parameters at least: 3B.")
]
Most = Annotated[
    str | None, typer.Option("--max-params", callback=_parameters, help="Parameters at most: 8B.")
]
Limit = Annotated[int, typer.Option("-n", "--limit", min=1, max=100, help="How many.")]
Page = Annotated[str | None, typer.Option("--page", help="Go on where a search ended.")]


def search(
    query: Query = None,
    repo: Repo = None,
    author: Author = None,
    sort: Order = "downloads",
    gated: Gated = None,
    architecture: Architecture = None,
    min_params: Least = None,
    max_params: Most = None,
    limit: Limit = 20,
    page: Page = None,
    json: Json = False,
) -> None:
    """Find models on the Hub; with --repo, tell which of its files suits this machine."""
    if repo is not None:
        if query:
            raise typer.BadParameter("give words to search for, or --repo, not both")
        show_choices(repo, json)
        return
    fields: dict[str, Any] = {
        "text": " ".join(query or ()),
        "author": author,
        "sort": sort,
        "gated": gated,
        "architecture": architecture,
        "min_parameters": parsed_count(min_params or ""),
        "max_parameters": parsed_count(max_params or ""),
        "limit": limit,
        "page": page,
    }
    answer(lambda: asyncio.run(_search(fields)), json, show_page)


def show_choices(name: str, as_json: bool) -> None:
    """List what a repository offers, judged for this machine, and print it."""
    answer(lambda: asyncio.run(_choices(name)), as_json, show_repository)


def parsed_count(text: str) -> int | None:
    """Read a number of parameters such as ``8B`` or ``500M``; None for anything else."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmbt]?)\s*", text.lower())
    return int(float(found[1]) * _UNITS[found[2]]) if found else None


async def _search(fields: dict[str, Any]) -> "SearchPage":
    from octavo.core.hub.search import HubQuery
    from octavo.server.cli.hub_reach import reached

    wish = HubQuery(**fields)
    async with reached() as hub:
        if hub.service is not None:
            return await hub.service.hub_search(wish)
        return await hub.own.client.search(wish)


async def _choices(name: str) -> "Repository":
    from octavo.core.hub.reference import parse_reference
    from octavo.server.cli.hub_reach import reached

    asked = parse_reference(name)
    async with reached() as hub:
        if hub.service is not None:
            return await hub.service.hub_model(asked.repo, asked.revision)
        found = await hub.own.client.repository(asked.repo, asked.revision)
        return await hub.own.choices.judged(found)
