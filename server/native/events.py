"""``GET /api/v1/events``: what happens in the service, and the leases that hold it."""

import asyncio
from collections.abc import AsyncGenerator

import msgspec
from fastapi import APIRouter, Request
from starlette.responses import Response

from octavo.core.client.types import Lease
from octavo.server.doors import control_only, door_of
from octavo.server.hub import PRIVATE
from octavo.server.sse import EventStream
from octavo.server.studio import Studio, studio_of

router = APIRouter()


@router.get("/api/v1/events")
async def follow_events(request: Request) -> Response:
    """Stream events until the client leaves; with ``?lease=KIND`` the stream holds a lease as long."""
    studio = studio_of(request)
    kind = request.query_params.get("lease")
    if kind is not None:
        await control_only(request)
        lease = HeldLease(studio, kind)
        return EventStream(lease.frames(), lease)
    is_private = door_of(request) == "control"
    frames = studio.hub.follow(lambda event: is_private or not isinstance(event, PRIVATE))
    return EventStream(frames, frames)


class HeldLease:
    """A lease that lives as long as its stream; models that only it had loaded go with it."""

    def __init__(self, studio: Studio, kind: str) -> None:
        self._studio = studio
        self._id = studio.leases.open(kind)

    async def frames(self) -> AsyncGenerator[bytes, None]:
        """Give the lease's id, then the events."""
        frames = self._studio.hub.follow()
        # begin to follow before the id is known: nothing is missed in between
        first = asyncio.ensure_future(anext(frames, b""))
        try:
            await asyncio.sleep(0)
            yield b"data: " + msgspec.json.encode(Lease(self._id)) + b"\n\n"
            yield await first
            async for frame in frames:
                yield frame
        finally:
            first.cancel()
            await asyncio.gather(first, return_exceptions=True)
            await frames.aclose()

    async def aclose(self) -> None:
        """End the lease."""
        self._studio.leases.close(self._id)
        await self._studio.runtime.release(self._id)
