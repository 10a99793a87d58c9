"""A service in the window's own process: the same methods as ``core.client.ServiceClient``, no socket."""

import asyncio
import itertools
import time
from collections.abc import AsyncIterator, Mapping

import msgspec

from octavo.core.chats.types import (
    Chat,
    ChatMessage,
    ChatSummary,
    MessageStats,
    ReplyEnded,
    ReplyEvent,
    ReplySnapshot,
    ReplyStarted,
    ReplyText,
)
from octavo.core.client.types import ImportAnswer, Lease, ModelRecord, Quantization, ServerStatus, StreamEvent
from octavo.core.config.paths import Home
from octavo.core.errors import ChatNotFound, Conflict, ErrorReport, LoadFailed, ServiceUnavailable
from octavo.core.events import (
    ChatChanged,
    FiguresSampled,
    InstanceFigures,
    InstanceStatus,
    LoadProgressed,
    LoadStarted,
    ModelLoaded,
    ModelUnloaded,
    ServerChanged,
)

GIB = 2**30


def model(key: str, name: str, quant: str, size_bytes: int, fault: str | None = None) -> ModelRecord:
    """Make a row of the library."""
    return ModelRecord(
        publisher=key.split("/")[0],
        key=key,
        display_name=name,
        architecture="llama",
        quantization=Quantization(quant, 4.5),
        size_bytes=size_bytes,
        params_string="135M",
        max_context_length=8192,
        path=f"/models/{key}.gguf",
        fault=fault,
    )


STARTER = model("HuggingFaceTB/SmolLM2-135M-Instruct", "SmolLM2 135M Instruct", "Q4_1", 98_362_432)


class FakeHouse:
    """What outlives a connection: models, chats, and which connections are open."""

    def __init__(self, models: list[ModelRecord] | None = None) -> None:
        self.models = [STARTER] if models is None else models
        self.instances: dict[str, InstanceStatus] = {}
        self.chats: dict[str, Chat] = {}
        self.settings: dict[str, dict[str, object]] = {"appearance": {"theme": "dark", "language": "en"}}
        self.status = ServerStatus(False, "127.0.0.1", 1234)
        self.words = ["Hello", " from", " the", " fake."]
        self.pause_s = 0.0
        self.load_error: LoadFailed | None = None
        self.port_error: Conflict | None = None
        self.clients: list[FakeClient] = []
        self.opened = 0
        self.refuse_opening = False
        self.holds_replies = False
        self.calls: list[str] = []
        self._ids = itertools.count(1)

    async def open(self, _home: Home) -> "FakeClient":
        """Connect, as ``ServiceClient.start_or_connect`` does."""
        self.opened += 1
        if self.refuse_opening:
            raise ServiceUnavailable("The service ended at once (exit code 1).")
        client = FakeClient(self)
        self.clients.append(client)
        return client

    def new_id(self) -> str:
        """Give an id that wasn't given before."""
        return f"id{next(self._ids)}"

    def die(self) -> None:
        """End every connection, as ``kill -9`` of the service does; thread-safe."""
        for client in self.clients:
            client.loop.call_soon_threadsafe(client.break_off)
        self.clients = []
        self.instances = {}
        self.status = ServerStatus(False, "127.0.0.1", 1234)
        self.chats = {chat.id: _broken_off(chat) for chat in self.chats.values()}

    def publish(self, event: StreamEvent) -> None:
        """Send an event to every connection; thread-safe."""
        for client in self.clients:
            client.loop.call_soon_threadsafe(client.queue.put_nowait, event)


