"""What the window needs of the service's client: the part of ``core.client`` that the courier calls."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from octavo.core.chats.types import Chat, ChatSummary, ReplyEvent, ReplyStarted
from octavo.core.config.paths import Home
from octavo.core.events import InstanceStatus

if TYPE_CHECKING:  # importing the client costs an HTTP library; the courier's thread pays for it
    from octavo.core.client.types import ImportAnswer, ModelRecord, ServerStatus, StreamEvent


class Service(Protocol):
    """A connection to the service; every method may raise ``ServiceUnavailable``."""

    async def models(self) -> "Sequence[ModelRecord]": ...

    async def instances(self) -> Sequence[InstanceStatus]: ...

    async def load(
        self,
        model: str,
        fields: Mapping[str, object] | None = None,
        identifier: str | None = None,
        ttl_s: float | None = None,
        lease: str | None = None,
    ) -> object: ...

    async def unload(self, instance: str) -> object: ...

    async def import_model(self, path: str) -> "ImportAnswer": ...

    async def settings(self) -> Mapping[str, object]: ...

    async def change_settings(self, group: str, **values: object) -> object: ...

    async def server(self) -> "ServerStatus": ...

    async def start_server(self, **options: object) -> object: ...

    async def stop_server(self) -> object: ...

    async def chats(self) -> Sequence[ChatSummary]: ...

    async def create_chat(self, **fields: object) -> Chat: ...

    async def chat(self, chat: str) -> Chat: ...

    async def update_chat(self, chat: str, **fields: object) -> Chat: ...

    async def delete_chat(self, chat: str) -> object: ...

    async def reply(
        self, chat: str, content: str | None = None, model: str | None = None
    ) -> ReplyStarted: ...

    def follow(self, reply: str) -> AsyncIterator[ReplyEvent]: ...

    async def stop_reply(self, reply: str) -> object: ...

    def events(self, lease: str | None = None) -> "AsyncIterator[StreamEvent]": ...

    async def aclose(self) -> None: ...


OpenService = Callable[[Home], Awaitable[Service]]


async def open_service(home: Home) -> Service:
    """Connect to the service of ``home``, starting it where none runs."""
    from octavo.core.client import ServiceClient

    client: Service = await ServiceClient.start_or_connect(home)
    return client
