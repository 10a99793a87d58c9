"""Every command of the window, once: shortcuts, tooltips and the palette are made from this table."""

from collections.abc import Callable
from dataclasses import dataclass

from PySide6.QtCore import QEvent, QObject
from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import QWidget

from octavo.desktop.theme.icons import icon

Handler = Callable[[], None]


@dataclass(frozen=True, slots=True)
class Command:
    """One command; ``source`` is its English text, by which the palette finds it in any language."""

    id: str
    source: str
    keys: str
    icon: str


COMMANDS = (
    Command("new_chat", "New chat", "Ctrl+N", "square-pen"),
    Command("choose_model", "Choose a model", "Ctrl+L", "chevrons-up-down"),
    Command("eject_model", "Unload the model", "", "power"),
    Command("add_model", "Add a .gguf file", "", "file-plus-2"),
    Command("stop", "Stop the answer", "Esc", "square"),
    Command("answer_again", "Answer again", "Ctrl+R", "refresh-cw"),
    Command("switch_server", "Switch the API server on or off", "", "server"),
    Command("show_panel", "System prompt and sampling", "Ctrl+Shift+B", "panel-right"),
    Command("open_chat_page", "Chat", "Ctrl+1", "message-square"),
    Command("open_settings", "Settings", "Ctrl+,", "settings"),
    Command("open_palette", "Search or run", "Ctrl+K", "search"),
    Command("quit", "Quit", "Ctrl+Q", "x"),
)


class Actions(QObject):
    """The commands as Qt actions of one window."""

    def __init__(self, window: QWidget, handlers: dict[str, Handler]) -> None:
        super().__init__(window)
        self._actions = {
            command.id: self._made(command, window, handlers[command.id]) for command in COMMANDS
        }
        window.installEventFilter(self)
        self.retranslate()

    def __getitem__(self, name: str) -> QAction:
        """Give one action."""
        return self._actions[name]

    def keys(self, name: str) -> str:
        """Give a command's keys as this platform writes them."""
        return self._actions[name].shortcut().toString(QKeySequence.SequenceFormat.NativeText)

    def usable(self) -> list[tuple[Command, QAction]]:
        """Give the commands that can be run now."""
        return [
            (command, self._actions[command.id])
            for command in COMMANDS
            if self._actions[command.id].isEnabled()
        ]

    def retranslate(self) -> None:
        """Write the texts in the present language."""
        for name, text in self._texts().items():
            self._actions[name].setText(text)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Follow the window's language."""
        if event.type() == QEvent.Type.LanguageChange:
            self.retranslate()
        return False

    def _made(self, command: Command, window: QWidget, handler: Handler) -> QAction:
        action = QAction(icon(command.icon), command.source, self)
        if command.keys:
            action.setShortcut(QKeySequence(command.keys))
        action.triggered.connect(handler)
        window.addAction(action)
        return action

    def _texts(self) -> dict[str, str]:
        return {
            "new_chat": self.tr("New chat"),
            "choose_model": self.tr("Choose a model"),
            "eject_model": self.tr("Unload the model"),
            "add_model": self.tr("Add a .gguf file"),
            "stop": self.tr("Stop the answer"),
            "answer_again": self.tr("Answer again"),
            "switch_server": self.tr("Switch the API server on or off"),
            "show_panel": self.tr("System prompt and sampling"),
            "open_chat_page": self.tr("Chat"),
            "open_settings": self.tr("Settings"),
            "open_palette": self.tr("Search or run"),
            "quit": self.tr("Quit"),
        }
