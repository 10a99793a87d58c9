"""The typed client of the service's control door, one method per route."""

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Self, TypeVar
from urllib.parse import quote

import httpx2
import msgspec

from octavo.core.chats.types import Chat, ChatSummary, ReplyEvent, ReplyStarted
from octavo.core.client import wire
from octavo.core.client.downloads import DownloadCalls
from octavo.core.client.endpoint import open_http, read_endpoint, unavailable
from octavo.core.client.hub import HubCalls
from octavo.core.client.library import LibraryCalls
from octavo.core.client.start import StartedService
from octavo.core.client.stream import event_bytes
from octavo.core.client.types import (
    ChatPiece,
    EstimateAnswer,
    Health,
    ImportAnswer,
    KeptSnapshot,
    LoadAnswer,
    MemoryAnswer,
    MemoryEvent,
    PinAnswer,
    ServerStatus,
    StreamEvent,
    UnloadAnswer,
)
from octavo.core.config.paths import Home
from octavo.core.errors import InvalidRequest, ServiceUnavailable
from octavo.core.events import FiguresSampled, InstanceStatus
from octavo.core.memory.figures import MemoryDetail, PagesMoved, Pin
from octavo.core.memory.layout import MapLayout

Answer = TypeVar("Answer")

START_POLL_S = 0.05
NOT_MODIFIED = 304


