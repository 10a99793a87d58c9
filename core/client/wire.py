"""Turn the service's JSON into values, and its error bodies into the errors that they tell of."""

from typing import TypeVar

import msgspec

from octavo.core.client.types import ChatPiece, Usage
from octavo.core.errors import Detail, ErrorReport, OctavoError, from_report

Value = TypeVar("Value")


class ErrorBody(msgspec.Struct, frozen=True):
    """The error object of a response."""

    message: str
    code: str = "internal_error"
    hint: str = ""
    details: dict[str, Detail] = {}


class ErrorAnswer(msgspec.Struct, frozen=True):
    """The whole body of a response that tells of an error."""

    error: ErrorBody


class Delta(msgspec.Struct, frozen=True):
    """What a chunk adds."""

    content: str | None = None


class Choice(msgspec.Struct, frozen=True):
    """One choice of a chunk."""

    delta: Delta
    finish_reason: str | None = None


class Chunk(msgspec.Struct, frozen=True):
    """One chunk of a streamed chat completion, or the error that ends it."""

    choices: list[Choice] = []
    usage: Usage | None = None
    error: ErrorBody | None = None
    model: str = ""


_CHUNK = msgspec.json.Decoder(Chunk)
_ERROR = msgspec.json.Decoder(ErrorAnswer)


def decode(decoder: "msgspec.json.Decoder[Value]", data: bytes) -> Value:
    """Decode an answer or an event; an error in its place is raised."""
    try:
        return decoder.decode(data)
    except msgspec.DecodeError as fault:
        raise error_of(data) from fault


def error_of(data: bytes) -> OctavoError:
    """Make the error that a body tells of."""
    try:
        return _error(_ERROR.decode(data).error)
    except msgspec.DecodeError:
        return OctavoError(f"The service answered what this version can't read: {data[:200]!r}.")


def chat_piece(data: bytes) -> ChatPiece:
    """Read one chunk of a streamed answer; raises the error that a last chunk may hold."""
    chunk = decode(_CHUNK, data)
    if chunk.error is not None:
        raise _error(chunk.error)
    if not chunk.choices:
        return ChatPiece(usage=chunk.usage, model=chunk.model)
    choice = chunk.choices[0]
    return ChatPiece(choice.delta.content or "", choice.finish_reason, chunk.usage, chunk.model)


def _error(body: ErrorBody) -> OctavoError:
    # the OpenAI dialect has the hint in the message as well
    message = body.message.removesuffix(f" {body.hint}") if body.hint else body.message
    return from_report(ErrorReport(body.code, message, body.hint, body.details))
