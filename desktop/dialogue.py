"""The conversation that is open: what was asked, what is being answered. The chat page shows it."""

from dataclasses import dataclass

import msgspec
from PySide6.QtCore import QObject, Signal, Slot

from octavo.core.chats.types import (
    Chat,
    ChatMessage,
    ReplyEnded,
    ReplyEvent,
    ReplySnapshot,
)
from octavo.core.errors import ErrorReport
from octavo.desktop.studio import Studio
from octavo.desktop.values import Connection, ReplyBegan, ReplyMoved, WishFailed

TITLE_LENGTH = 60


@dataclass(frozen=True, slots=True)
class Setup:
    """What a conversation is held with: the system prompt, and sampling where it isn't the default."""

    system_prompt: str = ""
    sampling: tuple[tuple[str, float], ...] = ()

    def fields(self) -> dict[str, object]:
        """Give the fields as the service takes them."""
        return {"system_prompt": self.system_prompt, "sampling": dict(self.sampling)}


class Dialogue(QObject):
    """Asks, follows, stops. A question that could not be put comes back by ``question_returned``."""

    opened = Signal()
    question_put = Signal(str)
    answer_begun = Signal()
    reply_moved = Signal(object)
    interrupted = Signal()
    failed = Signal(object)
    question_returned = Signal(str)
    busy_changed = Signal(bool)

    def __init__(self, studio: Studio, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._studio = studio
        self._bridge = studio.bridge
        self.chat: Chat | None = None
        self.setup = Setup()
        self.is_busy = False
        self._wanted = ""
        self._reply = ""
        self._question = ""
        self._making = ""
        self._adopts = False
        self._stops = False
        self._bridge.chat_opened.connect(self._on_chat_opened)
        self._bridge.chat_made.connect(self._on_chat_made)
        self._bridge.reply_began.connect(self._on_reply_began)
        self._bridge.reply_moved.connect(self._on_reply_moved)
        self._bridge.wish_failed.connect(self._on_wish_failed)
        self._bridge.connection_changed.connect(self._on_connection_changed)

    @property
    def chat_id(self) -> str:
        """Give the id of the open conversation; empty while it is a new one."""
        return self.chat.id if self.chat is not None else ""

    # ---- wishes

    def open(self, chat: str) -> None:
        """Open a conversation; ``opened`` follows."""
        self._wanted = chat
        self._bridge.open_chat(chat)

    def remember(self, chat: str) -> None:
        """Open a conversation as soon as the service answers."""
        self._wanted = chat

    def start_new(self) -> None:
        """Begin a conversation; the service hears of it with the first question."""
        self._wanted = ""
        self._show(None)

    def ask(self, text: str) -> None:
        """Put a question to the current model."""
        if self.is_busy:
            return
        self._question = text
        self.question_put.emit(text)
        self.answer_begun.emit()
        self._set_busy(True)
        if self.chat is None:
            self._making, self._adopts = text, True
            fields = {"title": _title(text), "model": self._studio.current or None}
            self._bridge.make_chat(**fields, **self.setup.fields())
        else:
            self._bridge.ask(self.chat.id, text, self._studio.current or None)

    def answer_again(self) -> None:
        """Have the last answer written anew."""
        if self.chat is None or self.is_busy:
            return
        self.answer_begun.emit()
        self._set_busy(True)
        self._bridge.ask(self.chat.id, None, self._studio.current or None)

    def stop(self) -> None:
        """Stop the answer that is being written."""
        if self.is_busy and self._reply:
            self._bridge.stop_reply(self.chat_id, self._reply)
        else:  # the service hasn't said yet which reply it is
            self._stops = self.is_busy

    def change_setup(self, setup: Setup) -> None:
        """Use another system prompt or sampling from the next question on."""
        if setup == self.setup:
            return
        self.setup = setup
        if self.chat is not None:
            self._bridge.change_chat(self.chat.id, **setup.fields())

    def rename(self, chat: str, title: str) -> None:
        """Give a conversation another title."""
        if self.chat is not None and self.chat.id == chat:
            self.chat = msgspec.structs.replace(self.chat, title=title)
        self._bridge.change_chat(chat, title=title)

    # ---- news

    @Slot(object)
    def _on_chat_opened(self, chat: Chat) -> None:
        if chat.id == self._wanted:
            self._question = ""
            self._show(chat)

    @Slot(object)
    def _on_chat_made(self, chat: Chat) -> None:
        question, self._making = self._making, ""
        if not question:
            return
        if self._adopts:
            self.chat, self._wanted = chat, chat.id
        self._bridge.ask(chat.id, question, self._studio.current or None)

    @Slot(ReplyBegan)
    def _on_reply_began(self, began: ReplyBegan) -> None:
        if began.chat == self.chat_id:
            self._reply, self._question = began.started.reply, ""
            self._set_busy(True)
            if self._stops:
                self.stop()

    @Slot(ReplyMoved)
    def _on_reply_moved(self, moved: ReplyMoved) -> None:
        if moved.chat != self.chat_id:
            return
        event: ReplyEvent = moved.event
        if isinstance(event, ReplySnapshot):
            self._reply = event.reply
        elif isinstance(event, ReplyEnded):
            self._keep(event.message)
        self.reply_moved.emit(event)
        if isinstance(event, ReplyEnded):
            self._set_busy(False)

    @Slot(WishFailed)
    def _on_wish_failed(self, failed: WishFailed) -> None:
        concerns_this = failed.subject == self.chat_id or failed.wish == "make"
        if failed.wish in ("ask", "answer_again", "make") and concerns_this and self.is_busy:
            self._give_up(failed.error)
        elif failed.wish == "open" and failed.subject == self._wanted:
            self.start_new()

    @Slot(Connection)
    def _on_connection_changed(self, connection: Connection) -> None:
        if connection.state == "lost" and self.is_busy:
            self.interrupted.emit()
        elif connection.state == "connected" and self._wanted:
            self._bridge.open_chat(self._wanted)

    def _give_up(self, error: ErrorReport) -> None:
        question, self._question = self._question, ""
        self._set_busy(False)
        self.failed.emit(error)
        if question:
            self.question_returned.emit(question)

    def _show(self, chat: Chat | None) -> None:
        self.chat, self._adopts, self._reply = chat, False, ""
        self.setup = Setup()
        if chat is not None:
            self.setup = Setup(chat.system_prompt, tuple(sorted(chat.sampling.items())))
            self._reply = chat.reply or ""
        self._set_busy(bool(self._reply))
        self.opened.emit()

    def _keep(self, message: ChatMessage) -> None:
        """Put a finished answer into the conversation that is held here, so that its figures can be shown."""
        if self.chat is not None:
            others = [old for old in self.chat.messages if old.id != message.id]
            self.chat = msgspec.structs.replace(self.chat, messages=[*others, message], reply=None)
        self._reply = ""

    def _set_busy(self, busy: bool) -> None:
        self._stops = self._stops and busy
        if busy != self.is_busy:
            self.is_busy = busy
            self.busy_changed.emit(busy)


def _title(text: str) -> str:
    first = text.strip().split("\n")[0]
    return first if len(first) <= TITLE_LENGTH else f"{first[:TITLE_LENGTH].rstrip()}…"
