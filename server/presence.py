"""Notice that a client went away, whatever it was waiting for."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from starlette.types import Receive

from octavo.core.errors import Cancelled

Result = TypeVar("Result")


async def until_gone(receive: Receive) -> None:
    """Return when the client's connection is closed."""
    while (await receive())["type"] != "http.disconnect":
        continue


async def while_connected(receive: Receive, work: Coroutine[Any, Any, Result]) -> Result:
    """Do work for a client that waits for it; when it goes away, cancel the work and raise ``Cancelled``."""
    task = asyncio.ensure_future(work)
    gone = asyncio.ensure_future(until_gone(receive))
    try:
        await asyncio.wait({task, gone}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        raise Cancelled("The client went away.")
    finally:
        await ended(task, gone)


async def ended(*tasks: asyncio.Task[Any]) -> None:
    """Cancel tasks and wait until they are over; what they raise is dropped, since nobody waits for it."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