class FakeClient:
    """One connection."""

    def __init__(self, house: FakeHouse) -> None:
        self.house = house
        self.loop = asyncio.get_running_loop()
        self.queue: asyncio.Queue[StreamEvent | None] = asyncio.Queue()
        self.is_broken = False
        self.lease_kind: str | None = None
        self.closed = False
        self._stopped: set[str] = set()
        self._replies: dict[str, tuple[str, str]] = {}

    def break_off(self) -> None:
        """Be dead from now on."""
        self.is_broken = True
        self.queue.put_nowait(None)

    def _called(self, name: str) -> None:
        self.house.calls.append(name)
        if self.is_broken:
            raise ServiceUnavailable("The connection to the service was lost.")

    async def aclose(self) -> None:
        self.closed = True
        if self in self.house.clients:
            self.house.clients.remove(self)

    async def models(self) -> list[ModelRecord]:
        self._called("models")
        return self.house.models

    async def instances(self) -> list[InstanceStatus]:
        self._called("instances")
        return list(self.house.instances.values())

    async def load(
        self,
        model: str,
        fields: Mapping[str, object] | None = None,
        identifier: str | None = None,
        ttl_s: float | None = None,
        lease: str | None = None,
    ) -> object:
        self._called(f"load {model} lease={lease}")
        if self.house.load_error is not None:
            raise self.house.load_error
        self.house.instances[model] = InstanceStatus(instance=model, model=model, state="loading")
        self.house.publish(LoadStarted(instance=model, model=model))
        self.house.publish(LoadProgressed(instance=model, model=model, share=0.42))
        await asyncio.sleep(self.house.pause_s)
        self.house.instances[model] = InstanceStatus(instance=model, model=model, state="ready", context=8192)
        self.house.publish(ModelLoaded(instance=model, model=model, context=8192, load_s=0.1))
        return None

    async def unload(self, instance: str) -> object:
        self._called(f"unload {instance}")
        self.house.instances.pop(instance, None)
        self.house.publish(
            ModelUnloaded(instance=instance, model=instance, reason="asked", freed_bytes=1, came_back=True)
        )
        return None

    async def import_model(self, path: str) -> ImportAnswer:
        self._called(f"import {path}")
        self.house.models = [*self.house.models, STARTER]
        return ImportAnswer(mode="copy", dry_run=False, models=[STARTER.key], files=[])

    async def settings(self) -> Mapping[str, object]:
        self._called("settings")
        return self.house.settings

    async def change_settings(self, group: str, **values: object) -> object:
        self._called(f"settings {group} {values}")
        self.house.settings[group] = {**self.house.settings[group], **values}
        return self.house.settings

    async def server(self) -> ServerStatus:
        self._called("server")
        return self.house.status

    async def start_server(self, **options: object) -> ServerStatus:
        self._called(f"start_server {options}")
        if self.house.port_error is not None:
            self._tell_port(self.house.port_error.report())
            raise self.house.port_error
        return await self._switch(True, **options)

    async def stop_server(self) -> ServerStatus:
        return await self._switch(False)

    async def _switch(self, on: bool, host: object = None, port: object = None) -> ServerStatus:
        self._called(f"server {on}")
        self.house.status = ServerStatus(on, str(host or "127.0.0.1"), int(str(port or 1234)))
        self._tell_port()
        return self.house.status

    def _tell_port(self, error: ErrorReport | None = None) -> None:
        status = self.house.status
        self.house.publish(ServerChanged(is_on=status.is_on, host=status.host, port=status.port, error=error))

    async def chats(self) -> list[ChatSummary]:
        self._called("chats")
        chats = sorted(self.house.chats.values(), key=lambda chat: chat.updated, reverse=True)
        return [
            ChatSummary(
                id=chat.id,
                title=chat.title,
                model=chat.model,
                created=chat.created,
                updated=chat.updated,
                reply=chat.reply,
            )
            for chat in chats
        ]

    async def create_chat(self, **fields: object) -> Chat:
        self._called("create_chat")
        now = time.time()
        known = {"title": "", "model": None, "system_prompt": "", "sampling": {}, **fields}
        chat = msgspec.convert(
            {"id": self.house.new_id(), "created": now, "updated": now, "messages": [], **known}, Chat
        )
        self.house.chats[chat.id] = chat
        self.house.publish(ChatChanged(chat=chat.id))
        return chat

    async def chat(self, chat: str) -> Chat:
        self._called(f"chat {chat}")
        if chat not in self.house.chats:
            raise ChatNotFound(f"There is no chat {chat}.")
        return self.house.chats[chat]

    async def update_chat(self, chat: str, **fields: object) -> Chat:
        self._called(f"update_chat {chat} {fields}")
        self.house.chats[chat] = msgspec.structs.replace(self.house.chats[chat], **fields)
        return self.house.chats[chat]

    async def delete_chat(self, chat: str) -> object:
        self._called(f"delete_chat {chat}")
        self.house.chats.pop(chat, None)
        return None

    async def reply(self, chat: str, content: str | None = None, model: str | None = None) -> ReplyStarted:
        self._called(f"reply {chat} {content!r}")
        held = self.house.chats[chat]
        messages, question = list(held.messages), None
        if content is None and messages and messages[-1].role == "assistant":
            messages.pop()
        elif content is not None:
            question = ChatMessage(id=self.house.new_id(), role="user", content=content, created=time.time())
            messages.append(question)
        answer = ChatMessage(
            id=self.house.new_id(), role="assistant", content="", created=time.time(), state="writing"
        )
        reply = self.house.new_id()
        self._replies[reply] = (chat, answer.id)
        self.house.chats[chat] = msgspec.structs.replace(held, messages=[*messages, answer], reply=reply)
        return ReplyStarted(
            reply=reply, user_message=question.id if question is not None else None, message=answer.id
        )

    async def follow(self, reply: str) -> AsyncIterator[ReplyEvent]:
        self._called(f"follow {reply}")
        chat, message = self._replies[reply]
        yield ReplySnapshot(reply=reply, chat=chat, message=message, text="", state="writing")
        text = ""
        for number, word in enumerate(self.house.words, 1):
            if reply in self._stopped:
                break
            await asyncio.sleep(self.house.pause_s)
            if self.is_broken:
                raise ServiceUnavailable("The connection to the service was lost.")
            text += word
            self._keep(chat, message, text, "writing")
            yield ReplyText(text=word, tokens=number)
        while self.house.holds_replies and not self.is_broken and reply not in self._stopped:
            await asyncio.sleep(0.005)
        if self.is_broken:
            raise ServiceUnavailable("The connection to the service was lost.")
        yield ReplyEnded(
            message=self._keep(chat, message, text, "cancelled" if reply in self._stopped else "done")
        )

    async def stop_reply(self, reply: str) -> object:
        self._called(f"stop_reply {reply}")
        self._stopped.add(reply)
        return None

    async def events(self, lease: str | None = None) -> AsyncIterator[StreamEvent]:
        self._called("events")
        self.lease_kind = lease
        yield Lease(f"lease-{self.house.opened}")
        while (event := await self.queue.get()) is not None:
            yield event

    def _keep(self, chat: str, message: str, text: str, state: str) -> ChatMessage:
        held = self.house.chats[chat]
        stats = None
        if state == "done":
            stats = MessageStats(
                prompt_tokens=20,
                completion_tokens=len(self.house.words),
                tokens_per_s=42.0,
                first_token_s=0.21,
                prefill_s=0.2,
                stop_reason="stop",
            )
        changed = [
            msgspec.structs.replace(turn, content=text, state=state, stats=stats)  # type: ignore[arg-type]
            if turn.id == message
            else turn
            for turn in held.messages
        ]
        reply = held.reply if state == "writing" else None
        self.house.chats[chat] = msgspec.structs.replace(held, messages=changed, reply=reply)
        return next(turn for turn in changed if turn.id == message)


def _broken_off(chat: Chat) -> Chat:
    """What the store makes of a chat that was being answered when the service was killed."""
    error = ErrorReport(
        "service_unavailable",
        "The service ended while this was written.",
        hint="The text so far is kept. Try again for a whole answer.",
        details={"ended_while": "writing"},
    )
    turns = [
        msgspec.structs.replace(turn, state="failed", error=error) if turn.state == "writing" else turn
        for turn in chat.messages
    ]
    return msgspec.structs.replace(chat, messages=turns, reply=None)


def figures(
    key: str, private_gib: float, file_gib: float, speed: float, kv: tuple[int, int]
) -> FiguresSampled:
    """Make a sample of one model on a machine with 15.6 GiB."""
    private, mapped = round(private_gib * GIB), round(file_gib * GIB)
    sample = InstanceFigures(
        instance=key,
        model=key,
        rss_bytes=private + mapped,
        private_bytes=private,
        file_bytes=mapped,
        kv_used=kv[0],
        kv_size=kv[1],
        tokens_per_s=speed,
        active=1,
        queued=0,
    )
    return FiguresSampled(
        at=time.time(),
        instances=[sample],
        memory_total_bytes=round(15.6 * GIB),
        memory_available_bytes=9 * GIB,
    )
