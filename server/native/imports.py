"""Bring models into the library, and call that off."""

from fastapi import APIRouter, Depends, Request
from starlette.responses import Response

from octavo.core.client.types import ImportAnswer
from octavo.core.errors import NotFound
from octavo.core.events import ImportProgressed
from octavo.core.gguf import printable
from octavo.core.hub.origin import proposer
from octavo.core.library.transfer import Cancel
from octavo.server.answering import json_response
from octavo.server.bodies import read_json
from octavo.server.doors import control_only
from octavo.server.imports import ImportWish, import_path
from octavo.server.listing import tell_library
from octavo.server.presence import while_connected
from octavo.server.running_imports import Throttled
from octavo.server.studio import Studio, studio_of

router = APIRouter(dependencies=[Depends(control_only)])


@router.post("/api/v1/models/import")
async def import_model(request: Request) -> Response:
    """Bring a model or a folder into the library, or with ``dry_run`` tell what would be done.

    A client that goes away calls the import off.
    """
    wish = await read_json(request, ImportWish)
    return json_response(await while_connected(request.receive, _imported(studio_of(request), wish)))


@router.post("/api/v1/models/import/{name:path}/cancel")
async def cancel_import(request: Request, name: str) -> Response:
    """Call off the imports of that id; their own requests answer what came of it."""
    if not studio_of(request).imports.call_off(name):
        raise NotFound(f"There is no import {printable(name)!r} under way.")
    return json_response({"id": name})


async def _imported(studio: Studio, wish: ImportWish) -> ImportAnswer:
    source = printable(wish.path)

    def tell(done: int, total: int) -> None:
        event = ImportProgressed(source=source, done_bytes=done, total_bytes=total, id=wish.id or "")
        studio.hub.publish(event)

    def work(called_off: Cancel) -> ImportAnswer:
        look_up = proposer(studio.hub_reach.access, studio.home.cache)
        return import_path(studio.home, wish, Throttled(tell), called_off, look_up)

    try:
        return await studio.imports.run(wish.id, work)
    finally:
        if not wish.dry_run:
            await tell_library(studio)
