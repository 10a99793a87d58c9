"""The service's process: one per home, two doors, and an end when nobody needs it any more."""

import asyncio
import contextlib
import logging
import multiprocessing
import signal
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from types import FrameType

import msgspec
from fastapi import FastAPI

from octavo.core import __version__
from octavo.core.chats.store import ChatStore
from octavo.core.client.start import ALREADY_RUNNING
from octavo.core.config import paths
from octavo.core.config.paths import Home
from octavo.core.config.reserve import Reserve
from octavo.core.config.settings import SettingsFile, write_atomically
from octavo.core.errors import OctavoError
from octavo.core.library.catalog import Catalog
from octavo.core.runtime.replies import Replies
from octavo.core.runtime.runtime import Runtime
from octavo.server.app import create_app
from octavo.server.doors import ControlDoor
from octavo.server.downloading import make_downloads
from octavo.server.hub import Hub
from octavo.server.imports import tidy_and_adopt
from octavo.server.leases import Leases, grace_s, nobody_needs
from octavo.server.library_watch import watch_library
from octavo.server.listener import Listener
from octavo.server.lock import ServiceLock
from octavo.server.log import log_to
from octavo.server.native.server import StartBody, port_options
from octavo.server.public import PortOptions, PublicPort
from octavo.server.sockets import bind_control
from octavo.server.studio import Studio

# together well below the 10 s in which a service that is told to stop has ended
FINISH_S = 4.0
CLOSE_S = 3.0
STOP_DEADLINE_S = 10.0
LOCK_POLL_S = 0.05

_log = logging.getLogger("octavo.server.service")

Begun = Callable[[Studio], Awaitable[None]]
MakeRuntime = Callable[..., Runtime]


class Service:
    """One run of the service; it belongs to one event loop, on the main thread, where workers are started."""

    def __init__(self, home: Home, make_runtime: MakeRuntime = Runtime) -> None:
        self._home = home
        self._make_runtime = make_runtime
        self._stopping = asyncio.Event()

    async def run(self, begun: Begun | None = None) -> None:
        """Serve until told to stop, or needed by nobody.

        ``begun`` is called once the control door is open; what it raises ends the service and comes out here.
        """
        studio, app = await self._compose()
        watch = watch_library(studio)
        with _stop_signals(self._stopping.set):
            control: Listener | None = None
            try:
                await studio.runtime.start()
                await asyncio.to_thread(tidy_and_adopt, self._home, studio.catalog)
                watch.start()
                await studio.downloads.start()
                control, door = await self._open_control(app)
                await self._begin(studio, begun)
                await self._until_over(lambda: holders(studio, door))
            finally:
                await self._close(studio, control)
                await asyncio.to_thread(watch.close)

    async def _compose(self) -> tuple[Studio, FastAPI]:
        settings = SettingsFile(self._home.settings)
        hub = Hub()
        catalog = Catalog.of_home(self._home, lambda: settings.current.library)
        chats = await asyncio.to_thread(ChatStore.open, self._home.database)
        runtime = self._make_runtime(self._home, catalog, settings, hub.publish)
        replies = Replies(runtime, chats, hub.publish)
        port = settings.current.server
        public = PublicPort(lambda: app, hub.publish, PortOptions(port.host, port.port))
        stop = self._stopping.set
        studio = Studio(self._home, settings, catalog, runtime, chats, replies, hub, Leases(), public, stop)
        studio.downloads = make_downloads(studio)
        app = create_app(studio)
        return studio, app

    async def _open_control(self, app: FastAPI) -> tuple[Listener, ControlDoor]:
        bound, endpoint, token = bind_control(self._home, __version__)
        door = ControlDoor(app, token)
        listener = Listener(door, bound)
        await listener.start()
        # clients look here; it is written last, so that who finds it is answered
        write_atomically(self._home.endpoint, msgspec.json.encode(endpoint))
        _log.info("service %s began at %s", __version__, self._home.root)
        return listener, door

    async def _begin(self, studio: Studio, begun: Begun | None) -> None:
        if begun is not None:
            await begun(studio)
        elif studio.settings.current.server.enabled:
            # a refusal is told to everyone as an event; the service itself is of use without the port
            with contextlib.suppress(OctavoError):
                await studio.public.open(port_options(studio, StartBody()))

    async def _until_over(self, needed_by: Callable[[], list[str]]) -> None:
        told = asyncio.create_task(self._stopping.wait())
        alone = asyncio.create_task(nobody_needs(needed_by, grace_s()))
        try:
            await asyncio.wait({told, alone}, return_when=asyncio.FIRST_COMPLETED)
            _log.info("service ends: %s", "it was told to" if told.done() else "nobody needs it")
        finally:
            told.cancel()
            alone.cancel()

    async def _close(self, studio: Studio, control: Listener | None) -> None:
        """Refuse what is new, wait a little for what runs, end the workers, and leave nothing behind."""
        # who starts a service now waits for this one's end instead of taking it for a running one
        self._home.endpoint.unlink(missing_ok=True)
        studio.imports.close()
        studio.hub.close()
        doors = asyncio.create_task(_close_doors(studio, control), name="closing doors")
        await asyncio.wait({doors}, timeout=FINISH_S)
        await _in_time(studio.replies.close(), "the replies")
        await _in_time(studio.downloads.close(), "the downloads")
        await _in_time(studio.runtime.close(), "the workers")
        await asyncio.gather(doors, return_exceptions=True)
        await _in_time(studio.hub_reach.client.aclose(), "the connections to the Hub")
        await _in_time(studio.chats.close(), "the chats")
        if control is not None:
            self._home.control_socket.unlink(missing_ok=True)


