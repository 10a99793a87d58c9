"""List the library as the disk is now, and tell everyone when it has changed."""

import asyncio

from octavo.core.events import LibraryChanged
from octavo.core.library.models import Model
from octavo.server.studio import Studio


async def listed(studio: Studio) -> list[Model]:
    """List all rows, at most a second old: also files that came or went by hand."""
    models = await asyncio.to_thread(_looked, studio)
    tell_changes(studio)
    return models


async def tell_library(studio: Studio) -> None:
    """Read the library anew and tell everyone how many models there are."""
    await asyncio.to_thread(studio.catalog.refresh)
    studio.told_library = -1
    tell_changes(studio)


def tell_changes(studio: Studio) -> None:
    """Tell everyone when the rows are others than those that were told last; called on the event loop."""
    generation = studio.catalog.generation
    if generation != studio.told_library:
        studio.told_library = generation
        studio.hub.publish(LibraryChanged(models=len(studio.catalog.models())))


def _looked(studio: Studio) -> list[Model]:
    if studio.told_library == 0:
        # the first look of all is no change
        studio.catalog.models()
        studio.told_library = studio.catalog.generation
    return studio.catalog.fresh()
