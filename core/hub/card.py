"""A repository's card: the text of its README.md, as it was written.

It is a stranger's Markdown: raw HTML in it is for the view to escape, and nothing that it names is fetched.
"""

import re

import msgspec

from octavo.core.errors import HubFileNotFound
from octavo.core.hub.connection import Connection
from octavo.core.hub.failures import is_page, page_instead
from octavo.core.hub.names import checked_repo
from octavo.core.hub.repository import DEFAULT_REVISION

README = "README.md"
MOST_BYTES = 512 << 10
"""Bytes of a card that are shown; longer ones are cut."""

_FRONT_MATTER = re.compile(r"---[ \t]*\n(.*?)\n?^(?:---|\.\.\.)[ \t]*$\n?", re.DOTALL | re.MULTILINE)


class Card(msgspec.Struct, frozen=True, kw_only=True):
    """A card's Markdown, empty where there is none; ``front_matter`` is the YAML before it, as it is."""

    text: str
    front_matter: str = ""
    is_cut: bool = False


async def read_card(connection: Connection, repo: str, revision: str = DEFAULT_REVISION) -> Card:
    """Read a repository's card; raises the errors of ``failures``."""
    path = connection.file_path(checked_repo(repo), revision, README)
    try:
        async with connection.answer(path, repo=repo, file=README) as response:
            if response.status_code >= 300:
                raise connection.failure(response, repo, README)
            if is_page(response):
                raise page_instead(response, "the card", endpoint=connection.access.endpoint)
            body = bytearray()
            async for piece in response.aiter_bytes(1 << 14):
                body += piece
                if len(body) > MOST_BYTES:
                    break
    except HubFileNotFound:
        return Card(text="")
    return split_card(bytes(body[:MOST_BYTES]), is_cut=len(body) > MOST_BYTES)


def split_card(data: bytes, *, is_cut: bool = False) -> Card:
    """Take the front matter off; bytes that are no UTF-8 become U+FFFD."""
    text = data.decode("utf-8-sig", "replace").replace("\r\n", "\n")
    found = _FRONT_MATTER.match(text)
    if found is None:
        return Card(text=text, is_cut=is_cut)
    return Card(text=text[found.end() :].lstrip("\n"), front_matter=found[1], is_cut=is_cut)
