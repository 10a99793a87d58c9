"""The person's token for the Hub: where it is kept, and where else one may come from.

It is kept in the system's keyring; where there is none, in a file that only this person can read (0600). One
in ``HF_TOKEN`` comes before it, and the file that Hugging Face's own tools keep (``hf auth login``) after it:
that one is only read. A token is never logged, and in no ``repr``, event or error.
"""

import contextlib
import logging
import os
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import msgspec

from octavo.core.config.paths import Home
from octavo.core.config.settings import write_atomically
from octavo.core.errors import InvalidRequest, StorageFailed

TokenSource = Literal["environment", "keyring", "file", "hugging_face", "none"]
SERVICE = "Octavo: Hugging Face token"
FILE = "hub-token"
FRESH_S = 20.0
"""Seconds that a token is remembered: a keyring may take its time, another program may change it."""

_LONGEST = 512
_TRUE = {"1", "ON", "YES", "TRUE"}
_log = logging.getLogger("octavo.core.hub.tokens")


class TokenPlace(msgspec.Struct, frozen=True):
    """Where the token in use comes from; ``place`` names the keyring, the file or the variable."""

    source: TokenSource
    place: str = ""

    @property
    def is_there(self) -> bool:
        """Whether there is a token at all."""
        return self.source != "none"


class Tokens:
    """The token of one home; its methods may block and are thread-safe."""

    def __init__(self, home: Home, environ: Mapping[str, str] | None = None) -> None:
        self._file = home.root / FILE
        # one entry for each home, so that a home made for a test never touches the person's own
        self._account = str(home.root)
        self._environ = os.environ if environ is None else environ
        self._lock = threading.Lock()
        self._known: tuple[float, str | None, TokenPlace] | None = None

    def __repr__(self) -> str:
        """Tell the place, never the token."""
        return f"<Tokens {self._file}>"

    def current(self) -> str | None:
        """Give the token, None without one."""
        return self._look()[0]

    def where(self) -> TokenPlace:
        """Tell where the token comes from."""
        return self._look()[1]

    def keep(self, token: str) -> TokenPlace:
        """Keep a token and tell where; raises ``InvalidRequest`` for what can't be one, ``StorageFailed``."""
        token = checked_token(token)
        with self._lock:
            self._known = None
            if backend := self._keep_in_keyring(token):
                self._file.unlink(missing_ok=True)
                return TokenPlace("keyring", backend)
            write_atomically(self._file, token.encode())  # mkstemp makes it 0600
            return TokenPlace("file", str(self._file))

    def forget(self) -> TokenPlace:
        """Delete the token that we keep; tells where one still comes from. Raises ``StorageFailed``."""
        with self._lock:
            self._known = None
            self._forget_in_keyring()
            try:
                self._file.unlink(missing_ok=True)
            except OSError as fault:
                raise StorageFailed(
                    f"{self._file} can't be deleted: {fault.strerror}.", path=str(self._file)
                ) from fault
        return self.where()

    def _look(self) -> tuple[str | None, TokenPlace]:
        with self._lock:
            if self._known is None or time.monotonic() - self._known[0] > FRESH_S:
                self._known = (time.monotonic(), *self._find())
            return self._known[1:]

    def _find(self) -> tuple[str | None, TokenPlace]:
        if said := _cleaned(self._environ.get("HF_TOKEN", "")):
            return said, TokenPlace("environment", "HF_TOKEN")
        token, backend = self._from_keyring()
        if token:
            return token, TokenPlace("keyring", backend)
        if own := _read(self._file):
            return own, TokenPlace("file", str(self._file))
        path = hugging_face_file(self._environ)
        if path and (theirs := _read(path)):
            return theirs, TokenPlace("hugging_face", str(path))
        return None, TokenPlace("none")

    def _from_keyring(self) -> tuple[str | None, str]:
        import keyring
        from keyring.errors import KeyringError

        try:
            kept = keyring.get_password(SERVICE, self._account)
        except (KeyringError, OSError, RuntimeError) as fault:
            _log.debug("the keyring gives nothing: %s", type(fault).__name__)
            return None, ""
        return _cleaned(kept or "") or None, keyring.get_keyring().name

    def _keep_in_keyring(self, token: str) -> str | None:
        """Give the keyring's name; None where there is none, or it refuses."""
        import keyring
        from keyring.errors import KeyringError

        try:
            keyring.set_password(SERVICE, self._account, token)
            # a keyring that swallows what it is given (keyring.backends.null) is none
            return keyring.get_keyring().name if keyring.get_password(SERVICE, self._account) else None
        except (KeyringError, OSError, RuntimeError) as fault:
            _log.info("the keyring keeps nothing, a file does: %s", type(fault).__name__)
            return None

    def _forget_in_keyring(self) -> None:
        import keyring
        from keyring.errors import KeyringError

        with contextlib.suppress(KeyringError, OSError, RuntimeError):
            keyring.delete_password(SERVICE, self._account)


def hugging_face_file(environ: Mapping[str, str]) -> Path | None:
    """Give where Hugging Face's own tools keep their token; None where they say not to use it.

    Source: ``HF_TOKEN_PATH`` and ``HF_HOME`` in huggingface_hub's constants.py.
    """
    if environ.get("HF_HUB_DISABLE_IMPLICIT_TOKEN", "").upper() in _TRUE:
        return None
    if named := environ.get("HF_TOKEN_PATH"):
        return Path(named).expanduser()
    if named := environ.get("HF_HOME"):
        return Path(named).expanduser() / "token"
    home = environ.get("HOME") or environ.get("USERPROFILE") or "~"
    cache = environ.get("XDG_CACHE_HOME") or str(Path(home).expanduser() / ".cache")
    return Path(cache).expanduser() / "huggingface" / "token"


def _read(path: Path) -> str | None:
    try:
        with path.open("rb") as file:
            return _cleaned(file.read(_LONGEST + 1).decode("ascii", "replace")) or None
    except (OSError, RuntimeError):
        return None


def _cleaned(token: str) -> str:
    """Give what can go into a header; empty for anything else, such as a whole file's text."""
    token = token.strip()
    is_sound = len(token) <= _LONGEST and all("!" <= c <= "~" for c in token)
    return token if is_sound else ""


def checked_token(token: str) -> str:
    """Give a token without the spaces around it; raises ``InvalidRequest``, which never holds its text."""
    if cleaned := _cleaned(token):
        return cleaned
    what = "That is no token: a token is one word of Latin letters, digits and signs."
    raise InvalidRequest(
        what if token.strip() else "No token was given.",
        hint="Make one at https://huggingface.co/settings/tokens; it begins with hf_.",
        param="token",
    )
