"""Bind the sockets of both doors ourselves: a private control socket, and a public port that may be taken."""

import errno
import os
import secrets
import socket
import sys
from pathlib import Path

from octavo.core.client.types import Endpoint
from octavo.core.config.paths import Home
from octavo.core.config.settings import write_atomically
from octavo.core.errors import Conflict, InvalidRequest

CONTROL_VARIABLE = "OCTAVO_CONTROL"
BACKLOG = 512

Address = tuple[str, int] | tuple[str, int, int, int] | tuple[int, bytes]


def control_is_loopback() -> bool:
    """Tell whether the control door is a loopback port with a token, as it is on Windows."""
    return sys.platform == "win32" or os.environ.get(CONTROL_VARIABLE) == "loopback"


def bind_unix(path: Path) -> socket.socket:
    """Bind the control socket, for this person only; a stale file is replaced, so hold the service's lock."""
    path.unlink(missing_ok=True)
    bound = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    previous = os.umask(0o177)
    try:
        bound.bind(os.fspath(path))
    except OSError:
        bound.close()
        raise
    finally:
        os.umask(previous)
    return bound


def bind_public(host: str, port: int) -> socket.socket:
    """Bind the public port (0: any free one); raises ``Conflict`` naming a port that is taken."""
    family, address = _resolve(host, port)
    bound = socket.socket(family, socket.SOCK_STREAM)
    try:
        if sys.platform == "win32":
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_EXCLUSIVEADDRUSE, 1)
        else:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
        bound.listen(BACKLOG)
    except OSError as fault:
        bound.close()
        raise _refused(host, port, fault) from fault
    return bound


def check_address(host: str) -> None:
    """Raise ``InvalidRequest`` for an address that no port can be opened on."""
    family, address = _resolve(host, 0)
    try:
        with socket.socket(family, socket.SOCK_STREAM) as tried:
            tried.bind(address)
    except OSError as fault:
        raise _no_address(host, fault.strerror) from fault


def bind_control(home: Home, version: str) -> tuple[socket.socket, Endpoint, str | None]:
    """Bind the control door; gives how it is reached and, over loopback, the token it asks for."""
    if not control_is_loopback():
        bound = bind_unix(home.control_socket)
        return bound, Endpoint(os.getpid(), version, "unix", str(home.control_socket)), None
    bound = bind_public("127.0.0.1", 0)
    token = secrets.token_urlsafe(32)
    token_file = home.run / "control.token"
    # the file is made readable for this person only
    write_atomically(token_file, token.encode("ascii"))
    address = f"127.0.0.1:{bound.getsockname()[1]}"
    return bound, Endpoint(os.getpid(), version, "loopback", address, str(token_file)), token


def _resolve(host: str, port: int) -> tuple[socket.AddressFamily, Address]:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (socket.gaierror, UnicodeError) as fault:
        raise _no_address(host, "the name is not known") from fault
    # IPv4 first: "localhost" then means what most clients take it for
    family, _kind, _protocol, _name, address = min(found, key=lambda entry: entry[0] != socket.AF_INET)
    return family, address


def _no_address(host: str, reason: str | None) -> InvalidRequest:
    return InvalidRequest(
        f"A port can't be opened on {host[:80]!r}, which is no address of this computer: {reason}.",
        hint="Give 127.0.0.1, an address of this computer, or 0.0.0.0 for all of them.",
        param="host",
    )


def _refused(host: str, port: int, fault: OSError) -> Conflict | InvalidRequest:
    if fault.errno == errno.EADDRINUSE:
        return Conflict(
            f"Port {port} on {host} is taken by another program.",
            hint="Choose another port.",
            port=port,
            host=host,
        )
    if fault.errno == errno.EACCES:
        return Conflict(
            f"Port {port} needs rights that Octavo doesn't have.", hint="Choose one from 1024 up.", port=port
        )
    return InvalidRequest(
        f"Port {port} on {host} can't be opened: {fault.strerror}.", param="host", port=port
    )
