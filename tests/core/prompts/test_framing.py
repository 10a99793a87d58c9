import asyncio
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from octavo.core.prompts.framing import FRAME_LIMIT, HEADER, BrokenPipeFrame, pack, read_frame, receive_frame

BROKEN = [b"", b"\x01", pack(b"abc")[:-1], HEADER.pack(FRAME_LIMIT + 1)]


def received(data: bytes) -> bytes:
    async def receive() -> bytes:
        reader = asyncio.StreamReader()
        reader.feed_data(data)
        reader.feed_eof()
        return await receive_frame(reader)

    return asyncio.run(receive())


@given(bodies=st.lists(st.binary(max_size=50)))
def test_frames_come_out_as_they_went_in(bodies: list[bytes]) -> None:
    pipe = io.BytesIO(b"".join(map(pack, bodies)))
    assert [read_frame(pipe) for _ in bodies] == bodies


def test_frame_is_received_asynchronously() -> None:
    assert received(pack(b"abc") + b"rest") == b"abc"


@pytest.mark.parametrize("data", BROKEN)
def test_broken_frame_is_noticed(data: bytes) -> None:
    with pytest.raises(BrokenPipeFrame):
        read_frame(io.BytesIO(data))
    with pytest.raises(BrokenPipeFrame):
        received(data)
