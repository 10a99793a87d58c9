"""The memory bar: one painted widget that shows what takes how much of a whole."""

from dataclasses import dataclass

from PySide6.QtCore import QRectF, QSize
from PySide6.QtGui import QPainter, QPainterPath, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from octavo.desktop.theme.look import colour

LEAST_WIDTH = 3
GAP = 1
RADIUS = 3


@dataclass(frozen=True, slots=True)
class Part:
    """Some bytes of one component; ``role`` is one of the data colours."""

    role: str
    size_bytes: int


class MemoryBar(QWidget):
    """Parts from the left in the order given, the rest of the whole empty."""

    def __init__(self, width: int, height: int, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._size = QSize(width, height)
        self._parts: tuple[Part, ...] = ()
        self._whole = 0
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)

    def show_parts(self, parts: tuple[Part, ...], whole_bytes: int) -> None:
        """Show these parts of ``whole_bytes``."""
        if (parts, whole_bytes) != (self._parts, self._whole):
            self._parts, self._whole = parts, whole_bytes
            self.update()

    def sizeHint(self) -> QSize:
        """Give the fixed size of the bar."""
        return self._size

    def widths(self, room: float) -> list[float]:
        """Give each part's width in ``room`` pixels; what a part gets to be seen, the widest part gives."""
        whole = max(self._whole, sum(part.size_bytes for part in self._parts), 1)
        exact = [room * part.size_bytes / whole for part in self._parts]
        seen = [max(LEAST_WIDTH, wide) if wide > 0 else 0.0 for wide in exact]
        if seen:
            widest = max(range(len(seen)), key=seen.__getitem__)
            seen[widest] = max(LEAST_WIDTH * (seen[widest] > 0), seen[widest] - (sum(seen) - sum(exact)))
        return seen

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Paint the ground and the parts."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        clip = QPainterPath()
        clip.addRoundedRect(QRectF(self.rect()), RADIUS, RADIUS)
        painter.setClipPath(clip)
        painter.fillRect(self.rect(), colour("hover"))
        left = 0.0
        for part, wide in zip(self._parts, self.widths(self.width()), strict=True):
            if wide:
                painter.fillRect(QRectF(left, 0, max(wide - GAP, 1), self.height()), colour(part.role))
                painter.fillRect(QRectF(left + wide - GAP, 0, GAP, self.height()), colour("bg"))
            left += wide
