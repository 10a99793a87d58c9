"""The library, and loading from it."""

import time
from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Request
from msgspec import Meta
from starlette.responses import Response

from octavo.core.client.types import LoadAnswer, ModelList, UnloadAnswer
from octavo.core.errors import InvalidRequest, ServiceUnavailable
from octavo.core.events import InstanceStatus
from octavo.core.library.search import matching
from octavo.server.answering import json_response
from octavo.server.bodies import read_json
from octavo.server.doors import door_of
from octavo.server.listing import listed
from octavo.server.native.estimate import EstimateBody, estimated
from octavo.server.native.load_fields import load_fields
from octavo.server.presence import while_connected
from octavo.server.records import model_records
from octavo.server.studio import studio_of

router = APIRouter()
LEASE_HEADER = "Octavo-Lease"


class LoadBody(msgspec.Struct):
    """Which model to load, and under what name; the load settings are read beside it.

    ``ttl``: idle seconds until it is unloaded; 0 is never. ``force`` loads what would not run by the
    estimate; ``estimate_only`` loads nothing and answers like ``/api/v1/estimate``.
    """

    model: str
    identifier: str | None = None
    ttl: Annotated[float, Meta(ge=0)] | None = None
    force: bool | None = None
    estimate_only: bool | None = None


class UnloadBody(msgspec.Struct):
    """Which instance to unload."""

    instance_id: str


@router.get("/api/v1/models")
async def list_models(request: Request, q: str = "") -> Response:
    """List the library, unreadable files included, or what of it holds every word of ``q``."""
    studio = studio_of(request)
    models = matching(await listed(studio), q)
    return json_response(ModelList(model_records(models, studio.runtime.instances())))


@router.post("/api/v1/models/load")
async def load_model(request: Request) -> Response:
    """Load a model and answer when it is ready; a client that goes away calls the load off."""
    fields = await read_json(request, dict[str, Any])
    body = _load_body(fields)
    if body.estimate_only:
        return json_response(await estimated(request, EstimateBody(body.model), load_fields(fields)))
    started = time.monotonic()
    status = await while_connected(request.receive, _load(request, body, load_fields(fields)))
    return json_response(_loaded(status, time.monotonic() - started))


@router.post("/api/v1/models/unload")
async def unload_model(request: Request) -> Response:
    """Unload an instance now; what it was answering ends with an error."""
    body = await read_json(request, UnloadBody)
    event = await studio_of(request).runtime.unload(body.instance_id)
    return json_response(UnloadAnswer(event.instance, event.freed_bytes, event.came_back))


async def _load(request: Request, body: LoadBody, fields: dict[str, object]) -> InstanceStatus:
    studio = studio_of(request)
    lease = request.headers.get(LEASE_HEADER)
    if lease and not studio.leases.holds(lease):
        raise ServiceUnavailable("The window that asked for this load is gone.")
    status = await studio.runtime.load(
        body.model,
        fields,
        instance=body.identifier,
        ttl_s=body.ttl or None,
        holder=lease,
        allow_path=door_of(request) == "control",
        force=bool(body.force),
    )
    if lease and not studio.leases.holds(lease):  # it ended while the model was loading
        await studio.runtime.release(lease)
    return status


def _load_body(fields: dict[str, Any]) -> LoadBody:
    try:
        return msgspec.convert(fields, LoadBody)
    except msgspec.ValidationError as fault:
        raise InvalidRequest(f"The body can't be used: {fault}.") from fault


def _loaded(status: InstanceStatus, seconds: float) -> LoadAnswer:
    return LoadAnswer(
        instance_id=status.instance,
        load_time_seconds=round(seconds, 3),
        load_config=status.config,
        reasons=status.reasons,
        notes=status.notes,
    )
