"""``GET /api/v1/events``: what happens in the service, and the leases that hold it."""

from collections.abc import AsyncGenerator

import msgspec
from fastapi import APIRouter, Request
from starlette.responses import Response

from octavo.core.client.types import Lease
from octavo.core.events import AnyEvent
from octavo.server.doors import control_only, door_of
from octavo.server.hub import PRIVATE, beginning_with, is_news
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
    hidden: tuple[type[AnyEvent], ...] = () if is_private else PRIVATE
    frames = studio.hub.follow(lambda event: is_news(event) and not isinstance(event, hidden))
    return EventStream(frames, frames)


class HeldLease:
    """A lease that lives as long as its stream; models that only it had loaded go with it."""

    def __init__(self, studio: Studio, kind: str) -> None:
        self._studio = studio
        self._id = studio.leases.open(kind)

    def frames(self) -> AsyncGenerator[bytes, None]:
        """Give the lease's id, then the events."""
        granted = b"data: " + msgspec.json.encode(Lease(self._id)) + b"\n\n"
        # who follows before the id is known misses nothing in between
        return beginning_with(granted, self._studio.hub.follow())

    async def aclose(self) -> None:
        """End the lease."""
        self._studio.leases.close(self._id)
        await self._studio.runtime.release(self._id)
