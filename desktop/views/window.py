"""The window: rail, top bar, one page at a time, and the memory strip."""

from functools import partial

from PySide6.QtCore import QEvent, Slot
from PySide6.QtGui import QCloseEvent
from PySide6.QtWidgets import QHBoxLayout, QMainWindow, QStackedWidget, QVBoxLayout, QWidget

from octavo.core.events import ActionTaken, AnyEvent, ServerChanged
from octavo.desktop.actions import Actions, Handler
from octavo.desktop.dialogue import Dialogue
from octavo.desktop.language import Language
from octavo.desktop.lists.models import state_text
from octavo.desktop.studio import Studio
from octavo.desktop.theme.look import Look
from octavo.desktop.values import ChatsListed, Preferences, WishFailed
from octavo.desktop.views.chat import ChatPage
from octavo.desktop.views.notice import ConnectionNotice, PortNotice
from octavo.desktop.views.palette import CommandPalette, Entry
from octavo.desktop.views.picker import PickerPopup
from octavo.desktop.views.rail import Rail
from octavo.desktop.views.settings import SettingsPage
from octavo.desktop.views.top_bar import TopBar
from octavo.desktop.widgets.strip import MemoryStrip
from octavo.desktop.widgets.toast import Toast

_TOLD_IN_PLACE = ("ask", "answer_again", "make", "load", "open", "read", "follow", "reopen")


