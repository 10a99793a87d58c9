"""The list of models in the picker: name, quant, size and state, one row each."""

from typing import Any

from PySide6.QtCore import (
    QAbstractListModel,
    QCoreApplication,
    QModelIndex,
    QPersistentModelIndex,
    QRect,
    QRectF,
    QSize,
    Qt,
)
from PySide6.QtGui import QPainter
from PySide6.QtWidgets import QStyle, QStyledItemDelegate, QStyleOptionViewItem

from octavo.core.events import InstanceStatus
from octavo.desktop.quantities import file_size
from octavo.desktop.studio import Studio
from octavo.desktop.theme.fonts import ui_font
from octavo.desktop.theme.look import colour
from octavo.desktop.values import ModelEntry
from octavo.desktop.widgets.dot import State, paint_dot

ROW, BROKEN_ROW = 40, 48
KEY_ROLE = Qt.ItemDataRole.UserRole + 1
ENTRY_ROLE = Qt.ItemDataRole.UserRole + 2
STATUS_ROLE = Qt.ItemDataRole.UserRole + 3

_Index = QModelIndex | QPersistentModelIndex


def dot_of(status: InstanceStatus | None) -> State:
    """Give the dot for a model's state."""
    if status is None:
        return "hollow"
    return {"ready": "good", "loading": "warn", "unloading": "hollow", "crashed": "bad"}[status.state]  # type: ignore[return-value]


def state_text(entry: ModelEntry, status: InstanceStatus | None) -> str:
    """Say a model's state in words."""
    translate = QCoreApplication.translate
    if entry.fault:
        return translate("ModelListModel", "can't be used")
    if status is None:
        return ""
    if status.state == "loading":
        return translate("ModelListModel", "loading {share} %").format(share=round(status.share * 100))
    if status.state == "ready":
        return translate("ModelListModel", "in memory")
    return translate("ModelListModel", "crashed") if status.state == "crashed" else ""


class ModelListModel(QAbstractListModel):
    """The library, with what is loaded of it."""

    def __init__(self, studio: Studio) -> None:
        super().__init__()
        self._studio = studio
        self._entries: tuple[ModelEntry, ...] = ()
        studio.models_changed.connect(self.refresh)
        self.refresh()

    def refresh(self) -> None:
        """Take the library over, or only the states where the library is the same."""
        if self._entries == self._studio.models:
            if self._entries:
                self.dataChanged.emit(self.index(0, 0), self.index(len(self._entries) - 1, 0))
            return
        self.beginResetModel()
        self._entries = self._studio.models
        self.endResetModel()

    def row_of(self, key: str) -> int:
        """Give the row of a model, 0 when it isn't there."""
        return next((row for row, entry in enumerate(self._entries) if entry.key == key), 0)

    def rowCount(self, parent: _Index | None = None) -> int:
        """Count the models."""
        return 0 if parent is not None and parent.isValid() else len(self._entries)

    def data(self, index: _Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Give what a row shows."""
        if not index.isValid() or index.row() >= len(self._entries):
            return None
        entry = self._entries[index.row()]
        status = self._studio.instance_of(entry.key)
        match role:
            case Qt.ItemDataRole.DisplayRole:
                return entry.file if entry.fault else entry.name
            case Qt.ItemDataRole.AccessibleTextRole:
                return _spoken(entry, status)
            case Qt.ItemDataRole.ToolTipRole:
                return f"{entry.path}\n{entry.reason}" if entry.fault else entry.key
            case x if x == KEY_ROLE:
                return entry.key
            case x if x == ENTRY_ROLE:
                return entry
            case x if x == STATUS_ROLE:
                return status
        return None

    def flags(self, index: _Index) -> Qt.ItemFlag:
        """A model that can't be used can't be chosen."""
        entry = index.data(ENTRY_ROLE)
        usable = entry is not None and not entry.fault
        return Qt.ItemFlag.ItemIsEnabled | Qt.ItemFlag.ItemIsSelectable if usable else Qt.ItemFlag.NoItemFlags


class ModelDelegate(QStyledItemDelegate):
    """Paints a model's row."""

    def sizeHint(self, option: QStyleOptionViewItem, index: _Index) -> QSize:
        """Give the height of a row; a file that can't be used has two lines."""
        return QSize(200, BROKEN_ROW if index.data(ENTRY_ROLE).fault else ROW)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: _Index) -> None:
        """Paint one row: dot, name and quant left, state and size right."""
        rect: QRect = option.rect
        entry, status = index.data(ENTRY_ROLE), index.data(STATUS_ROLE)
        _paint_ground(painter, rect, option.state)
        inner = rect.adjusted(12, 0, -12, 0)
        paint_dot(painter, QRectF(inner.left(), inner.center().y() - 3.5, 8, 8), dot_of(status))
        size = file_size(entry.size_bytes) if entry.size_bytes else ""
        right = _paint_right(painter, inner, size, "muted", 72)
        if entry.fault:
            _paint_broken(painter, right.adjusted(20, 4, -8, -4), entry)
        else:
            right = _paint_right(painter, right, state_text(entry, status), "secondary", 0)
            _paint_name(painter, right.adjusted(20, 0, -8, 0), entry)


