"""Requests to the Hub over httpx2: with deadlines, bounded answers, and one typed error for each failure.

huggingface_hub's ``HfApi`` speaks the same routes, but its ``list_models`` has no pages to stop at and go on
from, no timeout and no way to be cancelled, and one client for the whole process, whose endpoint and proxy
are fixed when it is imported. So its documented routes are asked directly.
"""

import asyncio
import functools
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Self, TypeVar
from urllib.parse import quote

import httpx2
import msgspec

from octavo.core import __version__
from octavo.core.errors import HubUnreachable
from octavo.core.hub.access import require_online
from octavo.core.hub.failures import failure_of, is_page, page_instead
from octavo.core.hub.types import Access

CONNECT_S, READ_S = 10.0, 30.0
DEADLINE_S = 60.0
"""Seconds for a whole answer, however slowly it drips."""

MOST_BYTES = 32 << 20
"""Bytes of an answer, unpacked; the longest listings are a few MB."""

RETRY_AFTER_S = (0.3, 1.0)
_RETRIED = frozenset({500, 502, 503, 504})
_BROKEN = (httpx2.RemoteProtocolError, httpx2.ReadError, httpx2.WriteError)

Params = Mapping[str, str | list[str]]
Value = TypeVar("Value")


class Page(msgspec.Struct, frozen=True):
    """An answer's bytes, and the address of what comes after it (``Link: …; rel="next"``)."""

    body: bytes
    next_url: str | None = None


class Connection:
    """Connections to the Hub as one ``Access`` reaches it; belongs to one event loop."""

    def __init__(self, access: Access) -> None:
        self.access = access
        self._http: httpx2.AsyncClient | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_fault: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close all connections."""
        if self._http is not None:
            await self._http.aclose()

    async def json(
        self, path: str, kind: type[Value], params: Params | None = None, *, repo: str | None = None
    ) -> Value:
        """Ask one of the Hub's API routes and read the answer as ``kind``."""
        return self.read(await self.page(path, params, repo=repo), kind)

    def read(self, page: Page, kind: type[Value]) -> Value:
        """Read an answer as ``kind``; raises ``HubUnreachable`` for what is no such thing."""
        try:
            return msgspec.json.decode(page.body, type=kind)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as fault:
            raise HubUnreachable(
                f"{self.access.endpoint} answers what no Hub does.",
                hint="Look at the Hub's address (HF_ENDPOINT).",
                endpoint=self.access.endpoint,
            ) from fault

    async def page(
        self,
        path: str,
        params: Params | None = None,
        *,
        repo: str | None = None,
        file: str | None = None,
        most_bytes: int = MOST_BYTES,
    ) -> Page:
        """Get a whole answer; one that is longer than ``most_bytes`` raises ``HubUnreachable``.

        A server's own trouble (5xx) and a connection that breaks are tried again twice, soon.
        """
        for pause in (*RETRY_AFTER_S, None):
            try:
                async with self.answer(path, params, repo=repo, file=file) as response:
                    if pause is None or response.status_code not in _RETRIED:
                        return await self._whole(response, repo, file, most_bytes)
            except _BROKEN as fault:
                if pause is None:
                    raise self.failure(fault, repo, file) from fault
            await asyncio.sleep(pause)
        raise AssertionError(path)

    @asynccontextmanager
    async def answer(
        self,
        path: str,
        params: Params | None = None,
        *,
        repo: str | None = None,
        file: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> AsyncIterator[httpx2.Response]:
        """Ask for a path of the Hub, or for a whole URL; the token goes to the Hub's own origin only.

        Any status comes out. A broken connection comes out as httpx2's error, since ``page`` tries again; all
        other faults of the network are ``HubUnreachable``.
        """
        require_online(self.access)
        url = path if "://" in path else self.access.endpoint + path
        sent = {"Accept": "*/*", **self._token_for(url), **(headers or {})}
        http = await self._client()
        try:
            async with (
                asyncio.timeout(DEADLINE_S),
                http.stream("GET", url, params=params, headers=sent) as response,
            ):
                yield response
        except _BROKEN:
            raise
        except (httpx2.HTTPError, httpx2.InvalidURL, TimeoutError, OSError) as fault:
            raise self.failure(fault, repo, file) from fault

    def failure(
        self, fault: httpx2.Response | BaseException, repo: str | None = None, file: str | None = None
    ) -> Exception:
        """Make the error for an answer or a fault."""
        return failure_of(fault, repo, file, endpoint=self.access.endpoint, proxy=self.access.proxy)

    def file_path(self, repo: str, revision: str, file: str) -> str:
        """Give the path that a file is fetched from."""
        return f"/{repo}/resolve/{quote(revision, safe='')}/{quote(file)}"

    def is_ours(self, url: str) -> bool:
        """Tell whether a URL has the Hub's own origin."""
        return httpx2.URL(url).origin == httpx2.URL(self.access.endpoint).origin

    async def _whole(
        self, response: httpx2.Response, repo: str | None, file: str | None, most_bytes: int
    ) -> Page:
        if response.status_code >= 300:
            raise self.failure(response, repo, file)
        if is_page(response):
            raise page_instead(response, endpoint=self.access.endpoint)
        body = bytearray()
        async for piece in response.aiter_bytes(1 << 16):
            body += piece
            if len(body) > most_bytes:
                raise HubUnreachable(
                    f"{response.url.host} sends more than {most_bytes >> 10:,} KiB where little is expected.",
                    endpoint=self.access.endpoint,
                )
        return Page(bytes(body), response.links.get("next", {}).get("url"))

    def _token_for(self, url: str) -> dict[str, str]:
        token = self.access.token
        return {"Authorization": f"Bearer {token}"} if token and self.is_ours(url) else {}

    async def _client(self) -> httpx2.AsyncClient:
        if self._http is None:
            trusted = await asyncio.to_thread(_trusted)
            # another request may have made it in the meantime
            self._http = self._http or httpx2.AsyncClient(
                verify=trusted,
                proxy=self.access.proxy,
                trust_env=False,  # the environment was read into the access; no .netrc, no other proxy
                timeout=httpx2.Timeout(READ_S, connect=CONNECT_S, pool=CONNECT_S),
                follow_redirects=True,
                max_redirects=5,
                headers={"User-Agent": f"octavo/{__version__}"},
            )
        return self._http


@functools.cache
def _trusted() -> ssl.SSLContext:
    """Load the trusted certificates (SSL_CERT_FILE counts); up to half a second, so in a thread and once."""
    return httpx2.create_ssl_context()
