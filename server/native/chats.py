"""Conversations, on the control door only."""

import msgspec
from fastapi import APIRouter, Depends, Request
from starlette.responses import Response

from octavo.core.events import ChatChanged
from octavo.server.answering import json_response
from octavo.server.bodies import read_json
from octavo.server.doors import control_only
from octavo.server.studio import studio_of

router = APIRouter(dependencies=[Depends(control_only)])


class ChatBody(msgspec.Struct):
    """What a conversation begins with, or what is changed of it; what isn't said stays."""

    title: str | None = None
    model: str | None = None
    system_prompt: str | None = None
    sampling: dict[str, float | int] | None = None


class ReplyBody(msgspec.Struct):
    """The person's new turn; without one the last turn is answered again."""

    content: str | None = None
    model: str | None = None


@router.get("/api/v1/chats")
async def list_chats(request: Request) -> Response:
    """List conversations, the newest first."""
    return json_response(await studio_of(request).chats.chats())


@router.post("/api/v1/chats")
async def create_chat(request: Request) -> Response:
    """Begin a conversation."""
    studio = studio_of(request)
    body = await read_json(request, ChatBody, empty=b"{}")
    chat = await studio.chats.create_chat(
        title=body.title or "",
        model=body.model,
        system_prompt=body.system_prompt or "",
        sampling=body.sampling,
    )
    studio.hub.publish(ChatChanged(chat=chat.id))
    return json_response(chat)


@router.get("/api/v1/chats/{chat}")
async def get_chat(request: Request, chat: str) -> Response:
    """Give a conversation with its messages."""
    return json_response(await studio_of(request).chats.chat(chat))


@router.patch("/api/v1/chats/{chat}")
async def update_chat(request: Request, chat: str) -> Response:
    """Change what the body says."""
    studio = studio_of(request)
    body = await read_json(request, ChatBody)
    changed = await studio.chats.update_chat(chat, **msgspec.structs.asdict(body))
    studio.hub.publish(ChatChanged(chat=chat))
    return json_response(changed)


@router.delete("/api/v1/chats/{chat}")
async def delete_chat(request: Request, chat: str) -> Response:
    """Delete a conversation; an answer that is being written in it is stopped."""
    studio = studio_of(request)
    await studio.replies.stop_chat(chat)
    await studio.chats.delete_chat(chat)
    studio.hub.publish(ChatChanged(chat=chat))
    return json_response({})


@router.post("/api/v1/chats/{chat}/replies")
async def start_reply(request: Request, chat: str) -> Response:
    """Answer a turn; the answer is followed by its id."""
    body = await read_json(request, ReplyBody, empty=b"{}")
    started = await studio_of(request).replies.start(chat, body.content, body.model)
    return json_response(started)
