"""A table block: hairlines between rows, a quiet head, cells that can be selected."""

from PySide6.QtCore import QEvent, Qt
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QFrame, QGridLayout, QLabel, QWidget

from octavo.desktop.theme.look import Look, colour
from octavo.desktop.widgets.labels import label
from octavo.desktop.widgets.markdown.blocks import Table

HEAD, ROW = 29, 27
SIDES = {"left": Qt.AlignmentFlag.AlignLeft, "right": Qt.AlignmentFlag.AlignRight}


class TableBlock(QFrame):
    """A table; a new version only writes the cells that changed."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("kind", "table")
        self._cells: dict[tuple[int, int], QLabel] = {}
        self._written: dict[tuple[int, int], str] = {}
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(12, 1, 12, 1)
        self._grid.setHorizontalSpacing(16)
        self._grid.setVerticalSpacing(1)
        self.setAccessibleName(self.tr("Table"))

    def show_block(self, block: Table, final: bool = True) -> None:
        """Show a table."""
        for row, cells in enumerate((block.head, *block.rows)):
            self._grid.setRowMinimumHeight(row, ROW if row else HEAD)
            for column, html in enumerate(cells):
                side = block.alignments[column] if column < len(block.alignments) else ""
                self._write(row, column, html, side)

    def changeEvent(self, event: QEvent) -> None:
        """Follow the language and the theme."""
        super().changeEvent(event)
        if event.type() == QEvent.Type.LanguageChange:
            self.setAccessibleName(self.tr("Table"))
        elif event.type() == QEvent.Type.PaletteChange:
            for place, html in getattr(self, "_written", {}).items():
                self._cells[place].setText(_styled(html))

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw the frame, and a hairline under each row but the last."""
        super().paintEvent(event)
        painter = QPainter(self)
        rows = 1 + max((row for row, _ in self._cells), default=0)
        for row in range(rows - 1):
            cells = [cell for place, cell in self._cells.items() if place[0] == row]
            below = max(cell.geometry().bottom() for cell in cells) + 1
            painter.fillRect(1, below, self.width() - 2, 1, colour("outline"))

    def _write(self, row: int, column: int, html: str, side: str) -> None:
        place = (row, column)
        if place not in self._cells:
            self._cells[place] = self._new_cell(row, column)
        if self._written.get(place) != html:
            self._written[place] = html
            self._cells[place].setText(_styled(html))
        vertical = Qt.AlignmentFlag.AlignVCenter
        self._cells[place].setAlignment(SIDES.get(side, Qt.AlignmentFlag.AlignLeft) | vertical)

    def _new_cell(self, row: int, column: int) -> QLabel:
        cell = label(
            size="caption" if row == 0 else "body",
            tone="muted" if row == 0 else "text",
            weight=500 - 100 * (row > 0),
        )
        cell.setTextFormat(Qt.TextFormat.RichText)
        cell.setWordWrap(True)
        cell.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        cell.setContentsMargins(0, 3, 0, 3)
        self._grid.addWidget(cell, row, column)
        self._grid.setColumnStretch(column, 1)
        return cell


def _styled(html: str) -> str:
    """Put colours where a label, which knows no style sheet of classes, needs them."""
    theme = Look.now()
    return (
        html.replace('class="code"', f'style="background-color:{theme.hex("hover")}"')
        .replace('class="muted"', f'style="color:{theme.hex("muted")}"')
        .replace("<a href=", f'<a style="color:{theme.hex("accent_text")};text-decoration:none" href=')
    )
