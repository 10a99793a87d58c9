"""No event ever carries half a character, however the text is cut into pieces."""

import asyncio
import itertools
import json
from collections.abc import AsyncIterator

from hypothesis import given
from hypothesis import strategies as st

from octavo.core.client.stream import event_bytes
from octavo.core.engine.protocol import Finished, Timings
from octavo.server.openai.shapes import ChatShape, CompletionShape

# emoji, Hangul, combining marks, line separators that JSON allows raw, and controls
TEXTS = st.text(
    st.one_of(
        st.sampled_from('🫩👩‍👩‍👧‍👦한글각́é\u2028\u2029\x85\r\n\0"\\'),
        st.characters(exclude_categories=["Cs"]),
    )
)


def stream(shape: ChatShape | CompletionShape, texts: list[str]) -> bytes:
    finished = Finished("r", "stop", 1, 0, len(texts), Timings())
    frames = [shape.opening("m"), *(shape.text(text) for text in texts), shape.ending(finished)]
    for frame in frames:
        frame.decode("utf-8", "strict")
    return b"".join(frames) + b"data: [DONE]\n\n"


async def read_in_pieces(body: bytes, cuts: list[int]) -> list[bytes]:
    async def pieces() -> AsyncIterator[bytes]:
        edges = [0, *sorted(cut % (len(body) + 1) for cut in cuts), len(body)]
        for begin, end in itertools.pairwise(edges):
            yield body[begin:end]

    return [data async for data in event_bytes(pieces())]


@given(st.lists(TEXTS, max_size=8), st.lists(st.integers(0, 100_000), max_size=20), st.booleans())
def test_events_survive_any_cut_of_the_bytes(texts: list[str], cuts: list[int], is_chat: bool) -> None:
    shape = ChatShape(True) if is_chat else CompletionShape(True)
    found = asyncio.run(read_in_pieces(stream(shape, texts), cuts))
    chunks = [json.loads(data.decode("utf-8", "strict")) for data in found]
    said = [
        choice["delta"].get("content", "") if is_chat else choice["text"]
        for chunk in chunks
        for choice in chunk["choices"]
    ]
    assert "".join(said) == "".join(texts)
    assert chunks[-1]["usage"]["completion_tokens"] == len(texts)
