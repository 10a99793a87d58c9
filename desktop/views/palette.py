"""The command palette: every command, chat and model, found by a few letters in either language."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from PySide6.QtCore import (
    QAbstractListModel,
    QEvent,
    QModelIndex,
    QObject,
    QPersistentModelIndex,
    QPoint,
    QRect,
    QSize,
    Qt,
    Slot,
)
from PySide6.QtGui import QKeyEvent, QMouseEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QLineEdit,
    QListView,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QVBoxLayout,
    QWidget,
)

from octavo.desktop.theme.fonts import ui_font
from octavo.desktop.theme.icons import paint_icon
from octavo.desktop.theme.look import Look, colour
from octavo.desktop.widgets.labels import hairline, key, label

WIDTH, FROM_TOP, ROW, MOST_ROWS = 640, 88, 40, 10

_Index = QModelIndex | QPersistentModelIndex


@dataclass(frozen=True)
class Entry:
    """One thing the palette can do; ``also`` is another text it is found by."""

    text: str
    icon: str
    run: Callable[[], None]
    hint: str = ""
    keys: str = ""
    also: str = ""

    def matches(self, letters: str) -> bool:
        """Say whether every word of ``letters`` is in one of the texts."""
        whole = f"{self.text} {self.hint} {self.also}".casefold()
        return all(word in whole for word in letters.casefold().split())


class _Entries(QAbstractListModel):
    def __init__(self) -> None:
        super().__init__()
        self.entries: list[Entry] = []

    def show_entries(self, entries: list[Entry]) -> None:
        self.beginResetModel()
        self.entries = entries
        self.endResetModel()

    def rowCount(self, parent: _Index | None = None) -> int:
        return 0 if parent is not None and parent.isValid() else len(self.entries)

    def data(self, index: _Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        entry = self.entries[index.row()]
        if role == Qt.ItemDataRole.UserRole:
            return entry
        if role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.AccessibleTextRole):
            return ", ".join(part for part in (entry.text, entry.hint, entry.keys) if part)
        return None


class _Delegate(QStyledItemDelegate):
    def sizeHint(self, option: QStyleOptionViewItem, index: _Index) -> QSize:
        return QSize(120, ROW)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: _Index) -> None:
        rect: QRect = option.rect
        entry: Entry = index.data(Qt.ItemDataRole.UserRole)
        chosen = bool(option.state & QStyle.StateFlag.State_Selected)
        if chosen:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(colour("selected"))
            painter.drawRoundedRect(rect.adjusted(8, 0, -8, 0), 8, 8)
        role = "accent_text" if chosen else "secondary"
        paint_icon(painter, entry.icon, role, QPoint(rect.left() + 20, rect.center().y() - 7), 16)
        _paint_texts(painter, rect.adjusted(48, 0, -20, 0), entry)


def _paint_texts(painter: QPainter, room: QRect, entry: Entry) -> None:
    middle = Qt.AlignmentFlag.AlignVCenter
    painter.setFont(ui_font("caption"))
    painter.setPen(colour("muted"))
    painter.drawText(room, middle | Qt.AlignmentFlag.AlignRight, entry.keys)
    painter.setFont(ui_font("body", 500))
    painter.setPen(colour("text"))
    text = painter.fontMetrics().elidedText(entry.text, Qt.TextElideMode.ElideRight, room.width() - 160)
    painter.drawText(room, middle, text)
    after = room.adjusted(painter.fontMetrics().horizontalAdvance(text) + 12, 0, -100, 0)
    painter.setFont(ui_font("caption"))
    painter.setPen(colour("muted"))
    painter.drawText(after, middle, entry.hint)


class CommandPalette(QWidget):
    """Covers the window with a scrim and lists what matches; the field keeps the focus."""

    def __init__(self, window: QWidget, entries: Callable[[], list[Entry]]) -> None:
        super().__init__(window)
        self._window = window
        self._entries = entries
        self._known: list[Entry] = []
        self._model = _Entries()
        self._field = QLineEdit()
        self._field.setFrame(False)
        self._field.setStyleSheet("QLineEdit { border: none; background: transparent; }")
        self._field.setProperty("text_size", "reading")
        self._found = label(size="caption", tone="muted")
        self._list = QListView()
        self._list.setModel(self._model)
        self._list.setItemDelegate(_Delegate(self._list))
        self._list.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._box = QFrame(self)
        self._box.setProperty("kind", "popup")
        self._lay_out()
        self._field.textChanged.connect(self._on_text_changed)
        self._list.clicked.connect(self._on_clicked)
        self._field.installEventFilter(self)
        window.installEventFilter(self)
        self.hide()

    def open(self) -> None:
        """Show the palette with an empty field."""
        self._field.setPlaceholderText(self.tr("Search or run"))
        self._field.setAccessibleName(self.tr("Search or run"))
        self._list.setAccessibleName(self.tr("Results"))
        self._known = self._entries()
        self._field.clear()
        self._on_text_changed("")
        self._cover()
        self.show()
        self.raise_()
        self._field.setFocus(Qt.FocusReason.PopupFocusReason)

    def close_palette(self) -> None:
        """Hide the palette."""
        self.hide()

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Paint the scrim."""
        QPainter(self).fillRect(self.rect(), Look.now().scrim())

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Close on a click beside the box."""
        if not self._box.geometry().contains(event.position().toPoint()):
            self.close_palette()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Keep the size of the window; take the keys that move and choose from the field."""
        if watched is self._window and event.type() == QEvent.Type.Resize and self.isVisible():
            self._cover()
        if watched is self._field and isinstance(event, QKeyEvent) and event.type() == QEvent.Type.KeyPress:
            return self._takes(event)
        return False

    def _takes(self, event: QKeyEvent) -> bool:
        step = {Qt.Key.Key_Down: 1, Qt.Key.Key_Up: -1}.get(Qt.Key(event.key()), 0)
        if step and self._model.rowCount():
            row = (self._list.currentIndex().row() + step) % self._model.rowCount()
            self._list.setCurrentIndex(self._model.index(row, 0))
        elif event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self._on_clicked(self._list.currentIndex())
        elif event.key() == Qt.Key.Key_Escape:
            self.close_palette()
        return bool(step) or event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Escape)

    def _lay_out(self) -> None:
        head = QHBoxLayout()
        head.setContentsMargins(20, 0, 20, 0)
        head.addWidget(self._field, 1)
        head.addWidget(self._found)
        head.addWidget(key("Esc"))
        column = QVBoxLayout(self._box)
        column.setContentsMargins(1, 11, 1, 9)
        column.setSpacing(10)
        column.addLayout(head)
        column.addWidget(hairline())
        column.addWidget(self._list)

    def _cover(self) -> None:
        window = self._window
        self.setGeometry(window.rect())
        room = max(1, min(MOST_ROWS, (window.height() - FROM_TOP - 100) // ROW))
        self._list.setFixedHeight(max(1, min(room, self._model.rowCount())) * ROW)
        self._box.setFixedWidth(min(WIDTH, window.width() - 32))
        self._box.adjustSize()
        self._box.move((window.width() - self._box.width()) // 2, FROM_TOP)

    @Slot(str)
    def _on_text_changed(self, letters: str) -> None:
        self._model.show_entries([entry for entry in self._known if entry.matches(letters)])
        self._list.setCurrentIndex(self._model.index(0, 0))
        self._found.setText(self.tr("%n result(s)", "", self._model.rowCount()))
        self._cover()

    @Slot(QModelIndex)
    def _on_clicked(self, index: QModelIndex) -> None:
        if index.isValid():
            entry = self._model.entries[index.row()]
            self.close_palette()
            entry.run()
