"""List the library as the disk is now, and tell everyone when it has changed."""

import asyncio

from octavo.core.events import LibraryChanged
from octavo.core.library.models import Model
from octavo.server.studio import Studio

_Seen = set[tuple[str, int, int]]


async def listed(studio: Studio) -> list[Model]:
    """List all rows, at most a second old: also files that came or went by hand."""
    before, models = await asyncio.to_thread(_looked, studio)
    if _seen(before) != _seen(models):
        studio.hub.publish(LibraryChanged(models=len(models)))
    return models


async def tell_library(studio: Studio) -> None:
    """Read the library anew and tell everyone how many models there are."""
    models = await asyncio.to_thread(studio.catalog.refresh)
    studio.hub.publish(LibraryChanged(models=len(models)))


def _looked(studio: Studio) -> tuple[list[Model], list[Model]]:
    return studio.catalog.models(), studio.catalog.fresh()


def _seen(models: list[Model]) -> _Seen:
    return {(model.id, model.size_bytes, model.modified_ns) for model in models}
