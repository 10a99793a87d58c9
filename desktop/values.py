"""Plain values that the window works with, made from what the service answers."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, Literal

from octavo.core.chats.types import Chat, ChatSummary, ReplyEvent, ReplyStarted
from octavo.core.errors import ErrorReport
from octavo.core.events import AnyEvent, InstanceStatus

if TYPE_CHECKING:  # importing the client costs an HTTP library; the courier's thread pays for it
    from octavo.core.client.types import ModelRecord

ConnectionState = Literal["connecting", "connected", "lost"]


@dataclass(frozen=True, slots=True)
class ModelEntry:
    """One model of the library; a file that can't be read has its reason in ``fault``."""

    key: str
    name: str
    quant: str = ""
    parameters: str = ""
    size_bytes: int = 0
    context: int = 0
    architecture: str = ""
    fault: str = ""
    path: str = ""

    @property
    def file(self) -> str:
        """Give the name of its file."""
        return PurePath(self.path).name or self.name

    @property
    def reason(self) -> str:
        """Say why it can't be used, without the file's name in front."""
        return self.fault.removeprefix(f"{self.file}: ")


@dataclass(frozen=True, slots=True)
class Preferences:
    """The settings that the window itself shows."""

    theme: Literal["system", "dark", "light"] = "system"
    language: Literal["system", "en", "ko"] = "system"


@dataclass(frozen=True, slots=True)
class Connection:
    """Whether the service answers; ``retry_s`` is the wait before the next attempt."""

    state: ConnectionState
    error: ErrorReport | None = None
    retry_s: float = 0.0


@dataclass(frozen=True, slots=True)
class EventArrived:
    """The service told what happened."""

    event: AnyEvent


@dataclass(frozen=True, slots=True)
class ModelsListed:
    """The library as it is now."""

    models: tuple[ModelEntry, ...]


@dataclass(frozen=True, slots=True)
class ModelAdded:
    """A file was taken into the library as this model."""

    model: str


@dataclass(frozen=True, slots=True)
class InstancesListed:
    """What is loaded now."""

    instances: tuple[InstanceStatus, ...]


@dataclass(frozen=True, slots=True)
class ChatsListed:
    """All conversations, newest first."""

    chats: tuple[ChatSummary, ...]


@dataclass(frozen=True, slots=True)
class ChatOpened:
    """A conversation with its messages."""

    chat: Chat


@dataclass(frozen=True, slots=True)
class ChatMade:
    """A new conversation; the question that it was made for goes out next."""

    chat: Chat


@dataclass(frozen=True, slots=True)
class ReplyBegan:
    """The service has taken a question and answers it."""

    chat: str
    started: ReplyStarted


@dataclass(frozen=True, slots=True)
class ReplyMoved:
    """Something happened to a reply of a chat."""

    chat: str
    event: ReplyEvent


@dataclass(frozen=True, slots=True)
class PreferencesRead:
    """The settings as the service keeps them."""

    preferences: Preferences


@dataclass(frozen=True, slots=True)
class ServerRead:
    """Whether the public port is open, and where."""

    is_on: bool
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class WishFailed:
    """Something the person asked for could not be done; ``subject`` is a chat, a model or a path."""

    wish: str
    subject: str
    error: ErrorReport


Parcel = (
    Connection
    | EventArrived
    | ModelsListed
    | ModelAdded
    | InstancesListed
    | ChatsListed
    | ChatOpened
    | ChatMade
    | ReplyBegan
    | ReplyMoved
    | PreferencesRead
    | ServerRead
    | WishFailed
)


def model_entries(models: "Iterable[ModelRecord]") -> tuple[ModelEntry, ...]:
    """Turn the rows of ``GET /api/v1/models`` into entries."""
    return tuple(_model_entry(record) for record in models)


def preferences(settings: Mapping[str, object]) -> Preferences:
    """Take from the settings what the window shows; a value that isn't known becomes the default."""
    appearance = settings.get("appearance")
    fields = appearance if isinstance(appearance, Mapping) else {}
    theme, language = fields.get("theme"), fields.get("language")
    return Preferences(
        theme=theme if theme in ("dark", "light") else "system",
        language=language if language in ("en", "ko") else "system",
    )


def _model_entry(record: "ModelRecord") -> ModelEntry:
    return ModelEntry(
        key=record.key,
        name=record.display_name or record.key,
        quant=record.quantization.name,
        parameters=record.params_string,
        size_bytes=record.size_bytes,
        context=record.max_context_length,
        architecture=record.architecture,
        fault=record.fault or "",
        path=record.path,
    )
