"""The public port: opened and closed while the service runs."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from starlette.types import ASGIApp

from octavo.core.client.types import ServerStatus
from octavo.core.errors import OctavoError
from octavo.core.events import Publish, ServerChanged
from octavo.server.auth import Keys
from octavo.server.doors import PublicDoor, PublicRules, refuse_open_network
from octavo.server.hosts import is_loopback
from octavo.server.listener import Listener
from octavo.server.sockets import bind_public, check_address

CLOSE_PATIENCE_S = 5.0


@dataclass(frozen=True, slots=True)
class PortOptions:
    """Where the public port is, and for whom; ``jit`` None leaves it to the settings."""

    host: str
    port: int
    origins: tuple[str, ...] = ()
    keys: Keys = field(default_factory=lambda: Keys([]))
    jit: bool | None = None
    without_key: bool = False


class PublicPort:
    """At most one open port; ``app`` is asked for the app when the port is opened."""

    def __init__(self, app: Callable[[], ASGIApp], publish: Publish, default: PortOptions) -> None:
        self._app = app
        self._publish = publish
        self._options = default
        self._listener: Listener | None = None
        self._changing = asyncio.Lock()

    @property
    def status(self) -> ServerStatus:
        """Tell whether and where the port is open."""
        return ServerStatus(self._listener is not None, self._options.host, self._options.port)

    @property
    def jit(self) -> bool | None:
        """Tell whether requests may load models; None leaves it to the settings."""
        return self._options.jit

    async def open(self, options: PortOptions) -> ServerStatus:
        """Open the port, or move it; raises ``Conflict`` for a taken one, and what was open stays open."""
        async with self._changing:
            try:
                check_address(options.host)
                refuse_open_network(is_loopback(options.host), options.keys, options.without_key)
                await self._open(options)
            except OctavoError as error:
                self._tell(error)
                raise
            self._tell()
            return self.status

    async def close(self, patience_s: float = CLOSE_PATIENCE_S) -> ServerStatus:
        """Close the port, after what it is answering or ``patience_s``."""
        async with self._changing:
            listener, self._listener = self._listener, None
            if listener is not None:
                self._tell()
                await listener.stop(patience_s)
            return self.status

    async def _open(self, options: PortOptions) -> None:
        place = (self._options.host, self._options.port)
        if self._listener is not None and (options.host, options.port) == place:
            await self._listener.stop(0)
        bound = bind_public(options.host, options.port)
        door = PublicDoor(self._app(), PublicRules(options.host, options.keys, options.origins))
        listener = Listener(door, bound)
        await listener.start()
        previous, self._listener = self._listener, listener
        port = bound.getsockname()[1]
        self._options = PortOptions(
            options.host, port, options.origins, options.keys, options.jit, options.without_key
        )
        if previous is not None:
            await previous.stop(0)

    def _tell(self, error: OctavoError | None = None) -> None:
        status = self.status
        report = error.report() if error else None
        self._publish(ServerChanged(is_on=status.is_on, host=status.host, port=status.port, error=report))
