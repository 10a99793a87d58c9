"""Read the service's server-sent events: bytes in, the JSON of each event out."""

from collections.abc import AsyncIterable, AsyncIterator


async def event_bytes(chunks: AsyncIterable[bytes]) -> AsyncIterator[bytes]:
    """Give the data of each event; comments are skipped, ``[DONE]`` ends the stream.

    Events are split at bytes, never at characters, so that no separator inside a JSON text can cut one.
    """
    pending = b""
    async for chunk in chunks:
        *blocks, pending = (pending + chunk).split(b"\n\n")
        for block in blocks:
            data = _data(block)
            if data == b"[DONE]":
                return
            if data:
                yield data


def _data(block: bytes) -> bytes:
    lines = [line[5:].strip() for line in block.split(b"\n") if line.startswith(b"data:")]
    return b"\n".join(lines)
