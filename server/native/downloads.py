"""Downloads from the Hub: on the control door, and on the public port where agents may download."""

from typing import Annotated

import msgspec
from fastapi import APIRouter, Depends, Request
from msgspec import Meta
from starlette.responses import Response

from octavo.core.client.types import DownloadList
from octavo.core.errors import InvalidRequest
from octavo.core.hub.reference import Reference, parse_reference
from octavo.server.answering import json_response
from octavo.server.bodies import read_json
from octavo.server.doors import door_of
from octavo.server.downloading import begin_download, download_answer
from octavo.server.failures import no_route
from octavo.server.presence import while_connected
from octavo.server.studio import studio_of


async def _allowed(request: Request) -> None:
    """Let the routes exist on the public port only where the settings say so."""
    may = studio_of(request).settings.current.hub.agents_may_download
    if door_of(request) != "control" and not may:
        raise no_route(request.method, request.url.path)


router = APIRouter(dependencies=[Depends(_allowed)])


class DownloadBody(msgspec.Struct):
    """What to download: ``org/name``, ``org/name@QUANT`` or an address on the Hub.

    ``quantization`` or ``file`` name the choice apart from it; ``projector`` false leaves the image part out.
    """

    model: Annotated[str, Meta(min_length=1, max_length=2000)]
    quantization: str | None = None
    file: str | None = None
    revision: str | None = None
    projector: bool | None = None


@router.post("/api/v1/models/download")
async def download_model(request: Request) -> Response:
    """Begin a download, or go on with it; the answer comes as soon as it is queued."""
    studio = studio_of(request)
    body = await read_json(request, DownloadBody)
    reference = _reference(body, (await studio.hub_reach.client.access()).endpoint)
    work = begin_download(studio, reference, with_projector=body.projector is not False)
    return json_response(await while_connected(request.receive, work))


@router.get("/api/v1/models/download/status/{id}")
async def download_status(request: Request, id: str) -> Response:
    """Tell how a download stands."""
    return json_response(download_answer(studio_of(request).downloads.find(id)))


@router.post("/api/v1/models/download/{id}/pause")
async def pause_download(request: Request, id: str) -> Response:
    """Stop a download for now."""
    return json_response(download_answer(await studio_of(request).downloads.pause(id)))


@router.post("/api/v1/models/download/{id}/resume")
async def resume_download(request: Request, id: str) -> Response:
    """Go on with a download."""
    return json_response(download_answer(await studio_of(request).downloads.resume(id)))


@router.post("/api/v1/models/download/{id}/cancel")
async def cancel_download(request: Request, id: str) -> Response:
    """End a download and remove what has come."""
    return json_response(download_answer(await studio_of(request).downloads.cancel(id)))


@router.get("/api/v1/downloads")
async def list_downloads(request: Request) -> Response:
    """List all downloads, the oldest first."""
    return json_response(DownloadList(studio_of(request).downloads.all()))


@router.delete("/api/v1/downloads/{id}")
async def forget_download(request: Request, id: str) -> Response:
    """Take a download that has ended off the list."""
    await studio_of(request).downloads.forget(id)
    return json_response({})


def _reference(body: DownloadBody, endpoint: str) -> Reference:
    found = parse_reference(body.model, endpoint)
    named = {name for name in (found.wanted, body.file, body.quantization) if name}
    if len(named) > 1:
        raise InvalidRequest("The body names more than one choice.", hint="Name one.", param="quantization")
    return Reference(found.repo, next(iter(named), None), body.revision or found.revision)
