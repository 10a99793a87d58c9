"""The field that a message is typed in: Return sends, input methods are respected, huge pastes set aside."""

from PySide6.QtCore import QMimeData, Qt, Signal
from PySide6.QtGui import QGuiApplication, QInputMethodEvent, QKeyEvent
from PySide6.QtWidgets import QFrame, QPlainTextEdit, QWidget

from octavo.desktop.theme.fonts import ui_font

# laying out a line of a million characters takes minutes, so text of this size is never put into the field
LONGEST_PASTE = 8_000
MOST_LINES = 10

_HANGUL = ((0x1100, 0x11FF), (0x3130, 0x318F), (0xA960, 0xA97F), (0xAC00, 0xD7A3), (0xD7B0, 0xD7FF))


class MessageEdit(QPlainTextEdit):
    """Grows with its text up to ten lines."""

    send_requested = Signal()
    paste_set_aside = Signal(str)
    focus_changed = Signal(bool)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._preedit = ""
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setFont(ui_font("reading"))
        self.setProperty("text_size", "reading")
        self.setTabChangesFocus(True)
        self.setAcceptDrops(False)
        self.document().setDocumentMargin(2)
        self.document().documentLayout().documentSizeChanged.connect(self._fit)
        self._fit()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Send on Return and Enter, break the line with Shift."""
        if event.key() not in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            super().keyPressEvent(event)
        elif not self._settle_composition():
            event.accept()
        elif event.modifiers() & Qt.KeyboardModifier.ShiftModifier:
            self.insertPlainText("\n")
            self.ensureCursorVisible()
        else:
            self.send_requested.emit()

    def inputMethodEvent(self, event: QInputMethodEvent) -> None:
        """Keep what is being composed, which is not part of the text yet."""
        self._preedit = event.preeditString()
        super().inputMethodEvent(event)

    def insertFromMimeData(self, source: QMimeData) -> None:
        """Insert text without its looks; a huge one is set aside."""
        if not source.hasText():
            return
        text = source.text().replace("\r\n", "\n")
        if len(text) > LONGEST_PASTE:
            self.paste_set_aside.emit(text)
        else:
            self.insertPlainText(text)

    def focusInEvent(self, event: object) -> None:
        """Tell the frame, which draws the edge."""
        super().focusInEvent(event)  # type: ignore[arg-type]
        self.focus_changed.emit(True)

    def focusOutEvent(self, event: object) -> None:
        """Tell the frame, which draws the edge."""
        super().focusOutEvent(event)  # type: ignore[arg-type]
        self.focus_changed.emit(False)

    def _settle_composition(self) -> bool:
        """Say whether the key may act.

        A Hangul syllable in the making is complete as it stands and is taken over; any other composition
        still needs its candidate chosen, and the key only does that.
        """
        if not self._preedit:
            return True
        if not _is_hangul(self._preedit):
            return False
        method = QGuiApplication.inputMethod()
        method.commit()
        if self._preedit:  # no input method answered: take the syllable over ourselves, once
            event = QInputMethodEvent()
            event.setCommitString(self._preedit)
            self.inputMethodEvent(event)
            method.reset()
        return True

    def _fit(self) -> None:
        lines = min(max(1, round(self.document().size().height())), MOST_LINES)
        self.setFixedHeight(lines * self.fontMetrics().lineSpacing() + 6)


def _is_hangul(text: str) -> bool:
    return all(any(first <= ord(character) <= last for first, last in _HANGUL) for character in text)
