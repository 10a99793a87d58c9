"""Frames on a pipe: a 4-byte little-endian length, then that many bytes of MessagePack.

The service speaks so with its workers and its template helper.
"""

import asyncio
import struct
from typing import BinaryIO

HEADER = struct.Struct("<I")

# a body of 64 MiB, the most that the server takes, is far beyond any context; as a list of token ids or with
# escapes it may grow, but a longer frame than this is a fault, not a message
FRAME_LIMIT = 256 * 1024 * 1024


class BrokenPipeFrame(EOFError):
    """The pipe ended, or what came over it is no frame."""


def pack(body: bytes) -> bytes:
    """Give ``body`` with its length in front."""
    return HEADER.pack(len(body)) + body


def read_frame(pipe: BinaryIO) -> bytes:
    """Read one frame, blocking; raise ``BrokenPipeFrame`` at the end of the pipe."""
    return _read_exactly(pipe, _checked_length(_read_exactly(pipe, HEADER.size)))


async def receive_frame(pipe: asyncio.StreamReader) -> bytes:
    """Await one frame; raise ``BrokenPipeFrame`` at the end of the pipe."""
    try:
        return await pipe.readexactly(_checked_length(await pipe.readexactly(HEADER.size)))
    except asyncio.IncompleteReadError as fault:
        raise BrokenPipeFrame("the pipe ended") from fault


def _checked_length(header: bytes) -> int:
    length: int = HEADER.unpack(header)[0]
    if length > FRAME_LIMIT:
        raise BrokenPipeFrame(f"a frame of {length:,} bytes")
    return length


def _read_exactly(pipe: BinaryIO, size: int) -> bytes:
    data = pipe.read(size)
    if len(data) < size:
        raise BrokenPipeFrame("the pipe ended")
    return data
