"""By what names the public port answers (against DNS rebinding), and which web pages may call it."""

import ipaddress
import re
import socket
from urllib.parse import urlsplit

from octavo.core.errors import Forbidden, InvalidRequest
from octavo.server.auth import Headers

ALLOWED_METHODS = b"GET, POST, OPTIONS"

# a scheme of a program's own (an extension, a desktop app) counts too
_ORIGIN = re.compile(r"null|[a-zA-Z][\w+.-]*://[^\s/?#@\\,]+/?", re.ASCII)


def is_loopback(host: str) -> bool:
    """Tell whether an address lets in this computer only."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def check_host(headers: Headers, bound: str) -> None:
    """Raise ``Forbidden`` when the request was sent to a name that isn't this server's.

    A port on loopback answers to loopback names; one on the network also to addresses and this machine's
    name, since a page that rebinds DNS always comes with a domain name of its own.
    """
    named = headers.get(b"host")
    if named is None:
        return
    host = _host_name(named.decode("latin-1"))
    if is_loopback(host) or host == bound.lower():
        return
    if not is_loopback(bound) and (_is_address(host) or host in _own_names()):
        return
    raise Forbidden(f"This server doesn't answer to the name {host[:80]!r}.", hint="Call it by its address.")


def check_origin(headers: Headers, allowed: tuple[str, ...]) -> None:
    """Raise ``Forbidden`` for a call by a web page of another origin that wasn't let in."""
    origin = headers.get(b"origin")
    if origin is None or _is_allowed(origin, allowed) or _same_origin(origin, headers):
        return
    raise Forbidden(
        "Web pages of other origins may not call this server.", hint="octavo serve --cors ORIGIN lets one in."
    )


def check_origin_name(origin: str) -> None:
    """Raise ``InvalidRequest`` for what no browser calls itself: an origin is ``https://name[:port]``."""
    if origin != "*" and not _ORIGIN.fullmatch(origin):
        raise InvalidRequest(
            f"{origin[:80]!r} is no origin of a web page.",
            hint="Write https://name or http://name:port, or * for every page.",
            param="cors",
        )


def cors_headers(headers: Headers, allowed: tuple[str, ...]) -> list[tuple[bytes, bytes]]:
    """Give the headers that let an allowed page read the answer."""
    origin = headers.get(b"origin")
    if origin is None or not _is_allowed(origin, allowed):
        return []
    asked = headers.get(b"access-control-request-headers", b"authorization, content-type")
    return [
        (b"access-control-allow-origin", origin),
        (b"access-control-allow-methods", ALLOWED_METHODS),
        (b"access-control-allow-headers", asked),
        (b"vary", b"Origin"),
    ]


def is_preflight(headers: Headers) -> bool:
    """Tell whether a browser only asks whether it may call."""
    return b"origin" in headers and b"access-control-request-method" in headers


def _is_allowed(origin: bytes, allowed: tuple[str, ...]) -> bool:
    return "*" in allowed or origin.decode("latin-1").rstrip("/") in allowed


def _same_origin(origin: bytes, headers: Headers) -> bool:
    return urlsplit(origin.decode("latin-1")).netloc.encode("latin-1") == headers.get(b"host", b"")


def _host_name(named: str) -> str:
    named = named.strip().lower()
    if named.startswith("["):
        return named[1:].partition("]")[0]
    return named.partition(":")[0]


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _own_names() -> set[str]:
    name = socket.gethostname().lower()
    return {name, f"{name}.local"}
