"""The only crossing between the service and the window: one asyncio thread, one object with signals.

Every signal is emitted on the main thread. Nothing here waits for the service.
"""

import asyncio
import threading
from collections import deque
from collections.abc import Coroutine
from pathlib import Path

from PySide6.QtCore import QObject, Qt, Signal, Slot

from octavo.core.config.paths import Home
from octavo.desktop.courier import Courier, Wish
from octavo.desktop.service import OpenService, Service, open_service
from octavo.desktop.values import (
    ChatMade,
    ChatOpened,
    ChatsListed,
    Connection,
    EventArrived,
    InstancesListed,
    ModelAdded,
    ModelsListed,
    Parcel,
    PreferencesRead,
    ReplyBegan,
    ReplyMoved,
    ServerRead,
    WishFailed,
)

CLOSE_WITHIN_S = 2.0


class Bridge(QObject):
    """Carries the person's wishes to the service and the service's news to the window."""

    connection_changed = Signal(Connection)
    event_arrived = Signal(object)
    models_listed = Signal(ModelsListed)
    model_added = Signal(str)
    instances_listed = Signal(InstancesListed)
    chats_listed = Signal(ChatsListed)
    chat_opened = Signal(object)
    chat_made = Signal(object)
    reply_began = Signal(ReplyBegan)
    reply_moved = Signal(ReplyMoved)
    preferences_read = Signal(object)
    server_read = Signal(ServerRead)
    wish_failed = Signal(WishFailed)

    _parcels_waiting = Signal()

    def __init__(
        self, home: Home, open_service: OpenService = open_service, parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self._parcels: deque[Parcel] = deque()
        self._courier = Courier(home, open_service, self._post)
        self._loop = asyncio.new_event_loop()
        self._closing = asyncio.Event()
        self._thread = threading.Thread(target=self._run_loop, name="octavo-courier", daemon=True)
        self._parcels_waiting.connect(self._on_parcels_waiting, Qt.ConnectionType.QueuedConnection)

    def start(self) -> None:
        """Begin to connect."""
        self._thread.start()

    def close(self) -> bool:
        """End the connection and the thread; False when the thread had to be left behind."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._closing.set)
            self._thread.join(CLOSE_WITHIN_S)
        self._parcels.clear()
        return not self._thread.is_alive()

    # ---- wishes

    def open_chat(self, chat: str) -> None:
        """Read a conversation; ``chat_opened`` follows, then the reply that is being written in it."""

        async def work(service: Service) -> None:
            await self._courier.open_chat(service, chat)

        self._wish("open", chat, work)

    def make_chat(self, **fields: object) -> None:
        """Make a conversation; ``chat_made`` follows."""

        async def work(service: Service) -> None:
            self._post(ChatMade(await service.create_chat(**fields)))

        self._wish("make", "", work)

    def change_chat(self, chat: str, **fields: object) -> None:
        """Change a conversation's title, model, system prompt or sampling."""

        async def work(service: Service) -> None:
            await service.update_chat(chat, **fields)
            await self._courier.read_chats(service)

        self._wish("change", chat, work)

    def delete_chat(self, chat: str) -> None:
        """Delete a conversation for good."""

        async def work(service: Service) -> None:
            await service.delete_chat(chat)
            await self._courier.read_chats(service)

        self._wish("delete", chat, work)

    def ask(self, chat: str, content: str | None, model: str | None) -> None:
        """Put a question; without ``content`` the last one is answered again."""

        async def work(service: Service) -> None:
            await self._courier.ask(service, chat, content, model)

        self._wish("ask" if content is not None else "answer_again", chat, work)

    def stop_reply(self, chat: str, reply: str) -> None:
        """Stop a reply; the text so far stays."""

        async def work(service: Service) -> None:
            await service.stop_reply(reply)

        self._wish("stop", chat, work)

    def load_model(self, model: str) -> None:
        """Load a model; it goes with this window's lease."""

        async def work(service: Service) -> None:
            await service.load(model, lease=self._courier.lease or None)

        self._wish("load", model, work)

    def unload_instance(self, instance: str) -> None:
        """Give a model's memory back."""

        async def work(service: Service) -> None:
            await service.unload(instance)

        self._wish("unload", instance, work)

    def import_model(self, path: Path) -> None:
        """Take a .gguf file into the library."""

        async def work(service: Service) -> None:
            added = await service.import_model(str(path.absolute()))
            await self._courier.read_models(service)
            for model in added.models[:1]:
                self._post(ModelAdded(model))

        self._wish("import", str(path), work)

    def change_settings(self, group: str, **values: object) -> None:
        """Set preferences; ``preferences_read`` follows."""

        async def work(service: Service) -> None:
            await service.change_settings(group, **values)
            await self._courier.read_preferences(service)

        self._wish("settings", group, work)

    def switch_server(self, on: bool) -> None:
        """Open or close the public port; ``server_read`` follows."""

        async def work(service: Service) -> None:
            await (service.start_server() if on else service.stop_server())
            await self._courier.read_server(service)

        self._wish("server", "on" if on else "off", work)

    def reopen_server(self, host: str, port: int) -> None:
        """Open the public port where it was before the service was lost; ``server_read`` follows."""

        async def work(service: Service) -> None:
            await service.start_server(host=host, port=port)
            await self._courier.read_server(service)

        self._wish("reopen", f"{host}:{port}", work)

    # ---- inside

    def _wish(self, name: str, subject: str, work: Wish) -> None:
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._courier.wish, name, subject, work)

    def _post(self, parcel: Parcel) -> None:
        self._parcels.append(parcel)
        self._parcels_waiting.emit()

    @Slot()
    def _on_parcels_waiting(self) -> None:
        while self._parcels:
            self._deliver(self._parcels.popleft())

    def _deliver(self, parcel: Parcel) -> None:
        match parcel:
            case Connection():
                self.connection_changed.emit(parcel)
            case EventArrived():
                self.event_arrived.emit(parcel.event)
            case ModelsListed():
                self.models_listed.emit(parcel)
            case ModelAdded():
                self.model_added.emit(parcel.model)
            case InstancesListed():
                self.instances_listed.emit(parcel)
            case ChatsListed():
                self.chats_listed.emit(parcel)
            case ChatOpened():
                self.chat_opened.emit(parcel.chat)
            case ChatMade():
                self.chat_made.emit(parcel.chat)
            case ReplyBegan():
                self.reply_began.emit(parcel)
            case ReplyMoved():
                self.reply_moved.emit(parcel)
            case PreferencesRead():
                self.preferences_read.emit(parcel.preferences)
            case ServerRead():
                self.server_read.emit(parcel)
            case WishFailed():
                self.wish_failed.emit(parcel)

    def _run_loop(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._stay())
        finally:
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._loop.close()

    async def _stay(self) -> None:
        staying = self._loop.create_task(self._courier.run())
        await self._closing.wait()
        await self._courier.finish_changes(CLOSE_WITHIN_S / 4)
        staying.cancel()
        await asyncio.gather(staying, return_exceptions=True)
        await _at_most(self._courier.end(), CLOSE_WITHIN_S / 2)


async def _at_most(work: Coroutine[object, object, None], seconds: float) -> None:
    try:
        await asyncio.wait_for(work, seconds)
    except TimeoutError:
        return