async def _close_doors(studio: Studio, control: Listener | None) -> None:
    patience = FINISH_S + CLOSE_S
    await asyncio.gather(studio.public.close(patience), *([control.stop(patience)] if control else []))


async def _in_time(work: Awaitable[None], what: str) -> None:
    try:
        await asyncio.wait_for(work, CLOSE_S)
    except TimeoutError:
        _log.error("%s did not end in time", what)
    except Exception:
        _log.exception("%s did not end well", what)


def holders(studio: Studio, door: ControlDoor) -> list[str]:
    """Name all that keeps the service alive; an answer alone doesn't: what it has written is kept."""
    found = studio.leases.kinds()
    found += ["public port"] if studio.public.status.is_on else []
    found += ["request"] * door.in_flight
    found += [f"download {download.id}" for download in studio.downloads.live()]
    kept = [status for status in studio.runtime.instances() if status.stays and status.state != "crashed"]
    return found + [f"model {status.instance}" for status in kept]


@contextlib.contextmanager
def _stop_signals(stop: Callable[[], None]) -> Iterator[None]:
    """Stop at the first SIGTERM or SIGINT; a second one has its usual effect."""
    loop = asyncio.get_running_loop()
    kinds = [signal.SIGTERM, signal.SIGINT]
    before = {kind: signal.getsignal(kind) for kind in kinds}

    def on_signal(kind: int, _frame: FrameType | None) -> None:
        signal.signal(kind, before[signal.Signals(kind)])
        loop.call_soon_threadsafe(stop)

    for kind in kinds:
        signal.signal(kind, on_signal)
    try:
        yield
    finally:
        for kind, handler in before.items():
            signal.signal(kind, handler)


def run_service(home: Home, begun: Begun | None = None, make_runtime: MakeRuntime = Runtime) -> int:
    """Run the service of this home until it ends; gives the exit code, 3 when one runs already."""
    home.prepare()
    lock = ServiceLock(home.lock)
    if not _acquired(lock, home):
        return ALREADY_RUNNING
    try:
        log_to(home.logs)
        reserve = Reserve(home.reserve)
        if reserve.give_up_if_full():
            _log.warning("the disk of %s is full; what was kept for that is given up", home.root)
        reserve.keep()
        asyncio.run(Service(home, make_runtime).run(begun))
    finally:
        lock.release()
    return 0


def _acquired(lock: ServiceLock, home: Home) -> bool:
    """Take the lock; one that is held by a service without an address is waited for: it begins or it ends."""
    give_up = time.monotonic() + STOP_DEADLINE_S
    while not lock.acquire():
        if home.endpoint.exists() or time.monotonic() > give_up:
            return False
        time.sleep(LOCK_POLL_S)
    return True


def main() -> int:
    """Run the service of ``OCTAVO_HOME``."""
    multiprocessing.freeze_support()
    try:
        return run_service(paths.home())
    except (OctavoError, OSError) as error:
        print(error, file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
