"""The composer: the message field in its frame, with Send, and Stop in the place of Send."""

from dataclasses import dataclass

from PySide6.QtCore import QEvent, QLocale, Qt, Signal, Slot
from PySide6.QtWidgets import QFrame, QHBoxLayout, QVBoxLayout, QWidget

from octavo.desktop.widgets.buttons import IconButton, button
from octavo.desktop.widgets.labels import chip, label
from octavo.desktop.widgets.message_edit import MessageEdit


@dataclass(frozen=True, slots=True)
class Draft:
    """What was typed and pasted but not sent."""

    typed: str = ""
    pastes: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """Give the message as it is sent: what was typed, then what was pasted."""
        return "\n\n".join(part for part in (self.typed.strip(), *self.pastes) if part.strip())


class PasteRow(QWidget):
    """A huge paste, folded: how long it is, and a way to take it out again."""

    removed = Signal()

    def __init__(self, text: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.text = text
        self._chip = chip()
        self._preview = label(text[:80].replace("\n", " "), size="caption", tone="muted")
        self._remove = IconButton("x", side=24, drawing=14)
        self._remove.clicked.connect(self.removed)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.addWidget(self._chip)
        row.addWidget(self._preview, 1)
        row.addWidget(self._remove)
        self._preview.setMinimumWidth(40)
        self.retranslate()

    def retranslate(self) -> None:
        """Write the texts in the present language."""
        count = QLocale().toString(len(self.text))
        self._chip.setText(self.tr("Pasted text · {count} characters").format(count=count))
        self._remove.describe(self.tr("Remove the pasted text"))

    def changeEvent(self, event: QEvent) -> None:
        """Follow the language."""
        super().changeEvent(event)
        if event.type() == QEvent.Type.LanguageChange:
            self.retranslate()


class Composer(QFrame):
    """Where a message is written."""

    send_requested = Signal(str)
    stop_requested = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("kind", "composer")
        self._is_busy = False
        self._pastes: list[PasteRow] = []
        self.edit = MessageEdit(self)
        self._hint = label(size="caption", tone="muted")
        self._send = button("main", "arrow-up")
        self._stop = button("normal", "square")
        self._lay_out()
        self.edit.send_requested.connect(self._on_send_wanted)
        self.edit.paste_set_aside.connect(self._on_paste_set_aside)
        self.edit.focus_changed.connect(self._on_focus_changed)
        self.edit.textChanged.connect(self._refresh)
        self._send.clicked.connect(self._on_send_wanted)
        self._stop.clicked.connect(self.stop_requested)
        self.retranslate()
        self._refresh()

    @property
    def draft(self) -> Draft:
        """Give what is written now."""
        return Draft(self.edit.toPlainText(), tuple(row.text for row in self._pastes))

    def set_draft(self, draft: Draft) -> None:
        """Show another draft."""
        while self._pastes:
            self._drop(self._pastes[0])
        self.edit.setPlainText(draft.typed)
        self.edit.moveCursor(self.edit.textCursor().MoveOperation.End)
        for text in draft.pastes:
            self._on_paste_set_aside(text)

    def set_busy(self, busy: bool) -> None:
        """Put Stop in the place of Send while an answer is written."""
        self._is_busy = busy
        self._refresh()

    def retranslate(self) -> None:
        """Write the texts in the present language."""
        self.edit.setPlaceholderText(self.tr("Write a message"))
        self.edit.setAccessibleName(self.tr("Message"))
        self._hint.setText(self.tr("Enter sends, Shift+Enter breaks the line"))
        self._send.setText(self.tr("Send"))
        self._stop.setText(self.tr("Stop", "end an answer"))
        self._stop.setToolTip(self.tr("Stop the answer (Esc)"))

    def changeEvent(self, event: QEvent) -> None:
        """Follow the language."""
        super().changeEvent(event)
        if event.type() == QEvent.Type.LanguageChange:
            self.retranslate()

    def _lay_out(self) -> None:
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(10, 8, 8, 8)
        self._column.setSpacing(6)
        self._column.addWidget(self.edit)
        row = QHBoxLayout()
        row.setContentsMargins(2, 0, 0, 0)
        row.addWidget(self._hint, 1)
        row.addWidget(self._send)
        row.addWidget(self._stop)
        self._column.addLayout(row)
        self.setFocusProxy(self.edit)

    def _drop(self, row: PasteRow) -> None:
        self._pastes.remove(row)
        self._column.removeWidget(row)
        row.hide()
        row.deleteLater()
        self._refresh()

    @Slot()
    def _refresh(self) -> None:
        self._stop.setVisible(self._is_busy)
        self._send.setVisible(not self._is_busy)
        self._send.setEnabled(bool(self._pastes) or not self.edit.document().isEmpty())

    @Slot()
    def _on_send_wanted(self) -> None:
        text = self.draft.text
        if text and not self._is_busy:
            self.send_requested.emit(text)

    @Slot(str)
    def _on_paste_set_aside(self, text: str) -> None:
        row = PasteRow(text, self)
        row.removed.connect(self._on_paste_removed)
        self._pastes.append(row)
        self._column.insertWidget(len(self._pastes) - 1, row)
        self._refresh()

    @Slot()
    def _on_paste_removed(self) -> None:
        row = self.sender()
        if isinstance(row, PasteRow):
            self._drop(row)

    @Slot(bool)
    def _on_focus_changed(self, has_focus: bool) -> None:
        self.setProperty("focused", "true" if has_focus else "false")
        self.style().unpolish(self)
        self.style().polish(self)


def plain_focus(composer: Composer) -> None:
    """Put the cursor into the field."""
    composer.edit.setFocus(Qt.FocusReason.OtherFocusReason)
