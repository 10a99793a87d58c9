"""Answers in conversations. A reply belongs to the service: it goes on, and is kept, with no follower."""

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing, suppress
from typing import Protocol

import msgspec

from octavo.core.chats.store import ChatStore
from octavo.core.chats.types import (
    Chat,
    ChatMessage,
    MessageState,
    MessageStats,
    ReplyEnded,
    ReplyEvent,
    ReplyLoading,
    ReplyReading,
    ReplySnapshot,
    ReplyStarted,
    ReplyText,
)
from octavo.core.engine.protocol import Finished, Prefilled, Sampling, Started, Text
from octavo.core.errors import ChatNotFound, InvalidRequest, OctavoError, StorageFailed
from octavo.core.events import ChatChanged, Publish
from octavo.core.prompts.messages import Message
from octavo.core.runtime.requests import ChatRequest, Loading, Serving, Step

SAVE_EVERY_S = 1.0
EVENTS_PER_S = 30
TITLE_LENGTH = 40

_log = logging.getLogger(__name__)


class Answering(Protocol):
    """What can answer a conversation: the runtime."""

    def chat(self, request: ChatRequest) -> AsyncGenerator[Step, None]:
        """Answer; closing the generator cancels the request."""


class Replies:
    """Starts, follows, stops and keeps the answers in conversations. All methods belong to one event loop.

    A reply's id is the id of the message that it becomes.
    """

    def __init__(
        self,
        runtime: Answering,
        store: ChatStore,
        publish: Publish,
        *,
        save_every_s: float = SAVE_EVERY_S,
        events_per_s: float = EVENTS_PER_S,
    ) -> None:
        self._runtime = runtime
        self._store = store
        self._publish = publish
        self._save_every_s = save_every_s
        self._event_gap_s = 1 / events_per_s
        self._written: dict[str, _Reply] = {}

    async def start(self, chat_id: str, content: str | None = None, model: str | None = None) -> ReplyStarted:
        """Answer a new turn, or without ``content`` the last one again; returns once the answer has begun.

        Raises ``InvalidRequest``, ``ChatNotFound``, ``Conflict`` while the chat is being answered.
        """
        # a client that goes away meanwhile must not leave an answer that nobody writes
        return await asyncio.shield(asyncio.create_task(self._start(chat_id, content, model)))

    async def _start(self, chat_id: str, content: str | None, model: str | None) -> ReplyStarted:
        chat = await self._store.chat(chat_id)
        named = _model_for(chat, model)
        if content is not None and not content.strip():
            raise InvalidRequest("The message is empty.")
        sampling, max_tokens = _sampling(chat.sampling)
        turn = await self._store.begin_reply(chat_id, content, model=named, title=title_of(content or ""))
        request = ChatRequest(
            model=named,
            messages=_history(await self._store.chat(chat_id)),
            sampling=sampling,
            max_tokens=max_tokens,
            client=f"chat:{chat_id}",
            allow_path=True,
        )
        self._begin(_Reply(chat_id, turn.reply), request)
        return ReplyStarted(
            reply=turn.reply.id, user_message=turn.user.id if turn.user else None, message=turn.reply.id
        )

    async def follow(self, reply_id: str) -> AsyncGenerator[ReplyEvent, None]:
        """Give all text so far, then what comes, at most 30 events a second, and at last ``ReplyEnded``."""
        reply = self._written.get(reply_id)
        if reply is None:
            chat_id, message = await self._store.message(reply_id)
            reply = _Reply(chat_id, message)
            reply.end(message)
        async with aclosing(reply.events(self._event_gap_s)) as events:
            async for event in events:
                yield event

    async def stop(self, reply_id: str) -> None:
        """End an answer and keep its text; returns when it is kept. One that has ended stays as it is."""
        reply = self._written.get(reply_id)
        if reply is None:
            await self._store.message(reply_id)
            return
        await reply.cancel()

    async def stop_chat(self, chat_id: str) -> None:
        """End what is being written in a conversation, before it is deleted."""
        for reply in [reply for reply in self._written.values() if reply.chat_id == chat_id]:
            await reply.cancel()

    async def close(self) -> None:
        """End and keep all answers."""
        await asyncio.gather(*(reply.cancel() for reply in self._written.values()))

    def _begin(self, reply: "_Reply", request: ChatRequest) -> None:
        self._written[reply.message.id] = reply
        reply.answering = asyncio.create_task(self._answer(reply, request))
        reply.keeping = asyncio.create_task(self._keep(reply, reply.answering))
        self._publish(ChatChanged(chat=reply.chat_id))

    async def _answer(self, reply: "_Reply", request: ChatRequest) -> None:
        async with aclosing(self._runtime.chat(request)) as steps:
            async for step in steps:
                reply.take(step)

    async def _keep(self, reply: "_Reply", answering: asyncio.Task[None]) -> None:
        while not answering.done():
            await asyncio.wait({answering}, timeout=self._save_every_s)
            await self._save(reply)
        message = await self._finish(_ended(reply, answering))
        del self._written[message.id]
        reply.end(message)
        self._publish(ChatChanged(chat=reply.chat_id))

    async def _save(self, reply: "_Reply") -> None:
        if reply.is_saved:
            return
        saved = len(reply.pieces)
        try:
            await self._store.save_text(reply.message.id, reply.text)
            reply.saved = saved
        except (StorageFailed, ChatNotFound) as fault:
            _log.warning("reply %s is not saved for now: %s", reply.message.id, fault)

    async def _finish(self, message: ChatMessage) -> ChatMessage:
        try:
            await self._store.finish_message(message)
        except OctavoError as fault:
            _log.error("reply %s could not be kept: %s", message.id, fault)
            return msgspec.structs.replace(message, state="failed", error=message.error or fault.report())
        return message


