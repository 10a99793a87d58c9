"""Write server-sent events: comments fill long silences, and a client's leaving ends the work."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Protocol

from fastapi.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from octavo.server.presence import ended, until_gone

SILENCE_S = 10.0
KEEP_ALIVE = b": keep-alive\n\n"
DONE = b"data: [DONE]\n\n"

_HEADERS = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}


class Closable(Protocol):
    """What must be closed when the stream ends, however it ends."""

    async def aclose(self) -> None:
        """Let go of what the stream was made from."""
        ...


class EventStream(StreamingResponse):
    """A response of ready-made frames; ``source`` is closed with it, even if no frame was ever asked for."""

    def __init__(
        self, frames: AsyncGenerator[bytes, None], source: Closable, silence_s: float = SILENCE_S
    ) -> None:
        super().__init__(frames, media_type="text/event-stream", headers=_HEADERS)
        self._frames = frames
        self._source = source
        self._silence_s = silence_s
        self._last_s = 0.0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the frames until they end or the client is gone."""
        async with aclosing(self._source), aclosing(self._frames):
            await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            pump = asyncio.ensure_future(self._pump(send))
            gone = asyncio.ensure_future(until_gone(receive))
            comments = asyncio.ensure_future(self._comment(send))
            try:
                await asyncio.wait({pump, gone}, return_when=asyncio.FIRST_COMPLETED)
                if pump.done():
                    pump.result()
            finally:
                await ended(pump, gone, comments)

    async def _pump(self, send: Send) -> None:
        clock = asyncio.get_running_loop().time
        self._last_s = clock()
        async for frame in self._frames:
            await send({"type": "http.response.body", "body": frame, "more_body": True})
            self._last_s = clock()
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _comment(self, send: Send) -> None:
        clock = asyncio.get_running_loop().time
        while True:
            quiet = clock() - self._last_s
            if quiet >= self._silence_s:
                await send({"type": "http.response.body", "body": KEEP_ALIVE, "more_body": True})
                self._last_s, quiet = clock(), 0.0
            await asyncio.sleep(self._silence_s - quiet)
