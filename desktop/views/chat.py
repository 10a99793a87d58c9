"""The chat page: list of conversations, the conversation, and its setup."""

from pathlib import Path

from PySide6.QtCore import QEvent, Qt, Signal, Slot
from PySide6.QtWidgets import (
    QFileDialog,
    QFrame,
    QHBoxLayout,
    QSplitter,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from octavo.core.chats.types import ReplyEnded
from octavo.core.errors import ErrorReport
from octavo.desktop.dialogue import Dialogue
from octavo.desktop.studio import Studio
from octavo.desktop.values import ChatsListed
from octavo.desktop.views.chat_head import ChatHead
from octavo.desktop.views.chat_list import ChatList
from octavo.desktop.views.chat_panel import ChatPanel
from octavo.desktop.views.conversation import MEASURE, Conversation
from octavo.desktop.widgets.composer import Composer, Draft, plain_focus
from octavo.desktop.widgets.empty_state import EmptyState
from octavo.desktop.widgets.error_panel import ErrorPanel
from octavo.desktop.widgets.toast import Toast


class ChatPage(QSplitter):
    """Wires the three parts to the open conversation."""

    busy_changed = Signal(bool)

    def __init__(
        self, studio: Studio, dialogue: Dialogue, toast: Toast, parent: QWidget | None = None
    ) -> None:
        super().__init__(Qt.Orientation.Horizontal, parent)
        self._studio = studio
        self._dialogue = dialogue
        self._toast = toast
        self._drafts: dict[str, Draft] = {}
        self._shown_chat = ""
        self._deleting = ""
        self.list = ChatList()
        self.head = ChatHead()
        self.conversation = Conversation()
        self.composer = Composer()
        self.panel = ChatPanel()
        self._greeting = EmptyState()
        self._no_model = EmptyState("file-plus-2")
        self._load_error = ErrorPanel(can_retry=True)
        self._load_error.hide()
        self._middle = QStackedWidget()
        self._lay_out()
        self._connect()
        self.retranslate()
        self._show_opened()

    # ---- wishes from the window

    def focus_composer(self) -> None:
        """Put the cursor into the composer."""
        plain_focus(self.composer)

    def new_chat(self) -> None:
        """Begin a conversation, with the cursor in the composer."""
        self._dialogue.start_new()
        self.focus_composer()

    def settle(self) -> None:
        """Carry out what was only put off: a deletion that can be undone, a setup just changed."""
        self.panel.flush()
        self._on_toast_gone()

    @Slot()
    def choose_file(self) -> None:
        """Ask for a .gguf file and take it into the library."""
        chosen, _ = QFileDialog.getOpenFileName(self, self.tr("Add a .gguf file"), "", "GGUF (*.gguf)")
        if chosen:
            self._studio.add_model(Path(chosen))

    # ---- Qt's

    def retranslate(self) -> None:
        """Write the texts in the present language."""
        self._greeting.describe(
            self.tr("What shall we talk about?"), self.tr("Everything stays on this computer.")
        )
        self._no_model.describe(
            self.tr("No models yet"),
            self.tr("A model is one .gguf file; Octavo runs it on this computer."),
            self.tr("Add a .gguf file"),
        )

    def changeEvent(self, event: QEvent) -> None:
        """Follow the language."""
        super().changeEvent(event)
        if event.type() == QEvent.Type.LanguageChange:
            self.retranslate()

    # ---- inside

    def _lay_out(self) -> None:
        self.setHandleWidth(1)
        self.setChildrenCollapsible(False)
        page = QWidget()
        page.setProperty("ground", "surface")
        page.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        for view in (self.conversation, self._greeting, self._no_model):
            self._middle.addWidget(view)
        column = QVBoxLayout(page)
        column.setContentsMargins(0, 0, 0, 16)
        column.setSpacing(0)
        column.addWidget(self.head)
        column.addWidget(self._middle, 1)
        column.addWidget(_in_measure(self._load_error, 8))
        column.addWidget(_in_measure(self.composer, 0))
        page.setMinimumWidth(400)
        self.panel.setProperty("ground", "surface")
        self.panel.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.list.setMinimumWidth(180)
        self.panel.setMinimumWidth(240)
        for part in (self.list, page, self.panel):
            self.addWidget(part)
        self.setStretchFactor(1, 1)
        self.setSizes([248, 688, 288])
        self.head.panel_switch.setChecked(True)

    def _connect(self) -> None:
        dialogue, studio = self._dialogue, self._studio
        dialogue.opened.connect(self._show_opened)
        dialogue.question_put.connect(self._on_question_put)
        dialogue.answer_begun.connect(self.conversation.begin_answer)
        dialogue.reply_moved.connect(self._on_reply_moved)
        dialogue.interrupted.connect(self.conversation.interrupt)
        dialogue.failed.connect(self.conversation.show_error)
        dialogue.question_returned.connect(self._on_question_returned)
        dialogue.busy_changed.connect(self.composer.set_busy)
        dialogue.busy_changed.connect(self.busy_changed)
        studio.bridge.chats_listed.connect(self._on_chats_listed)
        studio.models_changed.connect(self._choose_middle)
        studio.current_changed.connect(self._on_current_changed)
        studio.load_failed.connect(self._on_load_failed)
        self.composer.send_requested.connect(self._on_send_requested)
        self.composer.stop_requested.connect(dialogue.stop)
        self.conversation.again_wanted.connect(dialogue.answer_again)
        self.panel.setup_changed.connect(dialogue.change_setup)
        self.list.open_wanted.connect(self._on_open_wanted)
        self.list.new_wanted.connect(self.new_chat)
        self.list.rename_wanted.connect(self._on_rename_wanted)
        self.list.delete_wanted.connect(self._on_delete_wanted)
        self.head.panel_switch.toggled.connect(self.panel.setVisible)
        self._no_model.action_wanted.connect(self.choose_file)
        self._load_error.retry_wanted.connect(self._on_load_again)
        self._toast.gone.connect(self._on_toast_gone)
        self._toast.action_wanted.connect(self._on_delete_undone)

    @Slot()
    def _choose_middle(self) -> None:
        studio, chat = self._studio, self._dialogue.chat
        has_turns = chat is not None and bool(chat.messages)
        if has_turns or self._dialogue.is_busy:
            self._middle.setCurrentWidget(self.conversation)
        elif studio.is_listed and not studio.models:
            self._middle.setCurrentWidget(self._no_model)
        else:
            self._middle.setCurrentWidget(self._greeting)

    @Slot()
    def _show_opened(self) -> None:
        chat = self._dialogue.chat
        self._keep_draft()
        self._shown_chat = self._dialogue.chat_id
        self.composer.set_draft(self._drafts.get(self._shown_chat, Draft()))
        self.composer.set_busy(self._dialogue.is_busy)
        self.conversation.show_messages(chat.messages if chat is not None else [], self._dialogue.is_busy)
        self.panel.show_setup(self._dialogue.setup)
        self.head.show_title(chat.title if chat is not None else "")
        self.list.set_current(self._shown_chat)
        self._studio.remembered.keep("chat", self._shown_chat)
        self._show_context()
        self._choose_middle()

    def _keep_draft(self) -> None:
        self._drafts[self._shown_chat] = self.composer.draft

    def _show_context(self) -> None:
        messages = self._dialogue.chat.messages if self._dialogue.chat is not None else []
        stats = next((turn.stats for turn in reversed(messages) if turn.stats is not None), None)
        used = stats.prompt_tokens + stats.completion_tokens if stats is not None else 0
        instance = self._studio.instance
        self.head.show_context(used, instance.context if instance is not None else 0)

    @Slot(str)
    def _on_send_requested(self, text: str) -> None:
        self.panel.flush()
        self.composer.set_draft(Draft())
        self._drafts.pop(self._shown_chat, None)
        self._dialogue.ask(text)

    @Slot(str)
    def _on_question_put(self, text: str) -> None:
        self.conversation.add_question(text)
        self._middle.setCurrentWidget(self.conversation)

    @Slot(str)
    def _on_question_returned(self, text: str) -> None:
        if not self.composer.draft.text:
            self.composer.set_draft(Draft(text) if len(text) < 8000 else Draft("", (text,)))

    @Slot(object)
    def _on_reply_moved(self, event: object) -> None:
        self.conversation.follow(event)  # type: ignore[arg-type]
        if isinstance(event, ReplyEnded):
            self._show_context()
        if self._shown_chat != self._dialogue.chat_id:
            self._adopt_new_chat()

    def _adopt_new_chat(self) -> None:
        """The new conversation has become one that the service knows."""
        chat = self._dialogue.chat
        self._shown_chat = self._dialogue.chat_id
        self.head.show_title(chat.title if chat is not None else "")
        self.list.set_current(self._shown_chat)
        self._studio.remembered.keep("chat", self._shown_chat)

    @Slot(str)
    def _on_open_wanted(self, chat: str) -> None:
        self.panel.flush()
        self._dialogue.open(chat)
        self.focus_composer()

    @Slot(ChatsListed)
    def _on_chats_listed(self, listed: ChatsListed) -> None:
        self.list.show_chats(listed.chats)
        if self._dialogue.chat_id and self._dialogue.chat_id not in {chat.id for chat in listed.chats}:
            self._dialogue.start_new()

    @Slot(str, str)
    def _on_rename_wanted(self, chat: str, title: str) -> None:
        self._dialogue.rename(chat, title)
        if chat == self._dialogue.chat_id:
            self.head.show_title(title)

    @Slot(str)
    def _on_delete_wanted(self, chat: str) -> None:
        self._on_toast_gone()
        self._deleting = chat
        self.list.model.hide(chat)
        if chat == self._dialogue.chat_id:
            self._dialogue.start_new()
        self._toast.show_text(self.tr("Chat deleted."), self.tr("Undo"))

    @Slot()
    def _on_delete_undone(self) -> None:
        chat, self._deleting = self._deleting, ""
        if chat:
            self.list.model.unhide(chat)
            self._dialogue.open(chat)

    @Slot()
    def _on_toast_gone(self) -> None:
        chat, self._deleting = self._deleting, ""
        if chat:
            self._studio.bridge.delete_chat(chat)

    @Slot()
    def _on_current_changed(self) -> None:
        instance = self._studio.instance
        if instance is not None and instance.state in ("loading", "ready"):
            self._load_error.hide()
        self._choose_middle()
        self._show_context()

    @Slot(str, object)
    def _on_load_failed(self, model: str, error: ErrorReport) -> None:
        if self._dialogue.is_busy:  # the reply says the same in its own place
            return
        entry = self._studio.entry_of(model)
        name = entry.name if entry is not None else model
        crashed = error.code == "worker_crashed"
        title = self.tr("{name} stopped by itself") if crashed else self.tr("{name} could not be loaded")
        self._load_error.show_report(error, title.format(name=name))
        self._load_error.show()

    @Slot()
    def _on_load_again(self) -> None:
        self._load_error.hide()
        if self._studio.current:
            self._studio.choose_model(self._studio.current)


def _in_measure(widget: QWidget, below: int) -> QFrame:
    """Put a widget into the measure of the conversation's column."""
    frame = QFrame()
    row = QHBoxLayout(frame)
    row.setContentsMargins(32, 0, 32, below)
    widget.setMaximumWidth(MEASURE)
    row.addStretch(1)
    row.addWidget(widget, 1000)
    row.addStretch(1)
    return frame
