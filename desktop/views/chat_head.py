"""The line over the conversation: its title, how full its context is, and the switch of the right panel."""

from PySide6.QtCore import QEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QWidget

from octavo.desktop.quantities import count
from octavo.desktop.widgets.buttons import IconButton
from octavo.desktop.widgets.labels import elided_label, label
from octavo.desktop.widgets.memory_bar import MemoryBar, Part


class ChatHead(QFrame):
    """48 pixels high, like the head of the panel beside it."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("line", "bottom")
        self.setFixedHeight(48)
        self._title = elided_label(size="reading", weight=500)
        self._context = label(size="caption", tone="muted")
        self._bar = MemoryBar(64, 4)
        self.panel_switch = IconButton("panel-right")
        self.panel_switch.setCheckable(True)
        self._chat_title = ""
        self._used, self._size = 0, 0
        row = QHBoxLayout(self)
        row.setContentsMargins(32, 0, 16, 0)
        row.setSpacing(8)
        row.addWidget(self._title, 1)
        row.addWidget(self._context)
        row.addWidget(self._bar)
        row.addSpacing(8)
        row.addWidget(self.panel_switch)
        self.retranslate()

    def show_title(self, title: str) -> None:
        """Show a conversation's title; empty for a new one."""
        self._chat_title = title
        self.retranslate()

    def show_context(self, used: int, size: int) -> None:
        """Show how many of the context's tokens the conversation takes; nothing while that is unknown."""
        self._used, self._size = used, size
        self.retranslate()

    def retranslate(self) -> None:
        """Write the texts in the present language."""
        self._title.show_text(self._chat_title or self.tr("New chat"))
        known = self._used > 0 and self._size > 0
        self._context.setVisible(known)
        self._bar.setVisible(known)
        self._context.setText(
            self.tr("context {used} / {size}").format(used=count(self._used), size=count(self._size))
        )
        self._bar.show_parts((Part("kv", self._used),), self._size)
        self.panel_switch.describe(self.tr("System prompt and sampling"))

    def changeEvent(self, event: QEvent) -> None:
        """Follow the language."""
        super().changeEvent(event)
        if event.type() == QEvent.Type.LanguageChange:
            self.retranslate()
