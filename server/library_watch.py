"""Let everyone know when models come or go, though nobody asks."""

import asyncio
import contextlib

from octavo.core.library.watch import Watch
from octavo.server.listing import tell_changes
from octavo.server.studio import Studio


def watch_library(studio: Studio) -> Watch:
    """Make the watcher of the library's folders; it tells of changes on the event loop that runs now."""
    loop = asyncio.get_running_loop()

    def changed() -> None:
        # the loop may have ended with the service meanwhile
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(tell_changes, studio)

    return Watch(studio.catalog, changed)