class ServiceClient(DownloadCalls, HubCalls, LibraryCalls):
    """Talks to the service; every method raises the same ``OctavoError`` that the service raised.

    A client belongs to the event loop that it was made in. A lost connection is ``ServiceUnavailable``.
    """

    def __init__(self, http: httpx2.AsyncClient) -> None:
        self._http = http

    @classmethod
    async def connect(cls, home: Home) -> Self:
        """Connect to the running service; raises ``ServiceUnavailable`` when none answers."""
        client = cls(open_http(read_endpoint(home)))
        try:
            await client.health()
        except BaseException as fault:
            await client.aclose()
            if isinstance(fault, ServiceUnavailable):
                raise unavailable(home) from fault
            raise
        return client

    @classmethod
    async def start_or_connect(cls, home: Home, deadline_s: float = 15.0) -> Self:
        """Connect, after starting the service detached when none runs; racing starts end with one service."""
        try:
            return await cls.connect(home)
        except ServiceUnavailable:
            started = StartedService(home)
        give_up = time.monotonic() + deadline_s
        while True:
            try:
                return await cls.connect(home)
            except ServiceUnavailable:
                started.check()
                if time.monotonic() > give_up:
                    raise
            await asyncio.sleep(START_POLL_S)

    async def aclose(self) -> None:
        """Close all connections; streams that are being read end."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_fault: object) -> None:
        await self.aclose()

    async def health(self) -> Health:
        """Ask for a sign of life."""
        return await self._ask("GET", "/health", Health)

    async def load(
        self,
        model: str,
        fields: Mapping[str, object] | None = None,
        identifier: str | None = None,
        ttl_s: float | None = None,
        lease: str | None = None,
        *,
        force: bool = False,
    ) -> LoadAnswer:
        """Load a model; with ``lease`` it goes with that lease. Cancelling the call cancels the load.

        Raises ``InsufficientMemory`` for what would not run, unless ``force`` is given.
        """
        body = {**(fields or {}), "model": model, "identifier": identifier, "ttl": ttl_s, "force": force}
        headers = {"Octavo-Lease": lease} if lease else {}
        return await self._ask("POST", "/api/v1/models/load", LoadAnswer, body, headers)

    async def estimate(
        self,
        model: str,
        fields: Mapping[str, object] | None = None,
        *,
        budget_bytes: int | None = None,
        rule_of_thumb: bool = False,
    ) -> EstimateAnswer:
        """Ask what a load would need and what would come of it."""
        body = {
            **(fields or {}),
            "model": model,
            "budget_bytes": budget_bytes,
            "rule_of_thumb": rule_of_thumb,
        }
        return await self._ask("POST", "/api/v1/estimate", EstimateAnswer, body)

    async def unload(self, instance: str) -> UnloadAnswer:
        """Unload an instance."""
        return await self._ask("POST", "/api/v1/models/unload", UnloadAnswer, {"instance_id": instance})

    async def import_model(
        self,
        path: str,
        repo: str | None = None,
        mode: str | None = None,
        dry_run: bool = False,
        **options: object,
    ) -> ImportAnswer:
        """Bring a model or a folder into the library; the service moves it. Cancelling the call cancels that.

        Options are ``projector``, ``with_projector``, ``look_up`` and ``id``.
        """
        body = {**options, "path": path, "repo": repo, "mode": mode, "dry_run": dry_run}
        return await self._ask("POST", "/api/v1/models/import", ImportAnswer, body)

    async def cancel_import(self, name: str) -> None:
        """Call off the imports of that ``id``; their own calls then raise ``Cancelled``, or were done."""
        await self._ask("POST", f"/api/v1/models/import/{_part(name)}/cancel", dict[str, Any], {})

    async def instances(self) -> list[InstanceStatus]:
        """List what is loaded or loading."""
        return await self._ask("GET", "/api/v1/instances", list[InstanceStatus])

    async def figures(self) -> FiguresSampled:
        """Sample memory and speed now."""
        return await self._ask("GET", "/api/v1/figures", FiguresSampled)

    async def memory(self) -> MemoryAnswer:
        """Ask for all that is known of the machine's memory and of every loaded model's."""
        return await self._ask("GET", "/api/v1/memory", MemoryAnswer)

    async def memory_of(self, instance: str) -> MemoryDetail:
        """Ask for all that is known of one loaded model's memory."""
        return await self._ask("GET", _memory(instance), MemoryDetail)

    async def memory_stream(self, *, residency: bool = False) -> AsyncGenerator[MemoryEvent, None]:
        """Follow the memory, four samples a second; with ``residency`` its maps are scanned each second."""
        decoder = msgspec.json.Decoder[MemoryEvent](MemoryEvent)
        query = "?residency=1" if residency else ""
        async with self._stream("GET", f"/api/v1/memory/stream{query}") as events:
            async for data in events:
                yield wire.decode(decoder, data)

    async def memory_layout(self, instance: str) -> MapLayout:
        """Ask what the cells of a model's residency map stand for."""
        return await self._ask("GET", _memory(instance, "layout"), MapLayout)

    async def residency(
        self, instance: str, since: int | None = None, *, generation: int | None = None
    ) -> tuple[int, bytes] | None:
        """Read a residency map: its generation, and one byte a cell; None: nothing changed ``since`` that.

        ``generation`` asks for a kept one; raises ``SnapshotNotKept`` when it is too old.
        """
        asked = {"since": since, "generation": generation}
        query = "&".join(f"{name}={value}" for name, value in asked.items() if value is not None)
        async with self._answer("GET", _memory(instance, "residency") + (query and f"?{query}")) as response:
            if response.status_code == NOT_MODIFIED:
                return None
            return int(response.headers["Octavo-Generation"]), await response.aread()

    async def residency_history(self, instance: str) -> list[KeptSnapshot]:
        """List the residency maps that are kept, the oldest first."""
        return await self._ask("GET", _memory(instance, "history"), list[KeptSnapshot])

    async def warm(self, instance: str, layers: Sequence[int] | None = None) -> PagesMoved:
        """Bring a model's pages, or some layers', into memory; cancelling the call stops it."""
        return await self._ask("POST", _memory(instance, "warm"), PagesMoved, {"layers": layers})

    async def drop(self, instance: str, layers: Sequence[int] | None = None) -> PagesMoved:
        """Drop a model's pages, or some layers', from memory; raises ``PagesArePinned`` for pinned ones."""
        return await self._ask("POST", _memory(instance, "drop"), PagesMoved, {"layers": layers})

    async def pin(
        self, instance: str, layers: Sequence[int] | None = None, *, is_on: bool = True
    ) -> Pin | None:
        """Keep a model's pages, or some layers', in memory, or let go of them; gives what is kept then."""
        body = {"layers": layers, "on": is_on}
        return (await self._ask("POST", _memory(instance, "pin"), PinAnswer, body)).pin

    async def settings(self) -> dict[str, Any]:
        """Read all preferences, by group."""
        return await self._ask("GET", "/api/v1/settings", dict[str, Any])

    async def change_settings(self, group: str, **values: object) -> dict[str, Any]:
        """Set preferences of one group; gives all preferences."""
        return await self._ask("PATCH", "/api/v1/settings", dict[str, Any], {group: values})

    async def server(self) -> ServerStatus:
        """Ask whether the public port is open."""
        return await self._ask("GET", "/api/v1/server", ServerStatus)

    async def start_server(self, **options: object) -> ServerStatus:
        """Open the public port; options are ``host``, ``port``, ``cors``, ``jit``."""
        return await self._ask("POST", "/api/v1/server/start", ServerStatus, options)

    async def stop_server(self) -> ServerStatus:
        """Close the public port."""
        return await self._ask("POST", "/api/v1/server/stop", ServerStatus, {})

    async def stop_service(self) -> None:
        """End the service; it answers first."""
        await self._ask("POST", "/api/v1/service/stop", dict[str, Any], {})

    async def chats(self) -> list[ChatSummary]:
        """List conversations, the newest first."""
        return await self._ask("GET", "/api/v1/chats", list[ChatSummary])

    async def create_chat(self, **fields: object) -> Chat:
        """Begin a conversation; fields are ``title``, ``model``, ``system_prompt``, ``sampling``."""
        return await self._ask("POST", "/api/v1/chats", Chat, fields)

    async def chat(self, chat: str) -> Chat:
        """Read a conversation."""
        return await self._ask("GET", f"/api/v1/chats/{_part(chat)}", Chat)

    async def update_chat(self, chat: str, **fields: object) -> Chat:
        """Change a conversation's title, model, system prompt or sampling."""
        return await self._ask("PATCH", f"/api/v1/chats/{_part(chat)}", Chat, fields)

    async def delete_chat(self, chat: str) -> None:
        """Delete a conversation."""
        await self._ask("DELETE", f"/api/v1/chats/{_part(chat)}", dict[str, Any])

    async def reply(self, chat: str, content: str | None = None, model: str | None = None) -> ReplyStarted:
        """Answer a new turn of the person, or without ``content`` answer the last turn again."""
        body = {"content": content, "model": model}
        return await self._ask("POST", f"/api/v1/chats/{_part(chat)}/replies", ReplyStarted, body)

    async def follow(self, reply: str) -> AsyncGenerator[ReplyEvent, None]:
        """Join a reply at any time: first all text so far, then what comes, last its end."""
        decoder = msgspec.json.Decoder[ReplyEvent](ReplyEvent)
        async with self._stream("GET", f"/api/v1/replies/{_part(reply)}/events") as events:
            async for data in events:
                yield wire.decode(decoder, data)

    async def stop_reply(self, reply: str) -> None:
        """Stop a reply; its text so far stays."""
        await self._ask("POST", f"/api/v1/replies/{_part(reply)}/stop", dict[str, Any], {})

    async def events(self, lease: str | None = None) -> AsyncGenerator[StreamEvent, None]:
        """Follow what happens; with ``lease`` (its kind) the stream holds a lease until it closes."""
        decoder = msgspec.json.Decoder[StreamEvent](StreamEvent)
        query = f"?lease={_part(lease)}" if lease else ""
        async with self._stream("GET", f"/api/v1/events{query}") as events:
            async for data in events:
                yield wire.decode(decoder, data)

    async def complete_chat(
        self, model: str, messages: Sequence[Mapping[str, object]], **fields: object
    ) -> AsyncGenerator[ChatPiece, None]:
        """Stream an answer in the OpenAI dialect; ``fields`` are that route's own."""
        body = {**fields, "model": model, "messages": messages, "stream": True}
        body["stream_options"] = {"include_usage": True}
        async with self._stream("POST", "/v1/chat/completions", body) as events:
            async for data in events:
                yield wire.chat_piece(data)

    async def _ask(
        self,
        method: str,
        path: str,
        kind: type[Answer],
        body: object = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        async with self._answer(method, path, body, headers) as response:
            return wire.decode(msgspec.json.Decoder[Answer](kind), await response.aread())

    @asynccontextmanager
    async def _stream(
        self, method: str, path: str, body: object = None
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        async with self._answer(method, path, body) as response:
            yield event_bytes(response.aiter_bytes())

    @asynccontextmanager
    async def _answer(
        self, method: str, path: str, body: object = None, headers: Mapping[str, str] | None = None
    ) -> AsyncIterator[httpx2.Response]:
        content = None if body is None else _encoded(body)
        try:
            async with self._http.stream(
                method, path, content=content, headers=dict(headers or {})
            ) as response:
                if response.status_code >= 400:
                    raise wire.error_of(await response.aread())
                yield response
        except httpx2.TransportError as fault:
            raise ServiceUnavailable(
                "The connection to the service was lost.", hint="Try again.", cause=str(fault)
            ) from fault


def _encoded(body: object) -> bytes:
    try:
        return msgspec.json.encode(body)
    except UnicodeEncodeError as fault:
        raise InvalidRequest(
            "What was given holds bytes that are no UTF-8 text, and can't be sent to the service.",
            hint="Write it in UTF-8; rename a file of such a name.",
        ) from fault


def _memory(instance: str, *more: str) -> str:
    return "/".join(("/api/v1/memory", _part(instance), *more))


def _part(text: str) -> str:
    return quote(text, safe="")
