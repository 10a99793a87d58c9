"""Reach the service from a verb: the running one, or one that is started."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from octavo.core.client import ServiceClient
from octavo.core.client.types import Lease, StreamEvent
from octavo.core.config import paths
from octavo.core.config.paths import Home
from octavo.core.errors import ServiceUnavailable


async def running() -> ServiceClient | None:
    """Connect to the service, if one runs; raises ``StorageFailed`` where Octavo can keep nothing."""
    try:
        return await ServiceClient.connect(checked_home())
    except ServiceUnavailable:
        return None


async def started() -> ServiceClient:
    """Connect to the service, starting one when none runs."""
    return await ServiceClient.start_or_connect(checked_home())


def checked_home() -> Home:
    """Give the home, after a look that it can be one."""
    home = paths.home()
    home.check()
    return home


@asynccontextmanager
async def held(
    client: ServiceClient, on_event: Callable[[StreamEvent], None] = lambda event: None
) -> AsyncIterator[str]:
    """Hold a lease of this command's while it works; gives the lease's id."""
    granted: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    follower = asyncio.create_task(_follow(client, granted, on_event))
    both: set[asyncio.Future[Any]] = {granted, follower}
    await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
    try:
        if not granted.done():
            granted.cancel()
            await follower
            raise ServiceUnavailable("The service gave no lease.")
        yield granted.result()
    finally:
        follower.cancel()
        with contextlib.suppress(asyncio.CancelledError, ServiceUnavailable):
            await follower


def model_argument(name: str) -> str:
    """Make a path absolute, since the service runs in another folder; a name stays as it is."""
    path = Path(name).expanduser()
    return str(path.absolute()) if name.lower().endswith(".gguf") and path.is_file() else name


async def _follow(
    client: ServiceClient, granted: asyncio.Future[str], on_event: Callable[[StreamEvent], None]
) -> None:
    async for event in client.events(lease="command"):
        if isinstance(event, Lease):
            granted.set_result(event.lease)
        else:
            on_event(event)
