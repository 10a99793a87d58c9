"""Read request bodies: bounded, patient for a while, and with a precise 400 for what can't be read."""

import asyncio
import re
from collections.abc import AsyncIterator
from typing import TypeVar

import msgspec
from fastapi import Request

from octavo.core.errors import Cancelled, InvalidRequest, RequestTooLarge

BODY_LIMIT = 64 * 1024 * 1024
# bytes beyond the limit that are still read and dropped, so that the client gets to read the refusal
DISCARD_LIMIT = 4 * BODY_LIMIT
SILENCE_S = 30.0

Body = TypeVar("Body")


async def read_json(request: Request, kind: type[Body], *, empty: bytes = b"") -> Body:
    """Read the body as JSON of this shape; ``empty`` stands in for an empty one.

    Raises ``InvalidRequest`` naming the field, ``RequestTooLarge``, or ``Cancelled`` when the client left.
    """
    body = await read_body(request) or empty
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.ValidationError as fault:
        raise _misfit(str(fault)) from fault
    except RecursionError as fault:
        raise InvalidRequest("The body is nested too deeply.") from fault
    except (msgspec.DecodeError, UnicodeDecodeError) as fault:
        raise InvalidRequest(
            f"The body is not sound JSON: {fault}.", hint="It must be UTF-8 text."
        ) from fault


async def read_body(request: Request) -> bytes:
    """Read the whole body; raises ``RequestTooLarge`` beyond 64 MiB."""
    chunks: list[bytes] = []
    size = 0
    async for chunk in _chunks(request):
        size += len(chunk)
        if size <= BODY_LIMIT:
            chunks.append(chunk)
        elif size > DISCARD_LIMIT:
            break
    if size > BODY_LIMIT:
        raise RequestTooLarge(f"The body is larger than {BODY_LIMIT >> 20} MiB.", limit_bytes=BODY_LIMIT)
    return b"".join(chunks)


async def _chunks(request: Request) -> AsyncIterator[bytes]:
    more = True
    while more:
        try:
            message = await asyncio.wait_for(request.receive(), SILENCE_S)
        except TimeoutError as fault:
            raise InvalidRequest("The rest of the body did not arrive.") from fault
        if message["type"] == "http.disconnect":
            raise Cancelled("The client went away.")
        more = message.get("more_body", False)
        yield message.get("body", b"")


def _misfit(text: str) -> InvalidRequest:
    where = re.search(r"\$\.?([\w.\[\]]+)", text)
    missing = re.search(r"missing required field `(\w+)`", text)
    param = ".".join(part[1] for part in (where, missing) if part)
    said = text.partition(" - at `")[0]
    return InvalidRequest(f"{param}: {said}." if param else f"{said}.", param=param or None)
