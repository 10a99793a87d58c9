"""The one internal request type and the steps of its answer: dialects translate to and from these."""

import msgspec

from octavo.core.engine.protocol import Finished, Prefilled, Sampling, Started, Text
from octavo.core.prompts.messages import Message


class ChatRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Continue a conversation with a model: an instance's name, a library id or part of one.

    ``allow_path``: the model may also be the path of a GGUF file (the control door only).
    """

    model: str
    messages: list[Message]
    sampling: Sampling = Sampling()
    max_tokens: int | None = None
    stop: list[str] = []
    ignore_end: bool = False
    client: str = ""
    ttl_s: float | None = None
    allow_path: bool = False


class CompletionRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Continue a raw prompt: text (control tokens count as such) or token ids."""

    model: str
    prompt: str | list[int]
    sampling: Sampling = Sampling()
    max_tokens: int | None = None
    stop: list[str] = []
    ignore_end: bool = False
    client: str = ""
    ttl_s: float | None = None
    allow_path: bool = False


class Loading(msgspec.Struct, frozen=True):
    """The request waits for its model: ``share`` of the load is done."""

    instance: str
    share: float


class Serving(msgspec.Struct, frozen=True):
    """The instance and the model that serve this request; ``context`` tokens are usable."""

    instance: str
    model: str
    context: int


Step = Loading | Serving | Started | Prefilled | Text | Finished
