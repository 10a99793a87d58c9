"""What the service and the template helper say to each other."""

from typing import TYPE_CHECKING, Any, Literal

import msgspec

from octavo.core.prompts.messages import Message, Segment

if TYPE_CHECKING:
    Json = str | int | float | bool | None | list["Json"] | dict[str, "Json"]
else:
    Json = Any  # msgspec reads no recursive alias

Fault = Literal["raised", "broken", "forbidden", "output", "memory", "time", "crash"]


class Learn(msgspec.Struct, frozen=True, tag="learn"):
    """Remember a vocabulary's control tokens under ``key``."""

    key: bytes
    tokens: list[str]


class Render(msgspec.Struct, frozen=True, tag="render", kw_only=True):
    """Render a conversation with a chat template; ``key`` names control tokens that were learned."""

    template: str
    messages: list[Message]
    bos: str
    eos: str
    key: bytes
    add_generation_prompt: bool = True
    tools: list[dict[str, Json]] | None = None
    extra: dict[str, Json] = {}


class Ready(msgspec.Struct, frozen=True, tag="ready"):
    """The helper has started, or has learned the tokens."""


class Unlearned(msgspec.Struct, frozen=True, tag="unlearned"):
    """The key isn't known (any more): send the tokens, then the job again."""


class Rendered(msgspec.Struct, frozen=True, tag="rendered"):
    """The prompt."""

    segments: list[Segment]


class Refused(msgspec.Struct, frozen=True, tag="refused"):
    """A failed template; ``message`` is its own words or the sandbox's. After ``memory`` the helper ends."""

    fault: Fault
    message: str


Job = Learn | Render
Answer = Ready | Unlearned | Rendered | Refused
