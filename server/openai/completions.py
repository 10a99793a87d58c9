"""``POST /v1/completions``."""

from fastapi import APIRouter, Request
from starlette.responses import Response

from octavo.server.bodies import read_json
from octavo.server.openai.answers import answer
from octavo.server.openai.bodies import CompletionBody
from octavo.server.openai.names import asker_of, chosen_model
from octavo.server.openai.shapes import CompletionShape
from octavo.server.openai.translate import completion_request, wants_usage
from octavo.server.studio import studio_of

router = APIRouter()


@router.post("/v1/completions")
async def create_completion(request: Request) -> Response:
    """Continue a raw prompt."""
    body = await read_json(request, CompletionBody)
    model = await chosen_model(request, body.model)
    asked = completion_request(body, model, asker_of(request))
    steps = studio_of(request).runtime.complete(asked)
    return await answer(request, steps, CompletionShape(wants_usage(body)), bool(body.stream))
