"""Headers of GGUF files on the Hub, read by ranges and kept on disk by repository, commit and path.

Of a split model the headers of all parts are read, up to ``MOST_PARTS``: part 1 has the metadata, but the
tensor table is spread over the parts, and part 1 may have none of it.
"""

import asyncio
import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

import msgspec

from octavo.core.config.settings import write_atomically
from octavo.core.errors import InvalidGguf, StorageFailed
from octavo.core.gguf import Description, Header, RangedSource, describe, joined, read_header
from octavo.core.gguf.shards import gathered
from octavo.core.hub.connection import Connection
from octavo.core.hub.ranges import RemoteFile
from octavo.core.hub.types import Choice, HubFile
from octavo.core.memory.shape import Shape, read_shape

AT_ONCE = 4
"""Headers that are read at the same time."""

MOST_PARTS = 16
KEPT = 400
_FORMAT = 1


class RemoteHeader(msgspec.Struct, frozen=True, kw_only=True):
    """What the header of a model on the Hub tells; sizes in bytes.

    ``header_bytes`` is what lies before the tensors, in all parts; ``requests`` and ``fetched_bytes`` are
    what reading it cost.
    """

    shape: Shape
    description: Description
    header_bytes: int
    requests: int
    fetched_bytes: int


class Headers:
    """Reads headers, a few at a time; belongs to one event loop. ``folder`` keeps what was read."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._reading: dict[str, asyncio.Lock] = {}

    async def read(self, connection: Connection, repo: str, revision: str, choice: Choice) -> RemoteHeader:
        """Read a choice's header; raises ``InvalidGguf`` for no sound model, and the errors of the Hub."""
        path = self._folder / f"{_key(connection.access.endpoint, repo, revision, choice)}.msgpack"
        lock = self._reading.setdefault(path.name, asyncio.Lock())
        async with lock:
            try:
                known = await asyncio.to_thread(_load, path)
                if known is None:
                    known = await self._fetch(connection, repo, revision, choice.files)
                    await asyncio.to_thread(_keep, path, known)
            finally:
                self._reading.pop(path.name, None)
        return known

    async def _fetch(
        self, connection: Connection, repo: str, revision: str, files: Sequence[HubFile]
    ) -> RemoteHeader:
        remotes = [RemoteFile(connection, repo, revision, file) for file in files[:MOST_PARTS]]
        headers = await self._all([(remote, file) for remote, file in zip(remotes, files, strict=False)])
        whole = joined(headers) if len(headers) == len(files) else gathered(headers)
        whole.check_loadable()
        return RemoteHeader(
            shape=read_shape(whole),
            description=describe(whole),
            header_bytes=sum(header.data_offset for header in headers),
            requests=sum(remote.requests for remote in remotes),
            fetched_bytes=sum(remote.fetched_bytes for remote in remotes),
        )

    async def _all(self, parts: list[tuple[RemoteFile, HubFile]]) -> list[Header]:
        """Read several headers; the first failure ends the others."""
        tasks = [asyncio.create_task(self._header(remote, file)) for remote, file in parts]
        try:
            return list(await asyncio.gather(*tasks))
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _header(self, remote: RemoteFile, file: HubFile) -> Header:
        async with self._slots:
            source = RangedSource(remote.fetch, file.size_bytes)
            try:
                return await asyncio.to_thread(read_header, source, file.path)
            except InvalidGguf as fault:
                # the hint comes right behind it, in the note of a choice
                raise InvalidGguf(_sentence(fault.message), hint=fault.hint, **fault.details) from fault
            finally:
                remote.stop()


def _sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else f"{text}."


def _key(endpoint: str, repo: str, revision: str, choice: Choice) -> str:
    said = [str(_FORMAT), endpoint, repo, revision, *(file.path for file in choice.files)]
    return hashlib.sha256("\0".join(said).encode("utf-8", "surrogatepass")).hexdigest()[:40]


def _load(path: Path) -> RemoteHeader | None:
    try:
        known = msgspec.msgpack.decode(path.read_bytes(), type=RemoteHeader)
        os.utime(path)  # what is used stays
    except (OSError, msgspec.DecodeError):
        return None
    return known


def _keep(path: Path, header: RemoteHeader) -> None:
    """Write a header down, and let go of those that weren't used for longest; a full disk is no failure."""
    try:
        write_atomically(path, msgspec.msgpack.encode(header))
        kept = sorted(path.parent.glob("*.msgpack"), key=lambda one: one.stat().st_mtime)
        for old in kept[:-KEPT]:
            old.unlink(missing_ok=True)
    except (StorageFailed, OSError):
        return
