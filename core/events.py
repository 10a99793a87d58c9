"""The closed set of events that every front end reads: plain values, one class each.

The service publishes them; they reach windows, terminals and agents as JSON over server-sent events, tagged
by ``event``. Sizes are bytes, times seconds since the epoch unless a name says otherwise.
"""

from collections.abc import Callable
from typing import Literal

import msgspec

from octavo.core.errors import ErrorReport
from octavo.core.hub.types import Download
from octavo.core.memory.figures import GivenBack, InstanceMemory, Pin, SystemFigures

JsonValue = str | int | float | bool | None | list[float]

InstanceState = Literal["loading", "ready", "unloading", "crashed"]


class InstanceStatus(msgspec.Struct, frozen=True, kw_only=True):
    """One model that is loaded, loading, or has crashed and will start again on its next use.

    ``config`` holds the effective load settings and ``reasons`` where each came from; ``context`` tokens are
    usable by one request; ``idle_s`` counts from the end of the last request; ``stays`` says that it was
    loaded by name, without a time to live, so that neither a window's end nor idleness unloads it.
    """

    instance: str
    model: str
    state: InstanceState
    share: float = 0.0
    pid: int | None = None
    context: int = 0
    config: dict[str, JsonValue] = {}
    reasons: dict[str, str] = {}
    notes: list[str] = []
    ttl_s: float | None = None
    stays: bool = False
    idle_s: float = 0.0
    active: int = 0
    queued: int = 0
    error: ErrorReport | None = None


class Event(msgspec.Struct, frozen=True, tag_field="event", kw_only=True):
    """Something that happened in the service."""


class LoadStarted(Event, frozen=True, kw_only=True, tag="load_started"):
    """A worker was started for a model."""

    instance: str
    model: str


class LoadProgressed(Event, frozen=True, kw_only=True, tag="load_progressed"):
    """``share`` of the load is done, from 0 to 1."""

    instance: str
    model: str
    share: float


class ModelLoaded(Event, frozen=True, kw_only=True, tag="model_loaded"):
    """The instance answers from now on; ``context`` tokens are usable by one request."""

    instance: str
    model: str
    context: int
    load_s: float


class LoadEnded(Event, frozen=True, kw_only=True, tag="load_ended"):
    """The load failed or was called off."""

    instance: str
    model: str
    error: ErrorReport


class ModelUnloaded(Event, frozen=True, kw_only=True, tag="model_unloaded"):
    """The worker ended; ``freed_bytes`` of private memory came back, ``came_back`` says whether all did."""

    instance: str
    model: str
    reason: str
    freed_bytes: int
    came_back: bool


class WorkerDied(Event, frozen=True, kw_only=True, tag="worker_died"):
    """The worker of a loaded model ended by itself; the next request starts it again."""

    instance: str
    model: str
    error: ErrorReport


class LibraryChanged(Event, frozen=True, kw_only=True, tag="library_changed"):
    """Models were added, removed or read anew."""

    models: int


class ServerChanged(Event, frozen=True, kw_only=True, tag="server_changed"):
    """The public port was opened, closed or refused."""

    is_on: bool
    host: str
    port: int
    error: ErrorReport | None = None


class SettingsChanged(Event, frozen=True, kw_only=True, tag="settings_changed"):
    """A preference has a new value."""

    group: str


class ChatChanged(Event, frozen=True, kw_only=True, tag="chat_changed"):
    """A conversation was made, renamed, answered or deleted."""

    chat: str


class InstanceFigures(msgspec.Struct, frozen=True, kw_only=True):
    """What one loaded model uses now: resident bytes, KV cells, requests, speed of the last second."""

    instance: str
    model: str
    rss_bytes: int
    private_bytes: int
    file_bytes: int
    kv_used: int
    kv_size: int
    tokens_per_s: float
    active: int
    queued: int


class FiguresSampled(Event, frozen=True, kw_only=True, tag="figures_sampled"):
    """One sample of all loaded models and of the machine."""

    at: float
    instances: list[InstanceFigures]
    memory_total_bytes: int
    memory_available_bytes: int


class ActionTaken(Event, frozen=True, kw_only=True, tag="action_taken"):
    """The service did something by itself that a person may want to know."""

    text: str


class MemorySampled(Event, frozen=True, kw_only=True, tag="memory_sampled"):
    """One sample of the machine's memory and of every loaded model's; told to who follows the memory."""

    at: float
    system: SystemFigures
    instances: list[InstanceMemory]


class MemoryGivenBack(Event, frozen=True, kw_only=True, tag="memory_given_back"):
    """A model gave memory back to the system."""

    instance: str
    model: str
    given: GivenBack


class WarmProgressed(Event, frozen=True, kw_only=True, tag="warm_progressed"):
    """``done_bytes`` of ``total_bytes`` of a model's file were brought into memory."""

    instance: str
    model: str
    done_bytes: int
    total_bytes: int


class PinChanged(Event, frozen=True, kw_only=True, tag="pin_changed"):
    """Pages of a model are kept in memory from now on, or none any more (``pin`` None)."""

    instance: str
    model: str
    pin: Pin | None


class DownloadChanged(Event, frozen=True, kw_only=True, tag="download_changed"):
    """A download began, went on, or ended; a running one is told at most four times a second."""

    download: Download


class ImportProgressed(Event, frozen=True, kw_only=True, tag="import_progressed"):
    """``done_bytes`` of ``total_bytes`` of an import are at their new place; ``id`` is its client's name."""

    source: str
    done_bytes: int
    total_bytes: int
    id: str = ""


class VerifyProgressed(Event, frozen=True, kw_only=True, tag="verify_progressed"):
    """``done_bytes`` of ``total_bytes`` of a model were read to check it; at most four a second."""

    model: str
    done_bytes: int
    total_bytes: int


AnyEvent = (
    LoadStarted
    | LoadProgressed
    | ModelLoaded
    | LoadEnded
    | ModelUnloaded
    | WorkerDied
    | LibraryChanged
    | ServerChanged
    | SettingsChanged
    | ChatChanged
    | FiguresSampled
    | ActionTaken
    | MemorySampled
    | MemoryGivenBack
    | WarmProgressed
    | PinChanged
    | DownloadChanged
    | ImportProgressed
    | VerifyProgressed
)

Publish = Callable[[AnyEvent], None]
