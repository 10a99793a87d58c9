"""The request bodies of the OpenAI dialect: unknown fields are dropped, ``null`` is the same as absent."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

Share = Annotated[float, Meta(ge=0, le=1)]
NotNegative = Annotated[float, Meta(ge=0)]
Penalty = Annotated[float, Meta(ge=-100, le=100)]


class StreamOptions(msgspec.Struct):
    """What a stream carries besides text."""

    include_usage: bool | None = None


class ResponseFormat(msgspec.Struct):
    """The form of the answer."""

    type: str


class CommonBody(msgspec.Struct, kw_only=True):
    """What chat and plain completions have in common."""

    model: str
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    max_tokens: int | None = None
    n: int | None = None
    stop: str | list[str] | None = None
    seed: int | None = None
    temperature: NotNegative | None = None
    top_p: Share | None = None
    top_k: Annotated[int, Meta(ge=0, le=1_000_000)] | None = None
    min_p: Share | None = None
    typical_p: Share | None = None
    repeat_penalty: Annotated[float, Meta(gt=0, le=100)] | None = None
    repeat_last_n: Annotated[int, Meta(ge=-1, le=1_000_000)] | None = None
    presence_penalty: Penalty | None = None
    frequency_penalty: Penalty | None = None
    logit_bias: dict[int, float] | None = None
    ttl: NotNegative | None = None
    ignore_eos: bool | None = None


class ContentPart(msgspec.Struct):
    """A part of a message: text, or something that is refused for now."""

    type: str
    text: str | None = None
    refusal: str | None = None


class FunctionCall(msgspec.Struct):
    """Which function the model called, ``arguments`` as JSON text."""

    name: str
    arguments: str = "{}"


class ToolCallBody(msgspec.Struct):
    """A call that the model made in an earlier turn."""

    function: FunctionCall
    id: str = ""


class MessageBody(msgspec.Struct):
    """One turn."""

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | list[ContentPart] | None = None
    name: str | None = None
    tool_calls: list[ToolCallBody] | None = None
    tool_call_id: str | None = None


class ChatBody(CommonBody, kw_only=True):
    """The body of ``/v1/chat/completions``."""

    messages: Annotated[list[MessageBody], Meta(min_length=1)]
    max_completion_tokens: int | None = None
    tools: list[msgspec.Raw] | None = None
    tool_choice: str | dict[str, msgspec.Raw] | None = None
    response_format: ResponseFormat | None = None
    logprobs: bool | None = None
    top_logprobs: int | None = None


class CompletionBody(CommonBody, kw_only=True):
    """The body of ``/v1/completions``."""

    prompt: str | list[str | int | list[int]]
    echo: bool | None = None
    suffix: str | None = None
    best_of: int | None = None
    logprobs: int | None = None