class _Reply:
    """An answer while it is written."""

    answering: asyncio.Task[None]
    keeping: asyncio.Task[None]

    def __init__(self, chat_id: str, message: ChatMessage) -> None:
        self.chat_id = chat_id
        self.message = message
        self.pieces: list[str] = [message.content] if message.content else []
        self.tokens = 0
        self.saved = 0
        self.progress: ReplyLoading | ReplyReading | None = None
        self.started: Started | None = None
        self.finished: Finished | None = None
        self.timing = _Timing()
        self.ended: ReplyEnded | None = None
        self._wakers: set[asyncio.Event] = set()
        self._over = asyncio.Event()

    @property
    def text(self) -> str:
        """All text so far."""
        return "".join(self.pieces)

    @property
    def is_saved(self) -> bool:
        """Whether the store has all of it."""
        return self.saved == len(self.pieces)

    def take(self, step: Step) -> None:
        """Note one step of the answer."""
        match step:
            case Loading():
                self.progress = ReplyLoading(share=step.share)
                self.timing.loading()
            case Serving():
                self.message = msgspec.structs.replace(self.message, model=step.model)
                self.timing.loaded()
            case Started():
                self.started = step
                self.timing.loaded()
            case Prefilled():
                self.progress = ReplyReading(done=step.done, total=step.total)
            case Text():
                self._add(step)
            case Finished():
                self.finished = step
        self._wake()

    def end(self, message: ChatMessage) -> None:
        """Note how it ended."""
        self.message = message
        self.ended = ReplyEnded(message=message)
        self._over.set()
        self._wake()

    async def cancel(self) -> None:
        """Call the answer off and wait until it is kept."""
        self.answering.cancel()
        await asyncio.shield(self.keeping)

    async def events(self, gap_s: float) -> AsyncGenerator[ReplyEvent, None]:
        """Tell a follower what happens, never more often than each ``gap_s``."""
        changed = asyncio.Event()
        self._wakers.add(changed)
        try:
            seen, progress = len(self.pieces), self.progress
            yield self._snapshot()
            if progress is not None and not seen:
                yield progress
            due = 0.0
            while self.ended is None or seen < len(self.pieces):
                due = gap_s + await self._changed(changed, due)
                if seen < len(self.pieces):
                    fresh, seen = "".join(self.pieces[seen:]), len(self.pieces)
                    yield ReplyText(text=fresh, tokens=self.tokens)
                elif self.progress != progress and self.progress is not None:
                    progress = self.progress
                    yield progress
            yield self.ended
        finally:
            self._wakers.discard(changed)

    async def _changed(self, changed: asyncio.Event, due: float) -> float:
        """Wait for news until ``due``, or for the end, which is told at once; give the time of it."""
        if self.ended is None:
            await changed.wait()
            with suppress(TimeoutError):
                async with asyncio.timeout_at(due):
                    await self._over.wait()
            changed.clear()
        return asyncio.get_running_loop().time()

    def _snapshot(self) -> ReplySnapshot:
        return ReplySnapshot(
            reply=self.message.id,
            chat=self.chat_id,
            message=self.message.id,
            text=self.text,
            state=self.message.state,
        )

    def _add(self, step: Text) -> None:
        self.tokens += len(step.tokens)
        self.timing.wrote()
        if step.text:
            self.pieces.append(step.text)

    def _wake(self) -> None:
        for waker in self._wakers:
            waker.set()


