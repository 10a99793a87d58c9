"""Serve an app on a socket that is bound already, until it is told to stop."""

import asyncio
import contextlib
import json
import socket
from collections.abc import Iterator

import h11
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

HEADER_PATIENCE_S = 30.0
KEEP_ALIVE_S = 75
HEADER_LIMIT_BYTES = 64 * 1024
START_POLL_S = 0.005
CANCEL_S = 2.0


class _Server(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to the service, which has two of these."""
        yield


class _PatientProtocol(H11Protocol):
    """HTTP/1.1 that closes a connection whose request line and headers don't arrive in time."""

    _patience: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._expect_headers()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.conn.their_state is h11.IDLE and self.conn.trailing_data[0]:
            self._expect_headers()
        elif self._patience is not None and self.conn.their_state is not h11.IDLE:
            self._patience.cancel()
            self._patience = None

    def connection_lost(self, exc: Exception | None) -> None:
        if self._patience is not None:
            self._patience.cancel()
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:
        error = {"message": msg, "type": "invalid_request_error", "code": "invalid_request", "param": None}
        body = json.dumps({"error": error}).encode()
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", b"%d" % len(body)),
            (b"connection", b"close"),
        ]
        for event in (
            h11.Response(status_code=400, headers=headers, reason=b"Bad Request"),
            h11.Data(data=body),
            h11.EndOfMessage(),
        ):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def _expect_headers(self) -> None:
        if self._patience is None:
            self._patience = self.loop.call_later(HEADER_PATIENCE_S, self.transport.close)


class Listener:
    """One served socket."""

    def __init__(self, app: ASGIApp, bound: socket.socket) -> None:
        config = uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            lifespan="off",
            ws="none",
            http=_PatientProtocol,
            proxy_headers=False,
            server_header=False,
            timeout_keep_alive=KEEP_ALIVE_S,
            h11_max_incomplete_event_size=HEADER_LIMIT_BYTES,
        )
        self._server = _Server(config)
        self._socket = bound
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Begin to serve."""
        self._task = asyncio.create_task(self._server.serve(sockets=[self._socket]), name="listener")
        while not self._server.started and not self._task.done():
            await asyncio.sleep(START_POLL_S)
        if self._task.done():
            self._task.result()

    def refuse(self) -> None:
        """Take no more connections; what runs goes on."""
        self._server.should_exit = True

    async def stop(self, patience_s: float) -> None:
        """Refuse, wait for what runs, then cancel what still does."""
        self.refuse()
        if self._task is None:
            return
        await asyncio.wait({self._task}, timeout=patience_s)
        if not self._task.done():
            self._server.force_exit = True
            for task in self._server.server_state.tasks:
                task.cancel()
            await asyncio.wait({self._task}, timeout=CANCEL_S)
        if not self._task.done():
            self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
