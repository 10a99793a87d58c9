"""Import by the running service, or here where none runs; both show progress and end well on Ctrl+C."""

import asyncio
import contextlib
import signal
import sys
import uuid
from types import TracebackType
from typing import Self

from octavo.core.client import ServiceClient
from octavo.core.client.types import ImportAnswer, ImportFailure, StreamEvent
from octavo.core.config.paths import home
from octavo.core.errors import Cancelled, NotFound, OctavoError, ServiceUnavailable
from octavo.core.events import ImportProgressed
from octavo.core.gguf import printable
from octavo.core.hub.origin import proposer
from octavo.server.cli.console import size
from octavo.server.cli.reach import held, running
from octavo.server.hub_reach import HubReach
from octavo.server.imports import ImportWish, import_path
from octavo.server.running_imports import RunningImports, Throttled


class Importing:
    """Runs imports one after the other; Ctrl+C calls off the one under way, which then says what it did.

    A second Ctrl+C ends the program as usual.
    """

    def __init__(self) -> None:
        self._name = uuid.uuid4().hex
        self._client: ServiceClient | None = None
        self._here = RunningImports()
        self._calling_off: asyncio.Task[None] | None = None
        self._is_over = False

    async def __aenter__(self) -> Self:
        self._client = await running()
        with contextlib.suppress(NotImplementedError):  # Windows: Ctrl+C ends the program
            asyncio.get_running_loop().add_signal_handler(signal.SIGINT, self._call_off)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        with contextlib.suppress(NotImplementedError):
            asyncio.get_running_loop().remove_signal_handler(signal.SIGINT)
        if self._calling_off:
            await asyncio.gather(self._calling_off, return_exceptions=True)
        if self._client:
            await self._client.aclose()

    async def run(self, wish: ImportWish, dry_run: bool) -> ImportAnswer:
        """Do one; raises what goes wrong, ``Cancelled`` after Ctrl+C."""
        wish.dry_run, wish.id = dry_run, self._name
        if self._is_over:
            raise Cancelled("The import was cancelled; nothing was changed.")
        line = _Line()
        try:
            if self._client is None:
                return await self._run_here(wish, line)
            return await self._run_there(self._client, wish, line)
        finally:
            line.clear()

    async def run_or_tell(self, wish: ImportWish, dry_run: bool) -> ImportAnswer:
        """Do one of several: what goes wrong is told in its answer."""
        try:
            return await self.run(wish, dry_run)
        except OctavoError as error:
            failure = ImportFailure(printable(wish.path), error.report())
            return ImportAnswer(wish.mode or "", dry_run, [], [], failures=[failure])

    async def _run_here(self, wish: ImportWish, line: "_Line") -> ImportAnswer:
        show, place = Throttled(line.show), home()
        look_up = proposer(HubReach.access_of(place), place.cache)
        return await self._here.run(
            self._name, lambda called_off: import_path(place, wish, show, called_off, look_up)
        )

    async def _run_there(self, client: ServiceClient, wish: ImportWish, line: "_Line") -> ImportAnswer:
        def on_event(event: StreamEvent) -> None:
            if isinstance(event, ImportProgressed) and event.id == self._name:
                line.show(event.done_bytes, event.total_bytes)

        # dry runs are short; the lease keeps the service alive while it works for us
        async with contextlib.nullcontext() if wish.dry_run else held(client, on_event):
            return await client.import_model(
                wish.path,
                wish.repo,
                wish.mode,
                bool(wish.dry_run),
                projector=wish.projector,
                with_projector=wish.with_projector,
                look_up=wish.look_up,
                id=self._name,
            )

    def _call_off(self) -> None:
        self._is_over = True
        asyncio.get_running_loop().remove_signal_handler(signal.SIGINT)
        if self._client is None:
            self._here.call_off(self._name)
        else:
            self._calling_off = asyncio.create_task(self._call_off_there(self._client))

    async def _call_off_there(self, client: ServiceClient) -> None:
        # it has ended meanwhile, or the service has: the import's own answer says which
        with contextlib.suppress(NotFound, ServiceUnavailable):
            await client.cancel_import(self._name)


class _Line:
    """One line on the terminal that is written over and over; nothing where stderr is none."""

    def __init__(self) -> None:
        self._is_shown = False

    def show(self, done: int, total: int) -> None:
        """Write how far it is."""
        if not sys.stderr.isatty() or not total:
            return
        self._is_shown = True
        print(
            f"\r{100 * done // total:3d} %  {size(done)} of {size(total)}\033[K",
            end="",
            file=sys.stderr,
            flush=True,
        )

    def clear(self) -> None:
        """Take the line away."""
        if self._is_shown:
            print("\r\033[K", end="", file=sys.stderr, flush=True)
