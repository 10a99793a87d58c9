"""Hand the service's events to everyone who follows them; a slow follower never holds up the service."""

import asyncio
import threading
from collections import deque
from collections.abc import AsyncGenerator, Callable

import msgspec

from octavo.core.events import AnyEvent, ChatChanged, FiguresSampled, LoadProgressed, SettingsChanged

QUEUE_LIMIT = 256

# what a newer event of the same kind makes worthless
_FLEETING = (FiguresSampled, LoadProgressed)
# what concerns the person at this machine, not the clients of the public port
PRIVATE = (ChatChanged, SettingsChanged)

_encode = msgspec.json.Encoder().encode
Wanted = Callable[[AnyEvent], bool]


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

    async def follow(self, wanted: Wanted = lambda event: True) -> AsyncGenerator[bytes, None]:
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
            frame = b"data: " + _encode(event) + b"\n\n"
            for follower in followers:
                follower.put(event, frame)
