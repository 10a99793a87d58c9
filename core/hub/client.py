"""The Hub as the rest of Octavo uses it: search, listings, cards and headers, over one connection."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Self

from octavo.core.hub.account import account_of, with_token
from octavo.core.hub.card import Card, read_card
from octavo.core.hub.connection import Connection
from octavo.core.hub.headers import Headers, RemoteHeader
from octavo.core.hub.repository import DEFAULT_REVISION, read_repository
from octavo.core.hub.search import HubQuery, search
from octavo.core.hub.types import Access, Choice, Repository, SearchPage


class HubClient:
    """Asks the Hub; belongs to one event loop.

    ``access`` tells how, anew for each question, and may block; ``cache`` is a folder for headers. All
    methods raise the errors of ``failures``, and ``HubOffline`` before any request where that is how it is.
    """

    def __init__(self, access: Callable[[], Access], cache: Path) -> None:
        self._access = access
        self._headers = Headers(cache / "hub")
        self._connection: Connection | None = None
        self._former: list[Connection] = []

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_fault: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close all connections."""
        for connection in (*self._former, *([self._connection] if self._connection else [])):
            await connection.aclose()

    async def access(self) -> Access:
        """Tell how the Hub is reached now."""
        return await asyncio.to_thread(self._access)

    async def search(self, query: HubQuery) -> SearchPage:
        """Look for repositories with GGUF files."""
        return await search(await self._reach(), query)

    async def repository(self, repo: str, revision: str = DEFAULT_REVISION) -> Repository:
        """List what a repository offers; raises ``RepositoryNotFound`` and ``GatedRepository``."""
        return await read_repository(await self._reach(), repo, revision)

    async def card(self, repo: str, revision: str = DEFAULT_REVISION) -> Card:
        """Read a repository's card."""
        return await read_card(await self._reach(), repo, revision)

    async def header(self, repository: Repository, choice: Choice) -> RemoteHeader:
        """Read the header of a choice; raises ``InvalidGguf`` where it is no sound model."""
        return await self._headers.read(await self._reach(), repository.id, repository.revision, choice)

    async def account(self, token: str | None = None) -> str:
        """Ask whose token it is, of the one in use or of another; raises ``HubRefused`` for a wrong one."""
        connection = await self._reach()
        if token is None:
            return await account_of(connection)
        async with Connection(with_token(connection.access, token)) as other:
            return await account_of(other)

    async def _reach(self) -> Connection:
        access = await self.access()
        if self._connection is None or self._connection.access != access:
            if self._connection is not None:
                self._former.append(self._connection)  # it may be in use still
            self._connection = Connection(access)
        return self._connection