class _Timing:
    """What the worker doesn't measure: the load, and the speed of an answer that was called off."""

    def __init__(self) -> None:
        self.load_s = 0.0
        self._load_began: float | None = None
        self._first: float | None = None
        self._last = 0.0

    def loading(self) -> None:
        self._load_began = self._load_began or time.perf_counter()

    def loaded(self) -> None:
        if self._load_began is not None:
            self.load_s, self._load_began = time.perf_counter() - self._load_began, None

    def wrote(self) -> None:
        self._last = time.perf_counter()
        self._first = self._first or self._last

    @property
    def writing_s(self) -> float:
        return self._last - self._first if self._first else 0.0


def title_of(content: str) -> str:
    """Make a chat's title of its first message: the first words, 40 characters at most."""
    words = " ".join(content.split())
    if len(words) <= TITLE_LENGTH:
        return words
    cut = words[:TITLE_LENGTH]
    return (cut if " " not in cut or words[TITLE_LENGTH] == " " else cut.rsplit(" ", 1)[0]) + "…"


def _ended(reply: _Reply, answering: asyncio.Task[None]) -> ChatMessage:
    state, error = _outcome(reply, answering)
    return msgspec.structs.replace(
        reply.message,
        content=reply.text,
        stats=_stats(reply, state),
        error=error.report() if error else None,
        state=state,
    )


def _outcome(reply: _Reply, answering: asyncio.Task[None]) -> tuple[MessageState, OctavoError | None]:
    if answering.cancelled():
        return "cancelled", None
    match answering.exception():
        case None if reply.finished:
            return ("cancelled" if reply.finished.reason == "cancelled" else "done"), None
        case None:
            return "failed", OctavoError("The answer broke off.")
        case OctavoError() as fault:
            return "failed", fault
        case fault:
            _log.error("reply %s failed", reply.message.id, exc_info=fault)
            return "failed", OctavoError(f"The answer broke off: {type(fault).__name__}.")


def _stats(reply: _Reply, state: MessageState) -> MessageStats | None:
    started, finished, timing = reply.started, reply.finished, reply.timing
    if finished is not None:
        times = finished.timings
        return MessageStats(
            prompt_tokens=finished.prompt_tokens,
            cached_tokens=finished.cached_tokens,
            completion_tokens=finished.completion_tokens,
            tokens_per_s=_rate(finished.completion_tokens, times.decode_s),
            first_token_s=times.first_token_s,
            queue_s=times.queue_s,
            prefill_s=times.prefill_s,
            load_s=times.load_s or timing.load_s,
            stop_reason=finished.reason,
        )
    if started is None:
        return None
    return MessageStats(
        prompt_tokens=started.prompt_tokens,
        cached_tokens=started.cached_tokens,
        completion_tokens=reply.tokens,
        tokens_per_s=_rate(reply.tokens - 1, timing.writing_s),
        queue_s=started.queue_s,
        load_s=timing.load_s,
        stop_reason=state,
    )


def _rate(tokens: int, seconds: float) -> float:
    return tokens / seconds if tokens > 0 and seconds > 0 else 0.0


def _model_for(chat: Chat, model: str | None) -> str:
    named = model or chat.model
    if not named:
        raise InvalidRequest("Choose a model for this chat first.")
    return named


def _history(chat: Chat) -> list[Message]:
    system = [Message("system", chat.system_prompt)] if chat.system_prompt.strip() else []
    said = (turn for turn in chat.messages if turn.id != chat.reply and turn.content)
    return system + [Message(turn.role, turn.content) for turn in said]


def _sampling(fields: Mapping[str, float | int]) -> tuple[Sampling, int | None]:
    try:
        max_tokens = msgspec.convert(fields.get("max_tokens"), int | None)
        return msgspec.convert(dict(fields), Sampling), max_tokens
    except msgspec.ValidationError as fault:
        raise InvalidRequest(f"This chat's settings can't be used: {fault}.") from fault
