"""Which names of a repository may become names on this disk, and what a repository may be called.

A listing is a stranger's: it may hold ``../../evil.gguf``, drive letters, backslashes or NUL. Only a path of
which every part works as a name on Linux, macOS and Windows alike is used at all.
"""

import re
import unicodedata
from pathlib import PurePosixPath

from octavo.core.errors import InvalidRequest
from octavo.core.gguf import printable

LONGEST_NAME = 240
"""Bytes of one part of a path; file systems take 255."""

MOST_PARTS = 12
LONGEST_PATH = 1024

_FORBIDDEN = re.compile(r'[/\\<>:"|?*\x00-\x1f\x7f\ufffd]')
_RESERVED = re.compile(r"(con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³])(\..*)?", re.IGNORECASE)
# huggingface_hub, utils/_validators.py: letters, digits, "-", "_", "."; no "--", no ".."; at most 96 of them
_REPO_PART = re.compile(r"[A-Za-z0-9_](?:[\w.-]*[A-Za-z0-9_])?", re.ASCII)
_LONGEST_REPO = 96


def safe_path(path: str) -> PurePosixPath | None:
    """Give the path of a repository's file where it can be used below a folder of ours, else None."""
    parts = path.split("/")
    if len(parts) > MOST_PARTS or len(path) > LONGEST_PATH or not all(is_safe_name(part) for part in parts):
        return None
    return PurePosixPath(*parts)


def is_safe_name(name: str) -> bool:
    """Tell whether a file or folder may be called so on every system; hidden names (".x") may not."""
    if not name or name[0] in ". " or name[-1] in ". ":
        return False
    if _FORBIDDEN.search(name) or _RESERVED.fullmatch(name):
        return False
    if any(not (c.isprintable() or c == "\u200d") for c in name):
        return False
    return len(unicodedata.normalize("NFC", name).encode()) <= LONGEST_NAME


def is_repo(text: str) -> bool:
    """Tell whether ``text`` is a repository's id: ``organisation/name``."""
    parts = text.split("/")
    if len(parts) != 2 or len(text) > _LONGEST_REPO or "--" in text or ".." in text or text.endswith(".git"):
        return False
    return all(_REPO_PART.fullmatch(part) and is_safe_name(part) for part in parts)


def checked_repo(text: str) -> str:
    """Give ``text``, or raise ``InvalidRequest`` where it can't be a repository's id."""
    if is_repo(text):
        return text
    raise InvalidRequest(
        f"{printable(text[:120])!r} is no repository of the Hub.",
        hint="A repository is called organisation/name, such as Qwen/Qwen3-8B-GGUF.",
        param="repo",
    )
