"""A conversation with the service: turns, streaming, and the lease that keeps the service there."""

import asyncio
import time
from collections.abc import Mapping
from types import TracebackType
from typing import Self

import msgspec

from octavo.core.client import ServiceClient
from octavo.core.client.types import Usage
from octavo.core.errors import ModelNotFound, OctavoError
from octavo.server.cli.background import BackgroundLoop
from octavo.server.cli.reach import held, model_argument, started


class Answer(msgspec.Struct, frozen=True):
    """One answer and what it cost."""

    model: str
    content: str
    finish_reason: str | None
    usage: Usage | None
    seconds: float

    @property
    def summary(self) -> str:
        """Tell the cost in one line."""
        if self.usage is None:
            return "[stopped]"
        tokens = self.usage.completion_tokens
        return f"[{tokens} tokens, {tokens / max(self.seconds, 1e-6):.1f} tokens/s, {self.finish_reason}]"


class Conversation:
    """Turns with one model; usable from a plain thread. ``quiet`` prints nothing while an answer streams."""

    def __init__(self, system: str, fields: Mapping[str, object], *, quiet: bool) -> None:
        self.model = ""
        self._turns: list[dict[str, str]] = [{"role": "system", "content": system}] if system else []
        self._fields = {name: value for name, value in fields.items() if value is not None}
        self._quiet = quiet
        self._loop = BackgroundLoop()
        self._client: ServiceClient | None = None
        self._lease: asyncio.Task[None] | None = None

    def __enter__(self) -> Self:
        self._loop.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.run(self._close())
        self._loop.__exit__(kind, fault, trace)

    def begin(self, model: str | None) -> None:
        """Connect and choose the model."""
        self._loop.run(self._begin(model))

    def ask(self, text: str) -> Answer:
        """Ask and give the answer, after it has streamed; an interrupted one stays in the conversation."""
        self._turns.append({"role": "user", "content": text})
        pieces: list[str] = []
        try:
            given = self._loop.run(self._ask(pieces))
        except OctavoError:
            self._turns.pop()
            raise
        except KeyboardInterrupt:
            given = Answer(self.model, "".join(pieces), "cancelled", None, 0.0)
        self._turns.append({"role": "assistant", "content": given.content})
        return given

    async def _begin(self, model: str | None) -> None:
        self._client = await started()
        granted = asyncio.Event()
        self._lease = asyncio.create_task(self._hold(self._client, granted))
        await granted.wait()
        self.model = model_argument(model) if model else await self._first(self._client)

    async def _hold(self, client: ServiceClient, granted: asyncio.Event) -> None:
        try:
            async with held(client):
                granted.set()
                await asyncio.Event().wait()
        finally:
            granted.set()

    async def _first(self, client: ServiceClient) -> str:
        loaded = [status.instance for status in await client.instances() if status.state == "ready"]
        usable = [model.key for model in await client.models() if model.type == "llm" and not model.fault]
        if not loaded and not usable:
            raise ModelNotFound("There is no model yet.", hint="octavo import FILE.gguf brings one in.")
        return (loaded + usable)[0]

    async def _ask(self, pieces: list[str]) -> Answer:
        assert self._client is not None
        began, reason, usage, model = time.monotonic(), None, None, self.model
        async for piece in self._client.complete_chat(self.model, self._turns, **self._fields):
            if piece.text:
                began = began if pieces else time.monotonic()
                pieces.append(piece.text)
                self._print(piece.text)
            reason, usage = piece.finish_reason or reason, piece.usage or usage
            model = piece.model or model
        return Answer(model, "".join(pieces), reason, usage, time.monotonic() - began)

    def _print(self, text: str) -> None:
        if not self._quiet:
            print(text, end="", flush=True)

    async def _close(self) -> None:
        if self._lease is not None:
            self._lease.cancel()
            await asyncio.gather(self._lease, return_exceptions=True)
        if self._client is not None:
            await self._client.aclose()
