"""The public port and the service itself, switched through the control door."""

import msgspec
from fastapi import APIRouter, Depends, Request
from starlette.responses import Response

from octavo.core.errors import InvalidRequest
from octavo.server.answering import json_response
from octavo.server.auth import Keys
from octavo.server.bodies import read_json
from octavo.server.doors import control_only
from octavo.server.hosts import check_origin_name
from octavo.server.public import PortOptions
from octavo.server.studio import Studio, studio_of

router = APIRouter(dependencies=[Depends(control_only)])


class StartBody(msgspec.Struct):
    """Where to open the port and for whom; what isn't said comes from the settings."""

    host: str | None = None
    port: int | None = None
    cors: list[str] | None = None
    keys: list[str] | None = None
    jit: bool | None = None
    without_key: bool | None = None


@router.get("/api/v1/server")
async def get_server(request: Request) -> Response:
    """Tell whether the public port is open, and where."""
    return json_response(studio_of(request).public.status)


@router.post("/api/v1/server/start")
async def start_server(request: Request) -> Response:
    """Open the public port; a taken one is a 409 that names it."""
    studio = studio_of(request)
    body = await read_json(request, StartBody, empty=b"{}")
    return json_response(await studio.public.open(port_options(studio, body)))


@router.post("/api/v1/server/stop")
async def stop_server(request: Request) -> Response:
    """Close the public port."""
    return json_response(await studio_of(request).public.close())


@router.post("/api/v1/service/stop")
async def stop_service(request: Request) -> Response:
    """End the service, after this answer."""
    studio_of(request).stop()
    return json_response({})


def port_options(studio: Studio, body: StartBody) -> PortOptions:
    """Fill up what the body leaves unsaid."""
    settings = studio.settings.current.server
    port = settings.port if body.port is None else body.port
    if not 0 <= port <= 65535:
        raise InvalidRequest(f"{port} is no port.", hint="Ports go from 1 to 65535.", param="port")
    for origin in body.cors or ():
        check_origin_name(origin)
    return PortOptions(
        host=body.host or settings.host,
        port=port,
        origins=tuple(origin.rstrip("/") for origin in body.cors or ()),
        keys=Keys(body.keys or []),
        jit=body.jit,
        without_key=bool(body.without_key),
    )
