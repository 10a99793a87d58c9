"""A file of a repository as a source of bytes for the header's reader: fetched by ranges.

The Hub answers with a redirect to a CDN; its address is kept for the ranges that follow. Neither it nor any
other origin sees the token.
"""

import asyncio
import re
import threading
from concurrent.futures import CancelledError, Future

import httpx2

from octavo.core.errors import Cancelled, DownloadFailed, HubUnreachable
from octavo.core.hub.connection import RETRY_AFTER_S, Connection
from octavo.core.hub.failures import is_page, page_instead
from octavo.core.hub.types import HubFile

MOST_BYTES = 64 << 20
"""Bytes of one file that are fetched at most; the longest honest headers take about 30 MB."""

_AGAIN = frozenset({500, 502, 503, 504})
_EXPIRED = frozenset({400, 401, 403, 404, 410})


class RemoteFile:
    """Ranges of one file; ``fetch`` is called on a thread beside the event loop that this was made in."""

    def __init__(self, connection: Connection, repo: str, revision: str, file: HubFile) -> None:
        self._connection = connection
        self._repo, self._file = repo, file
        self._path = connection.file_path(repo, revision, file.path)
        self._direct: str | None = None
        self._loop = asyncio.get_running_loop()
        self._stopped = threading.Event()
        self._pending: Future[bytes] | None = None
        self.fetched_bytes = 0
        self.requests = 0

    def stop(self) -> None:
        """End what is being fetched, and refuse what would come."""
        self._stopped.set()
        if self._pending is not None:
            self._pending.cancel()

    def fetch(self, start: int, stop: int) -> bytes:
        """Get the bytes from ``start`` up to ``stop``, on a thread beside the loop's."""
        if self._stopped.is_set():
            raise Cancelled("The header is not needed any more.")
        if self.fetched_bytes + stop - start > MOST_BYTES:
            raise DownloadFailed(
                f"The header of {self._file.path} is longer than {MOST_BYTES >> 20} MiB.",
                repo=self._repo,
                file=self._file.path,
            )
        try:
            self._pending = asyncio.run_coroutine_threadsafe(self._get(start, stop), self._loop)
            data = self._pending.result()
        except CancelledError as fault:
            raise Cancelled("The header is not needed any more.") from fault
        self.fetched_bytes += len(data)
        return data

    async def _get(self, start: int, stop: int) -> bytes:
        for pause in (*RETRY_AFTER_S, None):
            try:
                data = await self._once(start, stop, is_last=pause is None)
            except (httpx2.RemoteProtocolError, httpx2.ReadError, httpx2.WriteError) as fault:
                if pause is None:
                    raise self._connection.failure(fault, self._repo, self._file.path) from fault
                data = None
            if data is not None:
                return data
            await asyncio.sleep(pause or 0)
        raise AssertionError(start)

    async def _once(self, start: int, stop: int, *, is_last: bool) -> bytes | None:
        """Get a range; None where it should be tried again."""
        self.requests += 1
        async with self._connection.answer(
            self._direct or self._path,
            repo=self._repo,
            file=self._file.path,
            headers={"Range": f"bytes={start}-{stop - 1}", "Accept-Encoding": "identity"},
        ) as response:
            if self._direct and response.status_code in _EXPIRED and not is_last:
                self._direct = None  # the address on the CDN was signed for an hour or so
                return None
            if response.status_code in _AGAIN and not is_last:
                return None
            self._check(response, start)
            if response.history and not self._connection.is_ours(str(response.url)):
                self._direct = str(response.url)
            return await _first(response, stop - start)

    def _check(self, response: httpx2.Response, start: int) -> None:
        """Raise unless these are the bytes that were asked for."""
        file = self._file.path
        if response.status_code >= 300:
            raise self._connection.failure(response, self._repo, file)
        if is_page(response):
            raise page_instead(response, file, endpoint=self._connection.access.endpoint)
        told = re.fullmatch(r"bytes (\d+)-\d+/(\d+|\*)", response.headers.get("Content-Range", ""))
        begins = int(told[1]) if told else 0
        is_packed = response.headers.get("Content-Encoding", "identity") != "identity"
        if begins != start or is_packed or (response.status_code == 206 and told is None):
            raise HubUnreachable(
                f"{response.url.host} doesn't give parts of a file: its header can't be read from here.",
                hint="The file can still be downloaded.",
                endpoint=self._connection.access.endpoint,
            )
        total = told[2] if told else response.headers.get("Content-Length", "*")
        if total.isdigit() and int(total) != self._file.size_bytes:
            raise DownloadFailed(
                f"{file} is listed with {self._file.size_bytes:,} bytes, but has {int(total):,}.",
                hint="Its repository may be changing right now; try again later.",
                repo=self._repo,
                file=file,
            )


async def _first(response: httpx2.Response, count: int) -> bytes:
    """Read ``count`` bytes of an answer and leave the rest: a server may send the whole file."""
    body = bytearray()
    async for piece in response.aiter_bytes(1 << 16):
        body += piece
        if len(body) >= count:
            break
    return bytes(body[:count])
