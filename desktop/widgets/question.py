"""A question in the conversation: a quiet box on the right."""

import math
from html import escape

from PySide6.QtCore import QEvent, QLocale
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QSizePolicy, QVBoxLayout, QWidget

from octavo.desktop.widgets.labels import label
from octavo.desktop.widgets.markdown.prose import ProseView

# what a person pasted may be a megabyte on one line; more than this is not laid out
SHOWN_CHARACTERS = 4_000
SHARE_OF_COLUMN = 0.85
PADDING_X, PADDING_Y = 13, 7


class QuestionView(QWidget):
    """Shows what the person wrote, as plain text."""

    def __init__(self, text: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.text = text
        self._box = QFrame()
        self._box.setProperty("kind", "card")
        self._shown = ProseView()
        self._more = label(size="caption", tone="muted")
        self._more.setVisible(len(text) > SHOWN_CHARACTERS)
        # the box's width follows the column's, so it must not keep the column wide
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        inside = QVBoxLayout(self._box)
        inside.setContentsMargins(PADDING_X, PADDING_Y, PADDING_X, PADDING_Y + 2)
        inside.setSpacing(4)
        inside.addWidget(self._shown)
        inside.addWidget(self._more)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.addStretch(1)
        row.addWidget(self._box)
        self._shown.show_html(_html(text[:SHOWN_CHARACTERS]))
        self.retranslate()

    def retranslate(self) -> None:
        """Write the texts in the present language."""
        rest = QLocale().toString(max(0, len(self.text) - SHOWN_CHARACTERS))
        self._more.setText(self.tr("{count} more characters").format(count=rest))
        self._box.setAccessibleName(self.tr("Your question"))

    def changeEvent(self, event: QEvent) -> None:
        """Follow the language."""
        super().changeEvent(event)
        if event.type() == QEvent.Type.LanguageChange:
            self.retranslate()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Make the box as wide as the text, up to most of the column."""
        super().resizeEvent(event)
        document = self._shown.document().clone()
        document.setTextWidth(event.size().width() * SHARE_OF_COLUMN - 2 * PADDING_X - 2)
        wide = math.ceil(document.idealWidth()) + 2
        if self._more.isVisibleTo(self._box):
            wide = max(wide, self._more.sizeHint().width())
        self._box.setFixedWidth(wide + 2 * PADDING_X + 2)


def _html(text: str) -> str:
    paragraphs = escape(text).replace("\t", "    ").split("\n")
    return f'<p style="white-space:pre-wrap;margin:0">{"<br>".join(paragraphs)}</p>'
