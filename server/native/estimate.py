"""What a load would need, told without loading."""

from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Request
from msgspec import Meta
from starlette.responses import Response

from octavo.core.client.types import EstimateAnswer
from octavo.core.errors import InvalidRequest
from octavo.server.answering import json_response
from octavo.server.bodies import read_json
from octavo.server.doors import door_of
from octavo.server.estimates import estimate_answer
from octavo.server.native.load_fields import load_fields
from octavo.server.studio import studio_of

router = APIRouter()


class EstimateBody(msgspec.Struct):
    """Which model, and for how much memory; the load settings are read beside it.

    ``budget_bytes`` stands for another machine, None for this one as it is now.
    """

    model: str
    budget_bytes: Annotated[int, Meta(ge=0)] | None = None
    rule_of_thumb: bool | None = None


@router.post("/api/v1/estimate")
async def estimate_load(request: Request) -> Response:
    """Say what a load would need and what would come of it."""
    fields = await read_json(request, dict[str, Any])
    try:
        body = msgspec.convert(fields, EstimateBody)
    except msgspec.ValidationError as fault:
        raise InvalidRequest(f"The body can't be used: {fault}.") from fault
    return json_response(await estimated(request, body, load_fields(fields)))


async def estimated(request: Request, body: EstimateBody, fields: dict[str, object]) -> EstimateAnswer:
    """Estimate a load with these load settings."""
    model, report = await studio_of(request).runtime.estimate(
        body.model,
        fields,
        budget_bytes=body.budget_bytes,
        allow_path=door_of(request) == "control",
    )
    return estimate_answer(model, report, with_rule=bool(body.rule_of_thumb))
