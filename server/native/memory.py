"""``/api/v1/memory``: what is observed of every loaded model's memory, and what moves its pages.

An instance's name may hold slashes, so what follows it is matched from the end, and the order of the routes
counts.
"""

import time
import zlib
from collections.abc import AsyncGenerator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated

import msgspec
from fastapi import APIRouter, Request
from msgspec import Meta
from starlette.responses import Response

from octavo.core.client.types import KeptSnapshot, MemoryAnswer, PinAnswer
from octavo.core.errors import InvalidRequest
from octavo.core.runtime.observer import Observer
from octavo.server.answering import json_response
from octavo.server.bodies import read_json
from octavo.server.hub import MEMORY, beginning_with, frame_of
from octavo.server.presence import while_connected
from octavo.server.sse import EventStream
from octavo.server.studio import Studio, studio_of

if TYPE_CHECKING:  # numpy is for who looks at a map
    from octavo.core.memory.residency import Snapshot

router = APIRouter()
PREFIX = "/api/v1/memory"


class PagesBody(msgspec.Struct):
    """Whose pages: of these layers, or without them of the whole model."""

    layers: Annotated[list[Annotated[int, Meta(ge=-1)]], Meta(min_length=1)] | None = None


class PinBody(PagesBody):
    """Which pages to keep in memory beside those that are kept; ``on`` false lets go of them."""

    on: bool | None = None


@router.get(PREFIX)
async def get_memory(request: Request) -> Response:
    """Tell all that is known of the machine's memory and of every loaded model's."""
    observer = _observer(request)
    details = await observer.details()
    return json_response(MemoryAnswer(at=time.time(), system=observer.sampled().system, instances=details))


@router.get(f"{PREFIX}/stream")
async def follow_memory(request: Request) -> Response:
    """Stream four samples a second, and what changes; ``?residency=1`` has the residency maps made, too."""
    wants_maps = request.query_params.get("residency") not in (None, "", "0")
    watched = WatchedMemory(studio_of(request), wants_maps=wants_maps)
    return EventStream(watched.frames(), watched)


@router.get(f"{PREFIX}/{{instance:path}}/layout")
async def get_layout(request: Request, instance: str) -> Response:
    """Tell what the cells of a model's residency map stand for."""
    return json_response(await _observer(request).layout(instance))


@router.get(f"{PREFIX}/{{instance:path}}/residency")
async def get_residency(request: Request, instance: str) -> Response:
    """Give a residency map, one byte a cell; 304 when it is still the one that the client has."""
    asked = _number(request, "generation")
    snapshot = await _observer(request).residency(instance, asked)
    headers = _about(snapshot)
    if _has_it(request, snapshot, headers["ETag"]):
        return Response(status_code=304, headers=headers)
    return Response(snapshot.cells.tobytes(), media_type="application/octet-stream", headers=headers)


@router.get(f"{PREFIX}/{{instance:path}}/history")
async def list_history(request: Request, instance: str) -> Response:
    """List the residency maps that are kept, the oldest first."""
    kept = _observer(request).history(instance)
    return json_response([KeptSnapshot(generation=generation, at=at) for generation, at in kept])


@router.post(f"{PREFIX}/{{instance:path}}/warm")
async def warm_pages(request: Request, instance: str) -> Response:
    """Bring pages into memory and answer when they are; a client that goes away stops it."""
    body = await read_json(request, PagesBody, empty=b"{}")
    work = _observer(request).warm(instance, body.layers)
    return json_response(await while_connected(request.receive, work))


@router.post(f"{PREFIX}/{{instance:path}}/drop")
async def drop_pages(request: Request, instance: str) -> Response:
    """Drop pages from memory; they come back from the disk when they are needed."""
    body = await read_json(request, PagesBody, empty=b"{}")
    return json_response(await _observer(request).drop(instance, body.layers))


@router.post(f"{PREFIX}/{{instance:path}}/pin")
async def pin_pages(request: Request, instance: str) -> Response:
    """Keep pages in memory, or let go of them; say what is kept then, and how."""
    body = await read_json(request, PinBody, empty=b"{}")
    is_on = body.on is not False
    return json_response(PinAnswer(await _observer(request).pin(instance, body.layers, is_on=is_on)))


@router.get(f"{PREFIX}/{{instance:path}}")
async def get_instance_memory(request: Request, instance: str) -> Response:
    """Tell all that is known of one loaded model's memory."""
    return json_response(await _observer(request).detail(instance))


class WatchedMemory:
    """A stream of samples; while it is open they are taken often."""

    def __init__(self, studio: Studio, *, wants_maps: bool) -> None:
        self._studio = studio
        self._watch = ExitStack()
        self._watch.enter_context(studio.runtime.observer.watch(residency=wants_maps))

    def frames(self) -> AsyncGenerator[bytes, None]:
        """Give the newest sample, then what comes."""
        newest = frame_of(self._studio.runtime.observer.sampled())
        return beginning_with(newest, self._studio.hub.follow(lambda event: isinstance(event, MEMORY)))

    async def aclose(self) -> None:
        """Stop watching."""
        self._watch.close()


def _observer(request: Request) -> Observer:
    return studio_of(request).runtime.observer


def _number(request: Request, name: str) -> int | None:
    text = request.query_params.get(name)
    if text is None or text.isdecimal():
        return int(text) if text else None
    raise InvalidRequest(f"{name} is the number of a snapshot, not {text!r}.", param=name)


def _about(snapshot: "Snapshot") -> dict[str, str]:
    resident = snapshot.resident_bytes
    return {
        # generations begin anew with each load, so the map itself is in it, too
        "ETag": f'"{snapshot.generation}-{zlib.crc32(snapshot.cells.tobytes()):08x}"',
        "Cache-Control": "no-cache",
        "Octavo-Generation": str(snapshot.generation),
        "Octavo-At": f"{snapshot.at:.3f}",
        "Octavo-Cells": str(len(snapshot.cells)),
        "Octavo-Resident-Bytes": "unknown" if resident is None else str(resident),
    }


def _has_it(request: Request, snapshot: "Snapshot", tag: str) -> bool:
    known = request.headers.get("if-none-match", "").split(",")
    return _number(request, "since") == snapshot.generation or tag in (one.strip() for one in known)
