"""Which model a request means, and whether this door may have it."""

import asyncio
from dataclasses import dataclass

from fastapi import Request

from octavo.core.errors import ModelNotFound
from octavo.server.doors import door_of
from octavo.server.studio import Studio, studio_of


@dataclass(frozen=True, slots=True)
class Asker:
    """Who asks, and whether paths are names for them."""

    client: str
    allow_path: bool


async def chosen_model(request: Request, name: str) -> str:
    """Give the name to hand to the runtime.

    Where the public port was opened without loading on demand, only what is loaded is served; raises
    ``ModelNotFound`` or ``AmbiguousModel``.
    """
    studio = studio_of(request)
    if allows_path(request) or jit(studio):
        return name
    loaded = _loaded_names(studio)
    if name in loaded:
        return name
    model = (await asyncio.to_thread(studio.catalog.find, name, allow_path=False)).id
    if model not in loaded:
        raise ModelNotFound(
            f"{model} is not loaded, and loading on demand is off.",
            hint="octavo load loads it.",
            candidates=sorted(loaded),
        )
    return model


def allows_path(request: Request) -> bool:
    """Tell whether a file's path may stand for a model: on the control door only."""
    return door_of(request) == "control"


def jit(studio: Studio) -> bool:
    """Tell whether a request may load a model."""
    said = studio.public.jit
    return studio.settings.current.server.jit if said is None else said


def asker_of(request: Request) -> Asker:
    """Tell who asks: for a fair queue by address, or as the control door's one person."""
    address = request.client.host if request.client is not None else ""
    return Asker("control" if allows_path(request) else address, allows_path(request))


def _loaded_names(studio: Studio) -> set[str]:
    alive = [status for status in studio.runtime.instances() if status.state in ("ready", "loading")]
    return {status.instance for status in alive} | {status.model for status in alive}
