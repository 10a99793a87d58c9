"""Preferences, on the control door only."""

import asyncio
from typing import Any

from fastapi import APIRouter, Depends, Request
from starlette.responses import Response

from octavo.core.errors import InvalidRequest
from octavo.core.events import SettingsChanged
from octavo.server.answering import json_response
from octavo.server.bodies import read_json
from octavo.server.doors import control_only
from octavo.server.studio import Studio, studio_of

router = APIRouter(dependencies=[Depends(control_only)])


@router.get("/api/v1/settings")
async def get_settings(request: Request) -> Response:
    """Give all preferences by group."""
    return json_response(_as_json(studio_of(request)))


@router.patch("/api/v1/settings")
async def change_settings(request: Request) -> Response:
    """Set the fields that the body names, group by group."""
    studio = studio_of(request)
    groups = await read_json(request, dict[str, dict[str, Any]])
    if not groups:
        raise InvalidRequest("The body names no setting.")
    async with studio.changing_settings:
        for group, values in groups.items():
            await asyncio.to_thread(studio.settings.change, group, **values)
            studio.hub.publish(SettingsChanged(group=group))
        if "hub" in groups:
            await studio.downloads.refresh()
    return json_response(_as_json(studio))


def _as_json(studio: Studio) -> dict[str, Any]:
    return studio.settings.current.model_dump(mode="json")
