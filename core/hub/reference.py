"""How a person names something on the Hub: ``org/name``, ``org/name@Q4_K_M``, or the address of a page."""

import re
from urllib.parse import unquote, urlsplit

import msgspec

from octavo.core.errors import InvalidRequest
from octavo.core.gguf import printable
from octavo.core.hub.access import HUB_HOSTS
from octavo.core.hub.names import checked_repo, is_repo, safe_path
from octavo.core.hub.repository import DEFAULT_REVISION

PREFIX = "hf:"
_ADDRESS = re.compile(r"(https?://|(www\.)?(huggingface\.co|hf\.co)/)", re.IGNORECASE)
_FILE_ROUTES = ("blob", "resolve", "raw")


class Reference(msgspec.Struct, frozen=True):
    """A repository, and what of it is meant: a choice's name or a file's path; None: not said."""

    repo: str
    wanted: str | None = None
    revision: str = DEFAULT_REVISION


def parse_reference(text: str, endpoint: str = "") -> Reference:
    """Read ``hf:org/name@QUANT``, ``org/name:QUANT``, ``org/name/file.gguf`` or an address on the Hub.

    ``endpoint`` is a mirror whose addresses count, too. Raises ``InvalidRequest`` for anything else.
    """
    said = text.strip().removeprefix(PREFIX).strip()
    if "://" in said and not _ADDRESS.match(said):
        raise InvalidRequest(
            f"{printable(text[:120])} is no address of the Hub.",
            hint="Give one that begins with https://, or a repository, such as Qwen/Qwen3-8B-GGUF.",
        )
    if _ADDRESS.match(said):
        return _of_address(said, endpoint)
    name, mark, wanted = re.match(r"([^@:]*)([@:]?)(.*)", said, re.DOTALL).groups()  # type: ignore[union-attr]
    if mark and not wanted:
        raise _unreadable(text)
    parts = name.split("/")
    if not mark and len(parts) > 2:
        return Reference(checked_repo("/".join(parts[:2])), _checked_file("/".join(parts[2:]), text))
    if wanted.lower().endswith(".gguf"):
        wanted = _checked_file(wanted, text)
    return Reference(checked_repo(name), wanted or None)


def is_reference(text: str) -> bool:
    """Tell whether ``text`` could name a repository: so that the Hub may be asked for it."""
    try:
        parse_reference(text)
    except InvalidRequest:
        return False
    return True


def _of_address(text: str, endpoint: str) -> Reference:
    parts = urlsplit(text if "://" in text else f"https://{text}")
    own = urlsplit(endpoint)
    if (parts.hostname or "").lower() not in HUB_HOSTS | ({own.hostname} if own.hostname else set()):
        raise InvalidRequest(
            f"{printable(parts.hostname or text)[:100]} is not the Hub.",
            hint="Give a repository, such as Qwen/Qwen3-8B-GGUF.",
        )
    path = parts.path.removeprefix(own.path if own.hostname == parts.hostname else "")
    names = unquote(path).strip("/").split("/")
    if not is_repo("/".join(names[:2])):
        raise _unreadable(text)
    repo = "/".join(names[:2])
    if len(names) > 4 and names[2] in _FILE_ROUTES:
        return Reference(repo, _checked_file("/".join(names[4:]), text), names[3])
    return Reference(repo, None, names[3] if len(names) > 3 and names[2] == "tree" else DEFAULT_REVISION)


def _checked_file(path: str, text: str) -> str:
    if safe_path(path) is None:
        raise _unreadable(text)
    return path


def _unreadable(text: str) -> InvalidRequest:
    return InvalidRequest(
        f"{printable(text[:120])!r} names nothing on the Hub.",
        hint="Give org/name, org/name@QUANT, or the address of a page of the Hub.",
    )
