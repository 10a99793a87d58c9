"""The Hub's own words for a repository and its files, and ours for them."""

import datetime
import re

import msgspec

from octavo.core.hub.names import is_repo
from octavo.core.hub.types import HubFile, HubModel

_SHA256 = re.compile(r"[0-9a-f]{64}")
_MOST_TAGS = 64


class ListedGguf(msgspec.Struct, frozen=True):
    """What the Hub has read from a repository's GGUF header: parameters in all, architecture, context."""

    total: int | None = None
    architecture: str | None = None
    context_length: int | None = None


class ListedModel(msgspec.Struct, frozen=True, rename="camel"):
    """A row of ``/api/models``; ``gated`` is false, ``auto`` or ``manual``."""

    id: str = ""
    model_id: str = msgspec.field(default="", name="modelId")
    author: str | None = None
    downloads: int | None = None
    likes: int | None = None
    gated: bool | str | None = False
    private: bool | None = False
    last_modified: str | None = None
    tags: list[str] | None = None
    gguf: ListedGguf | None = None


class ListedLfs(msgspec.Struct, frozen=True):
    """A large file's SHA-256 and size."""

    sha256: str | None = None
    oid: str | None = None
    size: int | None = None


class ListedFile(msgspec.Struct, frozen=True):
    """A file of a repository, as ``model_info(files_metadata=True)`` lists it."""

    rfilename: str
    size: int | None = None
    lfs: ListedLfs | None = None


class ListedRepository(ListedModel, frozen=True, rename="camel"):
    """The answer of ``/api/models/{repo}/revision/{revision}?blobs=true``."""

    sha: str = ""
    siblings: list[ListedFile] | None = None


def hub_model(row: ListedModel) -> HubModel | None:
    """Give a row as ours; None where its id is no repository's that we could name."""
    name = row.id or row.model_id
    if not is_repo(name):
        return None
    gguf = row.gguf or ListedGguf()
    return HubModel(
        id=name,
        author=row.author or name.partition("/")[0],
        downloads=row.downloads or 0,
        likes=row.likes or 0,
        gated=bool(row.gated),
        private=bool(row.private),
        modified_at=_seconds(row.last_modified),
        architecture=gguf.architecture,
        parameters=gguf.total,
        tags=(row.tags or [])[:_MOST_TAGS],
    )


def hub_file(row: ListedFile) -> HubFile | None:
    """Give a file as ours; None where its size isn't told."""
    lfs = row.lfs or ListedLfs()
    size = lfs.size if lfs.size is not None else row.size
    if size is None or size < 0:
        return None
    digest = (lfs.sha256 or lfs.oid or "").removeprefix("sha256:").lower()
    return HubFile(path=row.rfilename, size_bytes=size, sha256=digest if _SHA256.fullmatch(digest) else None)


def _seconds(text: str | None) -> float | None:
    try:
        return datetime.datetime.fromisoformat(text).timestamp() if text else None
    except (ValueError, OverflowError, OSError):
        return None
