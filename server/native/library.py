"""What is done with the files of the library: check, compare, pair, delete; on the control door only."""

import asyncio

import msgspec
from fastapi import APIRouter, Depends, Request
from starlette.responses import Response

from octavo.core.client.types import VerifyAnswer
from octavo.core.errors import InstanceBusy
from octavo.core.events import VerifyProgressed
from octavo.core.library.removal import Removal
from octavo.core.library.transfer import Cancel
from octavo.server.answering import json_response
from octavo.server.bodies import read_json
from octavo.server.doors import control_only
from octavo.server.library import duplicates_of, exact, projector_chosen, removed, verified
from octavo.server.listing import listed, tell_changes, tell_library
from octavo.server.presence import while_connected
from octavo.server.running_imports import Throttled
from octavo.server.studio import Studio, studio_of

router = APIRouter(dependencies=[Depends(control_only)])


class VerifyBody(msgspec.Struct):
    """Which model to check; ``accept`` takes what was changed here as right from now on."""

    model: str
    accept: bool | None = None


class ProjectorBody(msgspec.Struct):
    """What goes with a model: a GGUF file's path, ``none``, or ``auto`` (what the headers say)."""

    model: str
    projector: str


@router.get("/api/v1/models/duplicates")
async def list_duplicates(request: Request) -> Response:
    """List the models that are on disk more than once."""
    studio = studio_of(request)
    await listed(studio)
    return json_response(await asyncio.to_thread(duplicates_of, studio.catalog, studio.home))


@router.post("/api/v1/models/verify")
async def verify_model(request: Request) -> Response:
    """Read a model whole and compare its checksums; a client that goes away calls it off."""
    body = await read_json(request, VerifyBody)
    return json_response(await while_connected(request.receive, _verified(studio_of(request), body)))


@router.post("/api/v1/models/projector")
async def choose_projector(request: Request) -> Response:
    """Have a projector go with a model, or none."""
    studio = studio_of(request)
    body = await read_json(request, ProjectorBody)
    record = await asyncio.to_thread(projector_chosen, studio.catalog, body.model, body.projector)
    tell_changes(studio)
    return json_response(record)


@router.delete("/api/v1/models/{name:path}")
async def remove_model(
    request: Request, name: str, dry_run: bool = False, force: bool = False, permanently: bool = False
) -> Response:
    """Delete a model by its whole id, or with ``dry_run`` say what would go; ``force`` unloads it first."""
    studio = studio_of(request)
    if not dry_run:
        await _unloaded(studio, name, force)
    try:
        return json_response(await _removed(studio, name, dry_run, permanently))
    finally:
        if not dry_run:
            await tell_library(studio)


async def _verified(studio: Studio, body: VerifyBody) -> VerifyAnswer:
    def tell(done: int, total: int) -> None:
        studio.hub.publish(VerifyProgressed(model=body.model, done_bytes=done, total_bytes=total))

    def work(called_off: Cancel) -> VerifyAnswer:
        return verified(
            studio.catalog, studio.home, body.model, Throttled(tell), called_off, accept=bool(body.accept)
        )

    return await studio.imports.run(None, work)


async def _removed(studio: Studio, name: str, dry_run: bool, permanently: bool) -> Removal:
    return await asyncio.to_thread(removed, studio.catalog, name, dry_run=dry_run, permanently=permanently)


async def _unloaded(studio: Studio, name: str, force: bool) -> None:
    """Unload the model, or refuse where that isn't asked for; what can't be deleted is refused first."""
    model = await asyncio.to_thread(exact, studio.catalog, name)
    await _removed(studio, model.id, True, False)
    alive = [one for one in studio.runtime.instances() if one.model == model.id and one.state != "crashed"]
    if alive and not force:
        raise InstanceBusy(
            f"{model.id} is loaded as {', '.join(one.instance for one in alive)}.",
            hint="Unload it first: octavo unload, or octavo rm --force.",
        )
    for one in alive:
        await studio.runtime.unload(one.instance)
