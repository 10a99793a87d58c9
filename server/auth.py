"""Who may use the public port: keys from a file, kept only as digests and compared in constant time."""

import hashlib
import hmac
from pathlib import Path

from octavo.core.errors import InvalidConfig, Unauthorized, UnreadableFile

Headers = dict[bytes, bytes]


class Keys:
    """The keys that are let in; none at all means that everyone is."""

    def __init__(self, keys: list[str]) -> None:
        self._digests = [_digest(key.encode()) for key in keys]

    def __bool__(self) -> bool:
        """Tell whether a key is asked for."""
        return bool(self._digests)

    def check(self, headers: Headers) -> None:
        """Raise ``Unauthorized`` unless the request brings a key that is known, or none is asked for."""
        if not self._digests:
            return
        digest = _digest(presented(headers))
        # no early end: the time taken doesn't tell which key is nearly right
        if not sum(hmac.compare_digest(digest, known) for known in self._digests):
            raise Unauthorized("This server asks for a key, and this request brings none that it knows.")


def read_keys(path: Path) -> list[str]:
    """Read a file of one key a line; empty lines and lines that begin with # don't count."""
    try:
        lines = [line.strip() for line in path.read_text("utf-8").splitlines()]
    except (OSError, UnicodeDecodeError) as fault:
        raise UnreadableFile(f"The key file {path} can't be read: {fault}.", path=str(path)) from fault
    keys = [line for line in lines if line and not line.startswith("#")]
    if not keys:
        raise InvalidConfig(f"The key file {path} holds no key.", hint="Write one key on each line.")
    return keys


def presented(headers: Headers) -> bytes:
    """Give the key that a request brings, in ``Authorization: Bearer`` or in ``x-api-key``."""
    scheme, _, token = headers.get(b"authorization", b"").partition(b" ")
    return token.strip() if scheme.lower() == b"bearer" else headers.get(b"x-api-key", b"").strip()


def _digest(key: bytes) -> bytes:
    return hashlib.sha256(key).digest()
