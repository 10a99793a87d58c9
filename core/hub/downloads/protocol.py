"""What the service and its download helper say to each other: a JSON object a line on the helper's pipes."""

from typing import ClassVar

import msgspec

from octavo.core.errors import ErrorReport
from octavo.core.hub.types import Access, DownloadState, DownloadWish


class Patience(msgspec.Struct, frozen=True, kw_only=True):
    """How long is waited, in seconds, and how often it is tried.

    ``stall_s`` without a byte ends a connection. The pauses between ``tries`` that brought nothing at all
    double from ``first_wait_s`` to ``longest_wait_s``.
    """

    connect_s: float = 15.0
    stall_s: float = 30.0
    first_wait_s: float = 1.0
    longest_wait_s: float = 60.0
    tries: int = 20


class Job(msgspec.Struct, frozen=True, tag="job", tag_field="kind"):
    """Download all files of a wish into ``folder``."""

    id: str
    wish: DownloadWish
    folder: str
    access: Access
    patience: Patience
    connections: int


class Stop(msgspec.Struct, frozen=True, tag="stop", tag_field="kind"):
    """Stop a download; what has come is kept."""

    id: str


class Limit(msgspec.Struct, frozen=True, tag="limit", tag_field="kind"):
    """Limit all downloads together to so many bytes a second; 0 is no limit."""

    bytes_per_s: int


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """How a download stands; after ``is_over`` the helper has let go of its files.

    Each of ``restarts`` dropped bytes that had been counted."""

    LIMIT_PER_S: ClassVar[int] = 4

    id: str
    state: DownloadState
    done_bytes: int = 0
    is_over: bool = False
    retry_at: float | None = None
    error: ErrorReport | None = None
    notes: list[str] = []
    is_verified: bool = False
    restarts: int = 0


Command = Job | Stop | Limit
