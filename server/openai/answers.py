"""Answer a request from the runtime's steps: whole, or as a stream whose refusals still have a status."""

import asyncio
import logging
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing

import msgspec
from fastapi import Request
from starlette.responses import Response

from octavo.core.engine.protocol import Finished, Text
from octavo.core.errors import OctavoError, WorkerCrashed
from octavo.core.runtime.requests import Loading, Serving, Step
from octavo.server.failures import openai_error
from octavo.server.openai.shapes import Shape
from octavo.server.presence import ended, while_connected
from octavo.server.sse import DONE, EventStream

_log = logging.getLogger(__name__)
_encode = msgspec.json.Encoder().encode

# how long a stream's headers wait for a load, a queue or a refusal
HEADER_PATIENCE_S = 10.0

Steps = AsyncGenerator[Step, None]


class Opening:
    """The steps of an answer, of which the first are awaited before any header is sent."""

    def __init__(self, steps: Steps) -> None:
        self._steps = steps
        self._seen: deque[Step] = deque()
        self._next: asyncio.Task[Step | None] | None = None

    async def wait(self, patience_s: float) -> None:
        """Return when the engine took the request or patience ends; raises what the runtime raises."""
        clock = asyncio.get_running_loop().time
        give_up = clock() + patience_s
        while True:
            self._next = self._next or asyncio.create_task(self._advance())
            await asyncio.wait({self._next}, timeout=max(0.0, give_up - clock()))
            if not self._next.done():
                return
            step, self._next = self._next.result(), None
            if step is None:
                return
            self._seen.append(step)
            if not isinstance(step, Loading | Serving):
                return

    async def rest(self) -> AsyncIterator[Step]:
        """Give all steps, those seen first."""
        while self._seen:
            yield self._seen.popleft()
        if self._next is not None:
            step = await self._next
            self._next = None
            if step is None:
                return
            yield step
        async for step in self._steps:
            yield step

    async def aclose(self) -> None:
        """Cancel the request, unless it is over."""
        if self._next is not None:
            await ended(self._next)
        await self._steps.aclose()

    async def _advance(self) -> Step | None:
        return await anext(self._steps, None)


async def answer(request: Request, steps: Steps, shape: Shape, streamed: bool) -> Response:
    """Answer from the steps; when the client goes away, at whatever point, the request is cancelled."""
    if not streamed:
        async with aclosing(steps):
            body = await while_connected(request.receive, _whole(steps, shape))
        return Response(body, media_type="application/json")
    opening = Opening(steps)
    try:
        await while_connected(request.receive, opening.wait(HEADER_PATIENCE_S))
    except BaseException:
        await opening.aclose()
        raise
    return EventStream(_frames(opening, shape), opening)


async def _whole(steps: Steps, shape: Shape) -> bytes:
    pieces: list[str] = []
    model = ""
    async for step in steps:
        match step:
            case Text():
                pieces.append(step.text)
            case Serving():
                model = step.instance
            case Finished():
                return shape.whole(model, "".join(pieces), step)
    raise _unfinished()


async def _frames(opening: Opening, shape: Shape) -> AsyncGenerator[bytes, None]:
    try:
        async for frame in _good_frames(opening, shape):
            yield frame
    except OctavoError as error:
        yield _error_frame(error)
    except Exception:
        _log.exception("a stream failed")
        yield _error_frame(OctavoError("The service failed on this request.", hint="Its log says why."))


async def _good_frames(opening: Opening, shape: Shape) -> AsyncIterator[bytes]:
    async for step in opening.rest():
        match step:
            case Text():
                if step.text:
                    yield shape.text(step.text)
            case Loading():
                yield f": loading {step.share:.0%}\n\n".encode("ascii")
            case Serving():
                if first := shape.opening(step.instance):
                    yield first
            case Finished():
                yield shape.ending(step) + DONE
                return
    raise _unfinished()


def _error_frame(error: OctavoError) -> bytes:
    return b"data: " + _encode({"error": openai_error(error)}) + b"\n\n"


def _unfinished() -> OctavoError:
    return WorkerCrashed(
        "The model's process ended before its answer did.", hint="Ask again; it starts anew."
    )
