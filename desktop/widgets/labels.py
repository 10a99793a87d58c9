"""Labels that say by property which size, tone and weight of the tokens they have."""

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QFrame, QLabel, QWidget

from octavo.desktop.theme.fonts import Size

LEAST_ELIDED = 60


class ElidedLabel(QLabel):
    """A line that ends in … where it is too long for its room; the whole text is then its tooltip."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._whole = ""
        self.setMinimumWidth(LEAST_ELIDED)

    def show_text(self, text: str) -> None:
        """Show a text, whole or cut."""
        self._whole = text
        self.updateGeometry()
        self._cut()

    def sizeHint(self) -> QSize:
        """Ask for the room of the whole text."""
        return QSize(self.fontMetrics().horizontalAdvance(self._whole) + 2, super().sizeHint().height())

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Cut anew."""
        super().resizeEvent(event)
        self._cut()

    def _cut(self) -> None:
        shown = self.fontMetrics().elidedText(self._whole, Qt.TextElideMode.ElideRight, self.width())
        if shown != self.text():
            self.setText(shown)
        self.setToolTip(self._whole if shown != self._whole else "")


def label(
    text: str = "",
    *,
    size: Size = "body",
    tone: str = "text",
    weight: int = 400,
    parent: QWidget | None = None,
) -> QLabel:
    """Make a label of plain text."""
    made = QLabel(text, parent)
    _describe(made, size, tone, weight)
    return made


def elided_label(*, size: Size = "body", tone: str = "text", weight: int = 400) -> ElidedLabel:
    """Make a line that is cut where its room is too small."""
    made = ElidedLabel()
    _describe(made, size, tone, weight)
    return made


def _describe(made: QLabel, size: Size, tone: str, weight: int) -> None:
    made.setTextFormat(Qt.TextFormat.PlainText)
    made.setProperty("text_size", size)
    made.setProperty("tone", tone)
    made.setProperty("weight", str(weight))


def chip(text: str = "", parent: QWidget | None = None) -> QLabel:
    """Make a small label with a ground of its own, for a quant or an architecture."""
    made = QLabel(text, parent)
    made.setTextFormat(Qt.TextFormat.PlainText)
    made.setProperty("kind", "chip")
    return made


def key(text: str = "", parent: QWidget | None = None) -> QLabel:
    """Make a label that looks like a key of the keyboard."""
    made = QLabel(text, parent)
    made.setTextFormat(Qt.TextFormat.PlainText)
    made.setProperty("kind", "key")
    return made


def set_tone(of: QWidget, tone: str) -> None:
    """Change the tone of a label."""
    if of.property("tone") != tone:
        of.setProperty("tone", tone)
        of.style().unpolish(of)
        of.style().polish(of)


def hairline(parent: QWidget | None = None) -> QFrame:
    """Make a horizontal line of one pixel."""
    made = QFrame(parent)
    made.setProperty("kind", "hairline")
    made.setFixedHeight(1)
    return made


def upright(parent: QWidget | None = None) -> QFrame:
    """Make a vertical line of one pixel."""
    made = QFrame(parent)
    made.setProperty("kind", "hairline")
    made.setFixedWidth(1)
    return made
