"""``POST /v1/chat/completions``."""

from fastapi import APIRouter, Request
from starlette.responses import Response

from octavo.server.bodies import read_json
from octavo.server.openai.answers import answer
from octavo.server.openai.bodies import ChatBody
from octavo.server.openai.names import asker_of, chosen_model
from octavo.server.openai.shapes import ChatShape
from octavo.server.openai.translate import chat_request, wants_usage
from octavo.server.studio import studio_of

router = APIRouter()


@router.post("/v1/chat/completions")
async def create_chat_completion(request: Request) -> Response:
    """Answer a conversation."""
    body = await read_json(request, ChatBody)
    model = await chosen_model(request, body.model)
    asked = chat_request(body, model, asker_of(request))
    steps = studio_of(request).runtime.chat(asked)
    return await answer(request, steps, ChatShape(wants_usage(body)), bool(body.stream))
