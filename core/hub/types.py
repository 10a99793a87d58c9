"""What the Hub offers and what is being downloaded from it: plain values. Sizes are bytes."""

from typing import Literal

import msgspec

from octavo.core.errors import ErrorReport
from octavo.core.memory.types import Confidence, TokenRate, VerdictKind

DownloadState = Literal["queued", "running", "paused", "waiting", "verifying", "done", "failed", "cancelled"]


class Access(msgspec.Struct, frozen=True, kw_only=True):
    """How the Hub is reached. The token is never written to a log, an event or a journal.

    ``bytes_per_s`` limits all downloads together; 0 is no limit.
    """

    endpoint: str = "https://huggingface.co"
    token: str | None = None
    is_offline: bool = False
    proxy: str | None = None
    bytes_per_s: int = 0

    def __repr__(self) -> str:
        """Tell that there is a token, or a proxy, not which: both may hold secrets."""
        secrets = f"token={bool(self.token)}, proxy={bool(self.proxy)}"
        return f"Access({self.endpoint!r}, is_offline={self.is_offline}, {secrets})"


class HubFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file of a repository; ``path`` uses "/", ``sha256`` is known for large files."""

    path: str
    size_bytes: int
    sha256: str | None = None


class HubModel(msgspec.Struct, frozen=True, kw_only=True):
    """A repository as a search finds it; ``gated``: its terms must be accepted first."""

    id: str
    author: str
    downloads: int = 0
    likes: int = 0
    gated: bool = False
    private: bool = False
    modified_at: float | None = None
    architecture: str | None = None
    parameters: int | None = None
    tags: list[str] = []


class SearchPage(msgspec.Struct, frozen=True, kw_only=True):
    """Some results; ``next_page`` is what to ask for more with, None at the end."""

    models: list[HubModel]
    next_page: str | None = None


class Fit(msgspec.Struct, frozen=True, kw_only=True):
    """What would come of loading a choice on this machine, with a context of ``n_ctx`` tokens.

    ``is_derived``: computed from its size and the header of the same model in another quant.
    """

    verdict: VerdictKind
    inequality: str
    n_ctx: int
    private_bytes: int
    mapped_bytes: int
    tokens_per_second: TokenRate | None = None
    confidence: Confidence
    is_derived: bool = False


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """One thing to download: a model file, or all parts of a split one, and the projector that goes along.

    ``name`` tells it from the others of its repository: the quant, with its folder where that is needed.
    ``missing`` are parts that the repository lacks: such a one can't be used. ``fit`` is what would come of
    loading it on this machine, ``note`` why that can't be told.
    """

    name: str
    files: list[HubFile]
    size_bytes: int
    quant: str | None = None
    bits_per_weight: float | None = None
    projector: HubFile | None = None
    missing: list[str] = []
    fit: Fit | None = None
    note: str = ""


class Repository(HubModel, frozen=True, kw_only=True):
    """What a repository offers; ``revision`` is a commit, so that what is listed is what is downloaded.

    ``hidden_files`` counts GGUF files whose names can't be used on this disk. ``recommended`` is the name of
    the choice for this machine, ``reason`` why it is that one, or why it is none.
    """

    revision: str
    choices: list[Choice]
    projectors: list[HubFile] = []
    hidden_files: int = 0
    recommended: str | None = None
    reason: str = ""


class DownloadWish(msgspec.Struct, frozen=True, kw_only=True):
    """What to download, and the folder ``publisher/model`` of the library that it goes to."""

    repo: str
    revision: str
    name: str
    files: list[HubFile]
    publisher: str
    model: str


class Download(msgspec.Struct, frozen=True, kw_only=True):
    """A download as it is now. ``done_bytes`` never fall, save when the file on the Hub has changed.

    ``waiting`` is a pause before the next try, which begins at ``retry_at`` (seconds since the epoch);
    ``error`` says why it waits, is paused or failed, and what to do. ``unreadable``: of one that is done, why
    what was published is no model that can be read. ``is_verified``: every file has the
    SHA-256 that the Hub names. ``notes``: what a person may want to know of how it went.
    """

    id: str
    wish: DownloadWish
    state: DownloadState
    done_bytes: int = 0
    total_bytes: int
    bytes_per_s: float = 0.0
    seconds_left: float | None = None
    added_at: float
    retry_at: float | None = None
    error: ErrorReport | None = None
    is_verified: bool = False
    notes: list[str] = []
    unreadable: ErrorReport | None = None
