"""One conversation as every front end hands it to the core: dialects only translate to and from this."""

from typing import Literal

import msgspec

Role = Literal["system", "user", "assistant", "tool"]


class ToolCall(msgspec.Struct, frozen=True):
    """A call that the model made; ``arguments`` is JSON text."""

    id: str
    name: str
    arguments: str


class Message(msgspec.Struct, frozen=True):
    """One turn. ``content`` None is a turn that only calls tools."""

    role: Role
    content: str | None = None
    tool_calls: list[ToolCall] = []
    tool_call_id: str | None = None
    name: str | None = None


class Segment(msgspec.Struct, frozen=True, array_like=True):
    """A piece of a rendered prompt. Control tokens count as such only where the text is the template's."""

    text: str
    special: bool