def _spoken(entry: ModelEntry, status: InstanceStatus | None) -> str:
    name = entry.file if entry.fault else entry.name
    parts = (name, entry.quant, file_size(entry.size_bytes), state_text(entry, status), entry.reason)
    return ", ".join(part for part in parts if part)


def _paint_ground(painter: QPainter, rect: QRect, state: QStyle.StateFlag) -> None:
    is_selected = bool(state & QStyle.StateFlag.State_Selected)
    if is_selected or state & QStyle.StateFlag.State_MouseOver:
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(colour("selected" if is_selected else "hover"))
        painter.drawRoundedRect(rect.adjusted(4, 1, -4, -1), 8, 8)
        painter.restore()


def _paint_right(painter: QPainter, room: QRect, text: str, role: str, least: int) -> QRect:
    painter.setFont(ui_font("caption"))
    painter.setPen(colour(role))
    painter.drawText(room, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignRight, text)
    taken = max(least, painter.fontMetrics().horizontalAdvance(text) + 8) if text or least else 0
    return room.adjusted(0, 0, -taken, 0)


def _paint_name(painter: QPainter, room: QRect, entry: ModelEntry) -> None:
    painter.setFont(ui_font("body", 500))
    painter.setPen(colour("text"))
    metrics = painter.fontMetrics()
    chip_wide = metrics.horizontalAdvance(entry.quant) + 12 if entry.quant else 0
    name = metrics.elidedText(entry.name, Qt.TextElideMode.ElideRight, room.width() - chip_wide - 8)
    painter.drawText(room, Qt.AlignmentFlag.AlignVCenter | Qt.TextFlag.TextSingleLine, name)
    if entry.quant:
        left = room.left() + metrics.horizontalAdvance(name) + 8
        paint_chip(painter, QRect(left, room.center().y() - 9, chip_wide, 20), entry.quant)


def _paint_broken(painter: QPainter, room: QRect, entry: ModelEntry) -> None:
    """Paint the file's name and, under it, why it can't be used."""
    half = room.height() // 2
    lines = ((entry.file, ui_font("body", 500), "muted", 0), (entry.reason, ui_font("caption"), "bad", half))
    for text, font, role, down in lines:
        painter.setFont(font)
        painter.setPen(colour(role))
        line = QRect(room.left(), room.top() + down, room.width(), half)
        shown = painter.fontMetrics().elidedText(text, Qt.TextElideMode.ElideRight, line.width())
        painter.drawText(line, Qt.AlignmentFlag.AlignVCenter | Qt.TextFlag.TextSingleLine, shown)


def paint_chip(painter: QPainter, place: QRect, text: str) -> None:
    """Paint a small label with a ground of its own."""
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(colour("hover"))
    painter.drawRoundedRect(place, 4, 4)
    painter.setFont(ui_font("caption", 500))
    painter.setPen(colour("secondary"))
    painter.drawText(place, Qt.AlignmentFlag.AlignCenter, text)
    painter.restore()
