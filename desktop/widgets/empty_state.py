"""An empty page: a quiet drawing, one sentence, one thing to do."""

from PySide6.QtCore import QRectF, QSize, Qt, Signal
from PySide6.QtGui import QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QVBoxLayout, QWidget

from octavo.desktop.theme.look import colour
from octavo.desktop.widgets.buttons import button
from octavo.desktop.widgets.labels import label

COLUMNS, ROWS, CELL, STEP = 8, 5, 18, 22
PRESENT = (3, 2)
SENTENCE_WIDTH = 344


class PageGrid(QWidget):
    """Octavo's drawing: the pages of a model, one of them present."""

    def sizeHint(self) -> QSize:
        """Give the size of the grid."""
        return QSize(COLUMNS * STEP, ROWS * STEP)

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Paint the pages as dashed squares and the present one as a filled one."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        dashed = QPen(colour("outline"), 1.5, Qt.PenStyle.DotLine)
        for column in range(COLUMNS):
            for row in range(ROWS):
                page = QRectF(column * STEP + 1, row * STEP + 1, CELL, CELL)
                is_present = (column, row) == PRESENT
                painter.setPen(Qt.PenStyle.NoPen if is_present else dashed)
                painter.setBrush(colour("fill") if is_present else Qt.BrushStyle.NoBrush)
                painter.drawRoundedRect(page, 3, 3)


class EmptyState(QWidget):
    """What stands where there is nothing yet."""

    action_wanted = Signal()

    def __init__(self, icon_name: str = "", parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._title = label(size="title", weight=600)
        self._sentence = label(tone="secondary")
        self._sentence.setWordWrap(True)
        self._sentence.setFixedWidth(SENTENCE_WIDTH)
        self._button = button("large", icon_name)
        self._button.clicked.connect(self.action_wanted)
        column = QVBoxLayout(self)
        column.setSpacing(12)
        column.addStretch(2)
        column.addWidget(PageGrid(self), 0, Qt.AlignmentFlag.AlignHCenter)
        column.addSpacing(12)
        for text in (self._title, self._sentence):
            column.addWidget(text, 0, Qt.AlignmentFlag.AlignHCenter)
        column.addSpacing(8)
        column.addWidget(self._button, 0, Qt.AlignmentFlag.AlignHCenter)
        for text in (self._title, self._sentence):
            text.setAlignment(Qt.AlignmentFlag.AlignHCenter | Qt.AlignmentFlag.AlignTop)
        column.addStretch(3)

    def describe(self, title: str, sentence: str, action: str = "") -> None:
        """Set the texts; without an action there is no button."""
        self._title.setText(title)
        self._sentence.setText(sentence)
        self._sentence.setFixedHeight(self._sentence.heightForWidth(SENTENCE_WIDTH))
        self._button.setText(action)
        self._button.setAccessibleName(action or title)
        self._button.setVisible(bool(action))
