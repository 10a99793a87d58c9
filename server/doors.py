"""The two doors of the one app: the private control door and the public port, each with its own rules.

A door writes its own name into the request's scope; no header can say which door a request came through.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal

from fastapi import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from octavo.core.errors import Forbidden, OctavoError
from octavo.server.auth import Headers, Keys
from octavo.server.failures import error_response, no_route
from octavo.server.hosts import check_host, check_origin, cors_headers, is_preflight

DoorName = Literal["control", "public"]
SCOPE_KEY = "octavo.door"
# streams of events hold the service by their lease or not at all; who only looks on holds nothing
_STREAMS = frozenset({"/api/v1/events", "/api/v1/memory/stream"})


def door_of(request: Request) -> DoorName:
    """Tell through which door a request came."""
    name: DoorName = request.scope.get(SCOPE_KEY, "public")
    return name


async def control_only(request: Request) -> None:
    """Let a route exist on the control door only: raises the same 404 as a route that isn't there."""
    if door_of(request) != "control":
        raise no_route(request.method, request.url.path)


class ControlDoor:
    """The app as this person's own programs reach it; over loopback they must bring the token."""

    def __init__(self, app: ASGIApp, token: str | None = None) -> None:
        self._app = app
        self._keys = Keys([token] if token else [])
        self.in_flight = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        try:
            self._keys.check(dict(scope["headers"]))
        except OctavoError as error:
            await error_response(error, scope["path"])(scope, receive, send)
            return
        scope[SCOPE_KEY] = "control"
        counts = scope["path"] not in _STREAMS
        self.in_flight += counts
        try:
            await self._app(scope, receive, send)
        finally:
            self.in_flight -= counts


@dataclass(frozen=True, slots=True)
class PublicRules:
    """Who may use the public port: by key, by the name it was called by, and by the web page that calls."""

    host: str
    keys: Keys
    origins: tuple[str, ...] = ()

    def check(self, headers: Headers) -> None:
        """Raise ``Forbidden`` or ``Unauthorized`` for a request that isn't let in."""
        check_host(headers, self.host)
        check_origin(headers, self.origins)
        if not is_preflight(headers):
            self.keys.check(headers)


class PublicDoor:
    """The app as agents and other programs reach it."""

    def __init__(self, app: ASGIApp, rules: PublicRules) -> None:
        self._app = app
        self.rules = rules

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, if the rules let it in."""
        headers: Headers = dict(scope["headers"])
        send = _with_headers(send, cors_headers(headers, self.rules.origins))
        try:
            self.rules.check(headers)
        except OctavoError as error:
            await error_response(error, scope["path"])(scope, receive, send)
            return
        if scope["method"] == "OPTIONS" and is_preflight(headers):
            await Response(status_code=204)(scope, receive, send)
            return
        scope[SCOPE_KEY] = "public"
        await self._app(scope, receive, send)


def refuse_open_network(host_is_loopback: bool, keys: Keys, insists: bool) -> None:
    """Raise ``Forbidden`` when the port would be open to the network without a key."""
    if not host_is_loopback and not keys and not insists:
        raise Forbidden(
            "An address beyond this computer needs a key, or everyone on the network could use it.",
            hint="Use octavo serve with --api-key-file, or with --without-key if that is meant.",
        )


def _with_headers(send: Send, extra: list[tuple[bytes, bytes]]) -> Send:
    if not extra:
        return send

    async def sender(message: dict[str, object]) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message["headers"], *extra]}  # type: ignore[misc]
        await send(message)

    return _as_send(sender)


def _as_send(sender: Callable[[dict[str, object]], Awaitable[None]]) -> Send:
    return sender  # type: ignore[return-value]
