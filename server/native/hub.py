"""What the Hub offers, for the person at this machine: on the control door only."""

from typing import Annotated

import msgspec
from fastapi import APIRouter, Depends, Request
from msgspec import Meta
from starlette.responses import Response

from octavo.core.errors import InvalidRequest
from octavo.core.hub.repository import DEFAULT_REVISION
from octavo.core.hub.search import MOST_RESULTS, HubQuery, Sort
from octavo.core.hub.types import Repository
from octavo.server.answering import json_response
from octavo.server.bodies import read_json
from octavo.server.doors import control_only
from octavo.server.presence import while_connected
from octavo.server.studio import studio_of

router = APIRouter(dependencies=[Depends(control_only)])

Count = Annotated[int, Meta(ge=0, le=10**15)]


class SearchFields(msgspec.Struct, frozen=True):
    """The query of a search; ``gated`` is true or false, or isn't there."""

    q: str = ""
    author: str | None = None
    sort: Sort = "downloads"
    gated: bool | None = None
    architecture: str | None = None
    min_parameters: Count | None = None
    max_parameters: Count | None = None
    limit: Annotated[int, Meta(ge=1, le=MOST_RESULTS)] = 20
    page: str | None = None


class TokenBody(msgspec.Struct):
    """A token to keep."""

    token: str

    def __repr__(self) -> str:
        """Tell nothing."""
        return "TokenBody(…)"


@router.get("/api/v1/hub/search")
async def search_hub(request: Request) -> Response:
    """Look for repositories with GGUF files."""
    said = {name: value for name, value in request.query_params.items() if value}
    try:
        fields = msgspec.convert(said, SearchFields, strict=False)
    except msgspec.ValidationError as fault:
        raise InvalidRequest(f"The query can't be used: {fault}.") from fault
    query = HubQuery(
        text=fields.q,
        **{name: getattr(fields, name) for name in SearchFields.__struct_fields__ if name != "q"},
    )
    return json_response(
        await while_connected(request.receive, studio_of(request).hub_reach.client.search(query))
    )


@router.get("/api/v1/hub/models/{repo:path}")
async def show_repository(request: Request, repo: str) -> Response:
    """List what a repository offers; each choice judged for this machine, unless ``?verdicts=0``."""
    return json_response(await while_connected(request.receive, _repository(request, repo)))


@router.get("/api/v1/hub/card/{repo:path}")
async def show_card(request: Request, repo: str) -> Response:
    """Give a repository's card, as Markdown that a stranger wrote."""
    client = studio_of(request).hub_reach.client
    return json_response(await while_connected(request.receive, client.card(repo, _revision(request))))


@router.get("/api/v1/hub/status")
async def hub_status(request: Request) -> Response:
    """Tell how the Hub is reached; with ``?check=1`` it is asked whose the token is."""
    reach = studio_of(request).hub_reach
    checks = request.query_params.get("check", "0") not in ("", "0", "false")
    return json_response(await while_connected(request.receive, reach.status(checks=checks)))


@router.put("/api/v1/hub/token")
async def keep_token(request: Request) -> Response:
    """Keep a token for the Hub, and tell where."""
    body = await read_json(request, TokenBody)
    return json_response(await studio_of(request).hub_reach.log_in(body.token))


@router.delete("/api/v1/hub/token")
async def forget_token(request: Request) -> Response:
    """Delete the token that is kept."""
    return json_response(await studio_of(request).hub_reach.log_out())


async def _repository(request: Request, repo: str) -> Repository:
    studio = studio_of(request)
    found = await studio.hub_reach.client.repository(repo, _revision(request))
    if request.query_params.get("verdicts") in ("0", "false"):
        return found
    return await studio.hub_reach.choices.judged(found, studio.runtime.claims())


def _revision(request: Request) -> str:
    return request.query_params.get("revision") or DEFAULT_REVISION
