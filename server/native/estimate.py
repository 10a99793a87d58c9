"""What a load would need, told without loading."""

from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Request
from msgspec import Meta
from starlette.responses import Response

from octavo.core.client.types import EstimateAnswer
from octavo.core.errors import InvalidRequest
from octavo.core.hub.names import checked_repo
from octavo.core.hub.reference import Reference
from octavo.core.hub.repository import DEFAULT_REVISION
from octavo.server.answering import json_response
from octavo.server.bodies import read_json
from octavo.server.doors import door_of
from octavo.server.estimates import estimate_answer
from octavo.server.native.load_fields import load_fields
from octavo.server.presence import while_connected
from octavo.server.studio import studio_of

router = APIRouter()


class EstimateBody(msgspec.Struct):
    """Which model, and for how much memory; the load settings are read beside it.

    It is one of the library, or of a repository of the Hub the choice that ``file`` names (its name, quant,
    or a file's path; None is the recommended one). ``budget_bytes`` stands for another machine, None for this
    one as it is now.
    """

    model: str | None = None
    repo: str | None = None
    file: str | None = None
    revision: str | None = None
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
    """Estimate a load with these load settings; a repository of the Hub only through the control door."""
    studio, is_own = studio_of(request), door_of(request) == "control"
    if body.repo is not None and body.model is None and is_own:
        wish = studio.hub_reach.estimated(
            Reference(checked_repo(body.repo), body.file, body.revision or DEFAULT_REVISION),
            fields,
            studio.runtime.claims(),
            budget_bytes=body.budget_bytes,
        )
        model, report = await while_connected(request.receive, wish)
    elif body.model is not None and body.repo is None:
        model, report = await studio.runtime.estimate(
            body.model, fields, budget_bytes=body.budget_bytes, allow_path=is_own
        )
    else:
        raise InvalidRequest("Give a model of the library.", param="model")
    return estimate_answer(model, report, with_rule=bool(body.rule_of_thumb))
