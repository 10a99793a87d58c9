"""Answers in conversations: followed and stopped by id, on the control door only."""

from collections.abc import AsyncGenerator, AsyncIterator

import msgspec
from fastapi import APIRouter, Depends, Request
from starlette.responses import Response

from octavo.core.chats.types import ReplyEvent
from octavo.core.errors import ChatNotFound
from octavo.server.answering import json_response
from octavo.server.doors import control_only
from octavo.server.sse import EventStream
from octavo.server.studio import studio_of

router = APIRouter(dependencies=[Depends(control_only)])
_encode = msgspec.json.Encoder().encode


@router.get("/api/v1/replies/{reply}/events")
async def follow_reply(request: Request, reply: str) -> Response:
    """Join a reply: all text so far, what comes, its end."""
    events = studio_of(request).replies.follow(reply)
    # an unknown reply is refused before there are headers
    first = await anext(events, None)
    if first is None:
        raise ChatNotFound("There is no such reply.", reply=reply)
    frames = _frames(first, events)
    return EventStream(frames, frames)


@router.post("/api/v1/replies/{reply}/stop")
async def stop_reply(request: Request, reply: str) -> Response:
    """Stop a reply; its text so far stays."""
    await studio_of(request).replies.stop(reply)
    return json_response({})


async def _frames(first: ReplyEvent, events: AsyncIterator[ReplyEvent]) -> AsyncGenerator[bytes, None]:
    yield _frame(first)
    async for event in events:
        yield _frame(event)


def _frame(event: ReplyEvent) -> bytes:
    return b"data: " + _encode(event) + b"\n\n"
