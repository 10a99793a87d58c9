"""The shapes of whole answers and of chunks; a stream's chunks are put together from ready-made pieces."""

import secrets
import time
from abc import ABC, abstractmethod
from typing import Protocol

import msgspec

from octavo.core.client.types import TokenDetails, Usage
from octavo.core.engine.protocol import Finished

_encode = msgspec.json.Encoder().encode


class Shape(Protocol):
    """How one route writes its answers; ``model`` is what serves the request."""

    def opening(self, model: str) -> bytes:
        """Give the first frames of a stream."""
        ...

    def text(self, text: str) -> bytes:
        """Give the frame that adds text."""
        ...

    def ending(self, finished: Finished) -> bytes:
        """Give the frames that end the stream well."""
        ...

    def whole(self, model: str, text: str, finished: Finished) -> bytes:
        """Give the body of an answer that isn't streamed."""
        ...


def usage(finished: Finished) -> Usage:
    """Count what a request cost."""
    total = finished.prompt_tokens + finished.completion_tokens
    cached = TokenDetails(finished.cached_tokens)
    return Usage(finished.prompt_tokens, finished.completion_tokens, total, cached)


def finish_reason(finished: Finished) -> str:
    """Name the end in OpenAI's words."""
    return "length" if finished.reason == "length" else "stop"


class _Shape(ABC):
    prefix = ""
    chunk_object = ""
    whole_object = ""

    def __init__(self, include_usage: bool) -> None:
        self._id = f"{self.prefix}-{secrets.token_urlsafe(18)}"
        self._created = int(time.time())
        self._include_usage = include_usage
        # where usage was asked for, every chunk but the last says null
        self._tail = b',"usage":null}\n\n' if include_usage else b"}\n\n"
        self._head = b""
        self._before = self._after = b""

    def opening(self, model: str) -> bytes:
        """Prepare the pieces of this stream's chunks."""
        known = {"id": self._id, "object": self.chunk_object, "created": self._created, "model": model}
        self._head = b"data: " + _encode(known)[:-1] + b',"choices":['
        return b""

    def text(self, text: str) -> bytes:
        """Give the frame that adds text."""
        return self._before + _encode(text) + self._after

    def ending(self, finished: Finished) -> bytes:
        """Give the chunk with the reason, and the one with the usage if it was asked for."""
        frames = self._head + _encode(self._last_choice(finish_reason(finished))) + b"]" + self._tail
        if self._include_usage:
            frames += self._head + b'],"usage":' + _encode(usage(finished)) + b"}\n\n"
        return frames

    def whole(self, model: str, text: str, finished: Finished) -> bytes:
        """Give the body of an answer that isn't streamed."""
        return _encode(
            {
                "id": self._id,
                "object": self.whole_object,
                "created": self._created,
                "model": model,
                "choices": [self._whole_choice(text, finish_reason(finished))],
                "usage": usage(finished),
            }
        )

    @abstractmethod
    def _last_choice(self, reason: str) -> dict[str, object]: ...

    @abstractmethod
    def _whole_choice(self, text: str, reason: str) -> dict[str, object]: ...


class ChatShape(_Shape):
    """``chat.completion`` and its chunks."""

    prefix = "chatcmpl"
    chunk_object = "chat.completion.chunk"
    whole_object = "chat.completion"

    def opening(self, model: str) -> bytes:
        """Give the chunk that names the role."""
        super().opening(model)
        self._before = self._head + b'{"index":0,"delta":{"content":'
        self._after = b'},"finish_reason":null}]' + self._tail
        first = b'{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]'
        return self._head + first + self._tail

    def _last_choice(self, reason: str) -> dict[str, object]:
        return {"index": 0, "delta": {}, "finish_reason": reason}

    def _whole_choice(self, text: str, reason: str) -> dict[str, object]:
        message = {"role": "assistant", "content": text}
        return {"index": 0, "message": message, "logprobs": None, "finish_reason": reason}


class CompletionShape(_Shape):
    """``text_completion``, whole and in chunks."""

    prefix = "cmpl"
    chunk_object = "text_completion"
    whole_object = "text_completion"

    def opening(self, model: str) -> bytes:
        """Prepare the pieces; plain completions have no opening chunk."""
        super().opening(model)
        self._before = self._head + b'{"index":0,"text":'
        self._after = b',"logprobs":null,"finish_reason":null}]' + self._tail
        return b""

    def _last_choice(self, reason: str) -> dict[str, object]:
        return {"index": 0, "text": "", "logprobs": None, "finish_reason": reason}

    def _whole_choice(self, text: str, reason: str) -> dict[str, object]:
        return {"index": 0, "text": text, "logprobs": None, "finish_reason": reason}
