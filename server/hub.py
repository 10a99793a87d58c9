"""Hand the service's events to everyone who follows them; a slow follower never holds up the service."""

import asyncio
import threading
from collections import deque
from collections.abc import AsyncGenerator, Callable

import msgspec

from octavo.core.events import (
    AnyEvent,
    ChatChanged,
    DownloadChanged,
    FiguresSampled,
    ImportProgressed,
    LoadProgressed,
    MemoryGivenBack,
    MemorySampled,
    PinChanged,
    SettingsChanged,
    VerifyProgressed,
    WarmProgressed,
)

QUEUE_LIMIT = 256

# what a newer event of the same kind makes worthless
_FLEETING = (
    FiguresSampled,
    ImportProgressed,
    LoadProgressed,
    MemorySampled,
    VerifyProgressed,
    WarmProgressed,
)
# what concerns the person at this machine, not the clients of the public port
PRIVATE = (ChatChanged, DownloadChanged, ImportProgressed, SettingsChanged, VerifyProgressed)
# what a stream of memory tells
MEMORY = (MemorySampled, MemoryGivenBack, WarmProgressed, PinChanged)

_encode = msgspec.json.Encoder().encode
Wanted = Callable[[AnyEvent], bool]


def is_news(event: AnyEvent) -> bool:
    """Tell whether an event is for all who follow; four samples a second are for who asked for them."""
    return not isinstance(event, MemorySampled)


class _Follower:
    def __init__(self, wanted: Wanted) -> None:
        self.wanted = wanted
        self.queue: deque[tuple[AnyEvent, bytes]] = deque()
        self.news = asyncio.Event()
        self.ended = False

    def put(self, event: AnyEvent, frame: bytes) -> None:
        if len(self.queue) >= QUEUE_LIMIT:
            self._make_room()
        if not self.ended:
            self.queue.append((event, frame))
            self.news.set()

    def end(self) -> None:
        self.ended = True
        self.news.set()

    def _make_room(self) -> None:
        for index, (event, _frame) in enumerate(self.queue):
            if isinstance(event, _FLEETING):
                del self.queue[index]
                return
        # a lost fact would leave the follower with a wrong picture; a new stream begins with a fresh one
        self.end()


def frame_of(event: AnyEvent) -> bytes:
    """Write an event as a frame of a server-sent stream."""
    return b"data: " + _encode(event) + b"\n\n"


async def beginning_with(first: bytes, frames: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    """Give a frame, then those of a stream; it is followed from before that, so that nothing is missed."""
    begun = asyncio.ensure_future(anext(frames, b""))
    try:
        await asyncio.sleep(0)
        yield first
        yield await begun
        async for frame in frames:
            yield frame
    finally:
        begun.cancel()
        await asyncio.gather(begun, return_exceptions=True)
        await frames.aclose()


class Hub:
    """The place where events are published. Make it on the event loop; publish from any thread."""

    def __init__(self) -> None:
        self._followers: set[_Follower] = set()
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._closed = False

    def publish(self, event: AnyEvent) -> None:
        """Hand an event to all followers; never waits."""
        if threading.get_ident() == self._thread:
            self._deliver(event)
        elif not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._deliver, event)

    async def follow(self, wanted: Wanted = is_news) -> AsyncGenerator[bytes, None]:
        """Give the events as frames of a server-sent stream, from now until the hub is closed."""
        follower = _Follower(wanted)
        follower.ended = self._closed
        self._followers.add(follower)
        try:
            while follower.queue or not follower.ended:
                while follower.queue:
                    yield follower.queue.popleft()[1]
                follower.news.clear()
                if not follower.ended:
                    await follower.news.wait()
        finally:
            self._followers.discard(follower)

    def close(self) -> None:
        """End all streams of events."""
        self._closed = True
        for follower in self._followers:
            follower.end()

    def _deliver(self, event: AnyEvent) -> None:
        followers = [follower for follower in self._followers if follower.wanted(event)]
        if followers:
            frame = frame_of(event)
            for follower in followers:
                follower.put(event, frame)
