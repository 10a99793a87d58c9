"""The status dot: filled in a colour, or hollow for nothing. Words beside it always say the same."""

from typing import Literal

from PySide6.QtCore import QRectF, QSize
from PySide6.QtGui import QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QWidget

from octavo.desktop.theme.look import colour

State = Literal["good", "warn", "bad", "accent", "hollow"]
DIAMETER = 8


class StatusDot(QWidget):
    """A dot of 8 pixels."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._state: State = "hollow"
        self.setFixedSize(DIAMETER + 2, DIAMETER + 2)

    def show_state(self, state: State) -> None:
        """Change the dot."""
        if state != self._state:
            self._state = state
            self.update()

    def sizeHint(self) -> QSize:
        """Give the dot's size with a pixel around it."""
        return QSize(DIAMETER + 2, DIAMETER + 2)

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Paint the dot."""
        paint_dot(QPainter(self), QRectF(1, 1, DIAMETER, DIAMETER), self._state)


class Swatch(QWidget):
    """A small square in a data colour, for a legend."""

    def __init__(self, role: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._role = role
        self.setFixedSize(10, 10)

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Paint the square."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(colour(self._role))
        painter.setBrush(colour(self._role))
        painter.drawRoundedRect(QRectF(0.5, 0.5, 9, 9), 2, 2)


def paint_dot(painter: QPainter, place: QRectF, state: State) -> None:
    """Paint a dot into a square of a widget or row that draws itself."""
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    if state == "hollow":
        painter.setPen(QPen(colour("muted"), 1.25))
        painter.setBrush(colour("bg"))
        painter.drawEllipse(place.adjusted(0.5, 0.5, -0.5, -0.5))
    else:
        tint = colour("fill" if state == "accent" else state)
        painter.setPen(tint)
        painter.setBrush(tint)
        painter.drawEllipse(place.adjusted(0.5, 0.5, -0.5, -0.5))
    painter.restore()
