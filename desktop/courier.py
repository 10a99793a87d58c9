"""The asyncio side of the bridge: keeps a connection to the service and carries wishes and news.

It owns no Qt object. What it has to say goes through ``post``, which any thread may call.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine

from octavo.core.chats.types import Chat, ReplyEvent, ReplyText
from octavo.core.config.paths import Home
from octavo.core.errors import OctavoError, ServiceUnavailable
from octavo.core.events import (
    AnyEvent,
    ChatChanged,
    LibraryChanged,
    LoadEnded,
    LoadStarted,
    ModelLoaded,
    ModelUnloaded,
    SettingsChanged,
    WorkerDied,
)
from octavo.desktop.service import OpenService, Service
from octavo.desktop.values import (
    ChatOpened,
    ChatsListed,
    Connection,
    EventArrived,
    InstancesListed,
    ModelsListed,
    Parcel,
    PreferencesRead,
    ReplyBegan,
    ReplyMoved,
    ServerRead,
    WishFailed,
    model_entries,
    preferences,
)

FLUSH_S = 1 / 30
FIRST_RETRY_S = 0.2
LAST_RETRY_S = 5.0
CHANGES = ("change", "delete", "settings")

_log = logging.getLogger(__name__)

Post = Callable[[Parcel], None]
Wish = Callable[[Service], Awaitable[None]]


class Courier:
    """Connects, reconnects, and serves wishes one task each. All methods run on the loop's thread."""

    def __init__(self, home: Home, open_service: OpenService, post: Post) -> None:
        self._home = home
        self._open = open_service
        self._post = post
        self._service: Service | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._changes: set[asyncio.Task[None]] = set()
        self._followed: set[str] = set()
        self.lease = ""

    async def run(self) -> None:
        """Stay connected until cancelled; a lost service is started again, later each time it fails."""
        retry_s = FIRST_RETRY_S
        while True:
            self._post(Connection("connecting"))
            began = asyncio.get_running_loop().time()
            error = await self._one_connection()
            lasted_s = asyncio.get_running_loop().time() - began
            retry_s = FIRST_RETRY_S if lasted_s > LAST_RETRY_S else min(retry_s * 2, LAST_RETRY_S)
            self._post(Connection("lost", error.report(), retry_s))
            await asyncio.sleep(retry_s)

    async def end(self) -> None:
        """Give up what is under way and close the connection."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._close()

    def wish(self, name: str, subject: str, work: Wish) -> None:
        """Do ``work`` with the service; a failure is posted as ``WishFailed`` with these two names."""
        task = self._spawn(self._grant(name, subject, work))
        if name in CHANGES:
            self._changes.add(task)
            task.add_done_callback(self._changes.discard)

    async def finish_changes(self, within_s: float) -> None:
        """Wait for what the person changed a moment ago, so that closing the window loses none of it."""
        if self._changes:
            await asyncio.wait(self._changes, timeout=within_s)

    async def _one_connection(self) -> OctavoError:
        try:
            self._service = await self._open(self._home)
            await self._listen(self._service)
        except OctavoError as error:
            return error
        except Exception as fault:  # whatever the transport raises: the window must outlive it
            _log.exception("the connection to the service broke")
            return ServiceUnavailable("The connection to Octavo's service broke.", details=str(fault))
        finally:
            await self._close()
        return ServiceUnavailable("Octavo's service has ended.")

    async def _listen(self, service: Service) -> None:
        from octavo.core.client.types import Lease

        async for event in service.events(lease="window"):
            if isinstance(event, Lease):
                self.lease = event.lease
                await self._read_all(service)
                self._post(Connection("connected"))
            else:
                self._tell(event)

    async def _read_all(self, service: Service) -> None:
        await self.read_preferences(service)
        await self.read_models(service)
        await self.read_instances(service)
        await self.read_chats(service)
        await self.read_server(service)

    def _tell(self, event: AnyEvent) -> None:
        """Pass an event on; where it says that a list changed, read the list anew as well."""
        match event:
            case LibraryChanged():
                self.wish("read", "models", self.read_models)
            case ChatChanged():
                self.wish("read", "chats", self.read_chats)
            case SettingsChanged():
                self.wish("read", "settings", self.read_preferences)
            case LoadStarted() | ModelLoaded() | LoadEnded() | ModelUnloaded() | WorkerDied():
                self.wish("read", "instances", self.read_instances)
        self._post(EventArrived(event))

    async def read_models(self, service: Service) -> None:
        """Post the library."""
        self._post(ModelsListed(model_entries(await service.models())))

    async def read_instances(self, service: Service) -> None:
        """Post what is loaded."""
        self._post(InstancesListed(tuple(await service.instances())))

    async def read_chats(self, service: Service) -> None:
        """Post the list of conversations."""
        self._post(ChatsListed(tuple(await service.chats())))

    async def read_preferences(self, service: Service) -> None:
        """Post the settings."""
        self._post(PreferencesRead(preferences(await service.settings())))

    async def read_server(self, service: Service) -> None:
        """Post the state of the public port."""
        status = await service.server()
        self._post(ServerRead(status.is_on, status.host, status.port))

    async def open_chat(self, service: Service, chat: str) -> None:
        """Post a conversation and rejoin the reply that is being written in it."""
        self.show_chat(await service.chat(chat))

    def show_chat(self, opened: Chat) -> None:
        """Post a conversation that was read, and rejoin its reply."""
        self._post(ChatOpened(opened))
        if opened.reply is not None:
            self.follow(opened.id, opened.reply)

    async def ask(self, service: Service, chat: str, content: str | None, model: str | None) -> None:
        """Put a question, or have the last one answered again, and follow the reply."""
        started = await service.reply(chat, content, model)
        self._post(ReplyBegan(chat, started))
        self.follow(chat, started.reply)

    def follow(self, chat: str, reply: str) -> None:
        """Pass on what happens to a reply until it ends; at most once per reply."""
        if reply not in self._followed and self._service is not None:
            self._followed.add(reply)
            self._spawn(self._follow(self._service, chat, reply))

    async def _follow(self, service: Service, chat: str, reply: str) -> None:
        gathered = TextGatherer(lambda event: self._post(ReplyMoved(chat, event)))
        try:
            async for event in service.follow(reply):
                gathered.put(event)
        except OctavoError as error:
            if not isinstance(error, ServiceUnavailable):
                self._post(WishFailed("follow", chat, error.report()))
        except Exception:  # the event stream notices the same loss and reconnects
            _log.info("the stream of reply %s broke", reply, exc_info=True)
        finally:
            gathered.flush()
            self._followed.discard(reply)

    async def _grant(self, name: str, subject: str, work: Wish) -> None:
        try:
            if self._service is None:
                raise ServiceUnavailable(
                    "Octavo's service doesn't answer at the moment.", hint="Try again shortly."
                )
            await work(self._service)
        except OctavoError as error:
            self._post(WishFailed(name, subject, error.report()))
        except Exception as fault:  # a transport's own error must reach the person, not end a task unseen
            _log.exception("%s %s failed", name, subject)
            self._post(
                WishFailed(name, subject, ServiceUnavailable(str(fault) or type(fault).__name__).report())
            )

    def _spawn(self, work: Coroutine[object, object, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _close(self) -> None:
        service, self._service, self.lease = self._service, None, ""
        if service is not None:
            await service.aclose()


class TextGatherer:
    """Joins the pieces of a reply's text, so that at most 30 of them a second reach the window."""

    def __init__(self, deliver: Callable[[ReplyEvent], None]) -> None:
        self._deliver = deliver
        self._text: list[str] = []
        self._tokens = 0
        self._timer: asyncio.TimerHandle | None = None

    def put(self, event: ReplyEvent) -> None:
        """Take an event; anything but text goes on at once, after the text before it."""
        if not isinstance(event, ReplyText):
            self.flush()
            self._deliver(event)
            return
        self._text.append(event.text)
        self._tokens = event.tokens
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(FLUSH_S, self.flush)

    def flush(self) -> None:
        """Deliver what has gathered."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._text:
            text, self._text = "".join(self._text), []
            self._deliver(ReplyText(text=text, tokens=self._tokens))