class Window(QMainWindow):
    """The one window of the app."""

    def __init__(self, studio: Studio, look: Look, language: Language) -> None:
        super().__init__()
        self._studio = studio
        self._look = look
        self._language = language
        self._chats: ChatsListed = ChatsListed(())
        self.setMinimumSize(900, 600)
        self.toast = Toast(self)
        self.dialogue = Dialogue(studio, self)
        self.chat = ChatPage(studio, self.dialogue, self.toast)
        self.toast.keep_clear_of(self.chat.composer)
        self.settings = SettingsPage(studio)
        self.rail = Rail()
        self.top_bar = TopBar(studio)
        self.strip = MemoryStrip(studio)
        self._pages = QStackedWidget()
        self._lay_out()
        self.picker = PickerPopup(studio, self.top_bar.pill, self)
        self.palette_box = CommandPalette(self, self._palette_entries)
        self.actions_table = Actions(self, self._handlers())
        self._connect()
        self.retranslate()
        self._restore()
        self.open_page("chat")

    # ---- what the window can do

    def open_page(self, page: str) -> None:
        """Show a page."""
        self._pages.setCurrentWidget(self.chat if page == "chat" else self.settings)
        self.rail.show_page(page)
        if page == "chat":
            self.chat.focus_composer()

    def retranslate(self) -> None:
        """Write the texts in the present language."""
        self.setWindowTitle("Octavo")
        if hasattr(self, "actions_table"):
            self.actions_table.retranslate()

    def changeEvent(self, event: QEvent) -> None:
        """Follow the language."""
        super().changeEvent(event)
        if event.type() == QEvent.Type.LanguageChange:
            self.retranslate()

    def focusNextPrevChild(self, forward: bool) -> bool:
        """Give what was written meanwhile its place in the order before Tab moves on."""
        self.chat.conversation.order_tabs()
        return super().focusNextPrevChild(forward)

    def closeEvent(self, event: QCloseEvent) -> None:
        """Finish what was put off, remember the window's shape, end the connection."""
        self.chat.settle()
        remembered = self._studio.remembered
        remembered.keep("geometry", self.saveGeometry())
        remembered.keep("splitter", self.chat.saveState())
        remembered.keep("panel", "shown" if self.chat.head.panel_switch.isChecked() else "hidden")
        remembered.save()
        self._studio.bridge.close()
        super().closeEvent(event)

    # ---- inside

    def _lay_out(self) -> None:
        for page in (self.chat, self.settings):
            self._pages.addWidget(page)
        right = QVBoxLayout()
        right.setSpacing(0)
        right.addWidget(self.top_bar)
        right.addWidget(ConnectionNotice(self._studio))
        right.addWidget(PortNotice(self._studio))
        right.addWidget(self._pages, 1)
        across = QHBoxLayout()
        across.setSpacing(0)
        across.addWidget(self.rail)
        across.addLayout(right, 1)
        body = QWidget()
        column = QVBoxLayout(body)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addLayout(across, 1)
        column.addWidget(self.strip)
        self.setCentralWidget(body)
        self.resize(1280, 800)

    def _handlers(self) -> dict[str, Handler]:
        return {
            "new_chat": self._on_new_chat_wanted,
            "choose_model": self.picker.toggle,
            "eject_model": self._studio.eject,
            "add_model": self.chat.choose_file,
            "stop": self._on_escape,
            "answer_again": self.dialogue.answer_again,
            "switch_server": self._studio.switch_server,
            "show_panel": self.chat.head.panel_switch.toggle,
            "open_chat_page": partial(self.open_page, "chat"),
            "open_settings": partial(self.open_page, "settings"),
            "open_palette": self.palette_box.open,
            "quit": self._on_quit_wanted,
        }

    def _connect(self) -> None:
        bridge = self._studio.bridge
        self.rail.page_wanted.connect(self.open_page)
        self.top_bar.pill.clicked.connect(self.picker.toggle)
        self.top_bar.eject.clicked.connect(self._studio.eject)
        self.top_bar.palette_field.clicked.connect(self.palette_box.open)
        self.picker.file_wanted.connect(self.chat.choose_file)
        self.chat.busy_changed.connect(self._on_busy_changed)
        bridge.preferences_read.connect(self._on_preferences_read)
        bridge.chats_listed.connect(self._on_chats_listed)
        bridge.wish_failed.connect(self._on_wish_failed)
        bridge.event_arrived.connect(self._on_event_arrived)
        self._studio.current_changed.connect(self._on_state_changed)
        self._studio.connection_changed.connect(self._on_state_changed)
        self._on_busy_changed(False)
        self._on_state_changed()

    def _restore(self) -> None:
        remembered = self._studio.remembered
        if shape := remembered.shape("geometry"):
            self.restoreGeometry(shape)
        if shape := remembered.shape("splitter"):
            self.chat.restoreState(shape)
        if remembered.text("panel") == "hidden":
            self.chat.head.panel_switch.setChecked(False)
        if chat := remembered.text("chat"):
            self.dialogue.remember(chat)

    def _palette_entries(self) -> list[Entry]:
        actions = [
            Entry(
                action.text(),
                command.icon,
                action.trigger,
                keys=self.actions_table.keys(command.id),
                also=command.source,
            )
            for command, action in self.actions_table.usable()
            if command.id != "open_palette"
        ]
        chats = [
            Entry(chat.title, "message-square", partial(self._open_chat, chat.id), hint=self.tr("chat"))
            for chat in self._chats.chats
        ]
        models = [
            Entry(
                entry.name,
                "power",
                partial(self._studio.choose_model, entry.key),
                hint=self._model_hint(entry.key),
            )
            for entry in self._studio.models
            if not entry.fault
        ]
        return [*actions, *chats, *models]

    def _model_hint(self, key: str) -> str:
        entry = self._studio.entry_of(key)
        state = state_text(entry, self._studio.instance_of(key)) if entry is not None else ""
        return f"{self.tr('model')} · {state}" if state else self.tr("model")

    def _open_chat(self, chat: str) -> None:
        self.open_page("chat")
        self.dialogue.open(chat)

    @Slot()
    def _on_new_chat_wanted(self) -> None:
        self.open_page("chat")
        self.chat.new_chat()

    @Slot()
    def _on_escape(self) -> None:
        if self.palette_box.isVisible():
            self.palette_box.close_palette()
        elif self.picker.isVisible():
            self.picker.close_popup()
        else:
            self.dialogue.stop()

    @Slot()
    def _on_quit_wanted(self) -> None:
        self.close()

    @Slot(bool)
    def _on_busy_changed(self, busy: bool) -> None:
        self.actions_table["stop"].setEnabled(busy)
        self._on_state_changed()

    @Slot()
    def _on_state_changed(self) -> None:
        status = self._studio.instance
        chat = self.dialogue.chat
        self.actions_table["eject_model"].setEnabled(status is not None and status.state == "ready")
        self.actions_table["switch_server"].setEnabled(self._studio.is_connected)
        has_answer = chat is not None and any(turn.role == "assistant" for turn in chat.messages)
        self.actions_table["answer_again"].setEnabled(has_answer and not self.dialogue.is_busy)

    @Slot(object)
    def _on_preferences_read(self, preferences: Preferences) -> None:
        self._look.choose(preferences.theme)
        self._language.choose(preferences.language)
        self.settings.show_preferences(preferences)
        self._studio.remembered.keep("theme", preferences.theme)
        self._studio.remembered.keep("language", preferences.language)

    @Slot(ChatsListed)
    def _on_chats_listed(self, listed: ChatsListed) -> None:
        self._chats = listed

    @Slot(object)
    def _on_event_arrived(self, event: AnyEvent) -> None:
        if isinstance(event, ServerChanged) and event.error is not None:
            if self._studio.lost_port is None:  # else the notice says it
                self.toast.show_report(event.error)
        elif isinstance(event, ActionTaken):
            self.toast.show_text(event.text)

    @Slot(WishFailed)
    def _on_wish_failed(self, failed: WishFailed) -> None:
        if failed.wish not in _TOLD_IN_PLACE:
            self.toast.show_report(failed.error)
