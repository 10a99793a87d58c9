"""What the service's own routes answer, as values; the service encodes them, clients decode them."""

from typing import Literal

import msgspec

from octavo.core.config.load_config import LoadConfig
from octavo.core.errors import ErrorReport
from octavo.core.events import AnyEvent, JsonValue, MemoryGivenBack, MemorySampled, PinChanged, WarmProgressed
from octavo.core.hub.tokens import TokenPlace
from octavo.core.hub.types import Download
from octavo.core.library.verify import VerifiedFile
from octavo.core.memory.figures import MemoryDetail, Pin, SystemFigures
from octavo.core.memory.ledger import Entry
from octavo.core.memory.rule import RuleOfThumb
from octavo.core.memory.types import Components, Confidence, TokenRate, VerdictKind


class Health(msgspec.Struct, frozen=True):
    """A sign of life."""

    status: str
    version: str
    pid: int


class Endpoint(msgspec.Struct, frozen=True):
    """How the control door of a running service is reached; written to ``Home.endpoint``.

    ``address`` is a socket's path, or ``host:port`` with a token in the file ``token_file``.
    """

    pid: int
    version: str
    kind: Literal["unix", "loopback"]
    address: str
    token_file: str | None = None


class ServerStatus(msgspec.Struct, frozen=True):
    """Whether the public port is open, and where."""

    is_on: bool
    host: str
    port: int


class Quantization(msgspec.Struct, frozen=True):
    """How the weights are stored."""

    name: str
    bits_per_weight: float


class LoadedInstance(msgspec.Struct, frozen=True):
    """One loaded copy of a model."""

    id: str
    config: dict[str, JsonValue]


class Capabilities(msgspec.Struct, frozen=True):
    """What a model can do besides plain text."""

    vision: bool = False
    trained_for_tool_use: bool = False


class ModelRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A model of the library in LM Studio's v1 shape; the fields from ``path`` on are ours.

    ``fault`` says why it isn't usable. ``is_offline``: its folder isn't there now (an unplugged drive).
    ``source`` says whose folder it is in: ``octavo``, ``folder`` (named by the person), ``lm_studio``,
    ``hugging_face``, ``ollama``. ``files`` are all its parts, ``projector`` its image or audio part, whose
    bytes are not in ``size_bytes``; ``layers`` is 0 where the header tells none; ``modified_at`` is in
    seconds since the epoch.
    """

    type: str = "llm"
    publisher: str
    key: str
    display_name: str
    architecture: str
    quantization: Quantization
    size_bytes: int
    params_string: str
    loaded_instances: list[LoadedInstance] = []
    max_context_length: int
    format: str = "gguf"
    capabilities: Capabilities = Capabilities()
    path: str
    fault: str | None = None
    is_offline: bool = False
    source: str = "octavo"
    files: list[str] = []
    projector: str | None = None
    layers: int = 0
    modified_at: float = 0.0


class ShownModel(ModelRecord, frozen=True, kw_only=True):
    """A model and what its last load took, beside what was predicted for it."""

    last_load: Entry | None = None


class ModelList(msgspec.Struct, frozen=True):
    """The library."""

    models: list[ModelRecord]


class VerifyAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What came of reading a model whole; ``is_sound``: no file of it is damaged, changed or unreadable."""

    model: str
    is_sound: bool
    files: list[VerifiedFile]


class LoadAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """A model is loaded; ``load_config`` is what is effective, ``reasons`` where each value came from."""

    type: str = "llm"
    instance_id: str
    load_time_seconds: float
    status: str = "loaded"
    load_config: dict[str, JsonValue]
    reasons: dict[str, str]
    notes: list[str]


class SuggestedLoad(msgspec.Struct, frozen=True):
    """Something that would help, in words, and the load settings that do it; sizes in bytes."""

    title: str
    config: LoadConfig
    private_bytes: int
    mapped_bytes: int
    verdict: VerdictKind


class EstimateAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What a load would need and what would come of it; sizes in bytes.

    ``private_bytes`` must stay in memory; ``mapped_bytes`` can be read again from the file, of which
    ``hot_mapped_bytes`` are read for every token. ``budget_bytes`` is what the verdict compares with.
    ``rule_of_thumb`` is there when it was asked for.
    """

    model: str
    n_ctx: int
    components: Components
    private_bytes: int
    mapped_bytes: int
    hot_mapped_bytes: int
    budget_bytes: int
    available_bytes: int
    verdict: VerdictKind
    disk_bytes_per_token: int
    tokens_per_second: TokenRate | None
    confidence: Confidence
    reasons: list[str]
    suggestions: list[SuggestedLoad]
    rule_of_thumb: RuleOfThumb | msgspec.UnsetType = msgspec.UNSET


class HubStatus(msgspec.Struct, frozen=True, kw_only=True):
    """How the Hub is reached; ``account`` is the token's, when it was asked for."""

    endpoint: str
    is_offline: bool
    uses_proxy: bool = False
    token: TokenPlace
    account: str | None = None


class TokenAnswer(msgspec.Struct, frozen=True):
    """Where the Hub's token is now; ``account`` is whose it is, None where the Hub could not be asked."""

    token: TokenPlace
    account: str | None = None


class UnloadAnswer(msgspec.Struct, frozen=True):
    """A model was unloaded; ``came_back`` says whether all its memory did."""

    instance_id: str
    freed_bytes: int
    came_back: bool


class MemoryAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The machine's memory, and all that is known of every loaded model's; ``at`` is when it was asked."""

    at: float
    system: SystemFigures
    instances: list[MemoryDetail]


class KeptSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """A snapshot of a residency map that can still be asked for."""

    generation: int
    at: float


class PinAnswer(msgspec.Struct, frozen=True):
    """What of a model is kept in memory from now on; None: nothing."""

    pin: Pin | None


class ImportedFile(msgspec.Struct, frozen=True):
    """A file that an import moves, copies or links, or has; ``present`` tells that it was there already.

    Files of one ``model`` (publisher/model) belong together: the parts of a split model, and its projector.
    """

    source: str
    target: str
    size_bytes: int
    present: bool = False
    model: str = ""
    mode: str = ""


class ImportFailure(msgspec.Struct, frozen=True):
    """A file that could not be imported, and why."""

    source: str
    error: ErrorReport


class ImportAnswer(msgspec.Struct, frozen=True):
    """What an import did, or with ``dry_run`` would do; ``failures`` are files of a folder that stay out."""

    mode: str
    dry_run: bool
    models: list[str]
    files: list[ImportedFile]
    notes: list[str] = []
    failures: list[ImportFailure] = []


class Lease(msgspec.Struct, frozen=True, tag_field="event", tag="lease"):
    """The first event of a stream that holds a lease: the lease's id."""

    lease: str


StreamEvent = AnyEvent | Lease
MemoryEvent = MemorySampled | MemoryGivenBack | WarmProgressed | PinChanged


class TokenDetails(msgspec.Struct, frozen=True):
    """How many of the prompt's tokens were in the cache already."""

    cached_tokens: int


class Usage(msgspec.Struct, frozen=True):
    """What a request cost, in tokens."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    prompt_tokens_details: TokenDetails


class ChatPiece(msgspec.Struct, frozen=True):
    """A piece of a streamed answer of ``model``; the last ones carry ``finish_reason`` and ``usage``."""

    text: str = ""
    finish_reason: str | None = None
    usage: Usage | None = None
    model: str = ""


DownloadStatus = Literal["downloading", "paused", "completed", "failed", "already_downloaded"]


class DownloadAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """A download in LM Studio's shape; ``download`` is all that we know of it, None where none was needed."""

    job_id: str | None = None
    status: DownloadStatus
    total_size_bytes: int
    downloaded_bytes: int | None = None
    bytes_per_second: float | None = None
    started_at: str | None = None
    download: Download | None = None


class DownloadList(msgspec.Struct, frozen=True):
    """All downloads, the oldest first."""

    downloads: list[Download]
