"""Conversations as values, as the store keeps them, the service sends them and a window shows them."""

from typing import Literal

import msgspec

from octavo.core.errors import ErrorReport

ChatRole = Literal["system", "user", "assistant"]
MessageState = Literal["done", "writing", "cancelled", "failed"]


class MessageStats(msgspec.Struct, frozen=True, kw_only=True):
    """What an answer cost: tokens, and seconds for each part of the way to it."""

    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    tokens_per_s: float = 0.0
    first_token_s: float = 0.0
    queue_s: float = 0.0
    prefill_s: float = 0.0
    load_s: float = 0.0
    stop_reason: str = ""


class ChatMessage(msgspec.Struct, frozen=True, kw_only=True):
    """One turn. A ``cancelled`` or ``failed`` answer keeps the text it had."""

    id: str
    role: ChatRole
    content: str
    created: float
    model: str | None = None
    stats: MessageStats | None = None
    error: ErrorReport | None = None
    state: MessageState = "done"


class ChatSummary(msgspec.Struct, frozen=True, kw_only=True):
    """A conversation in a list; ``reply`` is the answer being written in it."""

    id: str
    title: str
    model: str | None
    created: float
    updated: float
    reply: str | None = None


class Chat(msgspec.Struct, frozen=True, kw_only=True):
    """A conversation with its turns, oldest first."""

    id: str
    title: str
    model: str | None
    system_prompt: str
    sampling: dict[str, float | int]
    created: float
    updated: float
    messages: list[ChatMessage]
    reply: str | None = None


class ReplyStarted(msgspec.Struct, frozen=True, kw_only=True):
    """An answer is being written: its id to follow, and the ids of the new turns."""

    reply: str
    user_message: str | None
    message: str


class ReplyStep(msgspec.Struct, frozen=True, kw_only=True, tag_field="event"):
    """Something that happened to an answer."""


class ReplySnapshot(ReplyStep, frozen=True, tag="reply_snapshot"):
    """All that is there so far: what a follower gets first."""

    reply: str
    chat: str
    message: str
    text: str
    state: MessageState


class ReplyLoading(ReplyStep, frozen=True, tag="reply_loading"):
    """The model is loading; ``share`` from 0 to 1."""

    share: float


class ReplyReading(ReplyStep, frozen=True, tag="reply_reading"):
    """``done`` of ``total`` prompt tokens are read."""

    done: int
    total: int


class ReplyText(ReplyStep, frozen=True, tag="reply_text"):
    """New text; ``tokens`` are written so far."""

    text: str
    tokens: int


class ReplyEnded(ReplyStep, frozen=True, tag="reply_ended"):
    """The answer is complete, cancelled or failed, and kept."""

    message: ChatMessage


ReplyEvent = ReplySnapshot | ReplyLoading | ReplyReading | ReplyText | ReplyEnded
