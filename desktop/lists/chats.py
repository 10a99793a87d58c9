"""The list of conversations: grouped by day, filtered by title, painted row by row."""

from datetime import datetime, timedelta
from typing import Any

from PySide6.QtCore import (
    QAbstractItemModel,
    QAbstractListModel,
    QCoreApplication,
    QLocale,
    QModelIndex,
    QPersistentModelIndex,
    QRect,
    QSize,
    Qt,
    Signal,
)
from PySide6.QtGui import QPainter
from PySide6.QtWidgets import QLineEdit, QStyle, QStyledItemDelegate, QStyleOptionViewItem, QWidget

from octavo.core.chats.types import ChatSummary
from octavo.desktop.theme.fonts import ui_font
from octavo.desktop.theme.look import colour

ID_ROLE = Qt.ItemDataRole.UserRole + 1
TIME_ROLE = Qt.ItemDataRole.UserRole + 2
ROW = 32

_Index = QModelIndex | QPersistentModelIndex


class ChatListModel(QAbstractListModel):
    """Rows are either a conversation or the heading of a group."""

    rename_wanted = Signal(str, str)

    def __init__(self) -> None:
        super().__init__()
        self._chats: tuple[ChatSummary, ...] = ()
        self._filter = ""
        self._hidden: set[str] = set()
        self._rows: list[ChatSummary | str] = []

    def show_chats(self, chats: tuple[ChatSummary, ...]) -> None:
        """Show these conversations, newest first."""
        self._chats = chats
        self._rebuild()

    def set_filter(self, text: str) -> None:
        """Show only conversations with ``text`` in their title."""
        self._filter = text.strip().casefold()
        self._rebuild()

    def hide(self, chat: str) -> None:
        """Leave a conversation out, as if it were deleted."""
        self._hidden.add(chat)
        self._rebuild()

    def unhide(self, chat: str) -> None:
        """Show a conversation again."""
        self._hidden.discard(chat)
        self._rebuild()

    def retranslate(self) -> None:
        """Write the headings in the present language."""
        self._rebuild()

    def index_of(self, chat: str) -> QModelIndex:
        """Give the row of a conversation; an invalid index when it isn't shown."""
        for at, row in enumerate(self._rows):
            if isinstance(row, ChatSummary) and row.id == chat:
                return self.index(at, 0)
        return QModelIndex()

    def rowCount(self, parent: _Index | None = None) -> int:
        """Count the rows, headings included."""
        return 0 if parent is not None and parent.isValid() else len(self._rows)

    def data(self, index: _Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Give what a row shows."""
        if not index.isValid() or index.row() >= len(self._rows):
            return None
        row = self._rows[index.row()]
        if isinstance(row, str):
            return row if role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.AccessibleTextRole) else None
        match role:
            case Qt.ItemDataRole.DisplayRole | Qt.ItemDataRole.EditRole | Qt.ItemDataRole.AccessibleTextRole:
                return row.title or self.tr("New chat")
            case Qt.ItemDataRole.ToolTipRole:
                return row.title
            case x if x == ID_ROLE:
                return row.id
            case x if x == TIME_ROLE:
                return _short_time(row.updated)
        return None

    def setData(self, index: _Index, value: Any, role: int = Qt.ItemDataRole.EditRole) -> bool:
        """Ask for another title."""
        title, chat = str(value).strip(), index.data(ID_ROLE)
        if not title or chat is None or title == index.data(Qt.ItemDataRole.EditRole):
            return False
        self.rename_wanted.emit(chat, title)
        return True

    def flags(self, index: _Index) -> Qt.ItemFlag:
        """Headings can't be chosen."""
        if index.data(ID_ROLE) is None:
            return Qt.ItemFlag.NoItemFlags
        return Qt.ItemFlag.ItemIsEnabled | Qt.ItemFlag.ItemIsSelectable | Qt.ItemFlag.ItemIsEditable

    def _rebuild(self) -> None:
        self.beginResetModel()
        self._rows = []
        heading = ""
        for chat in self._chats:
            if chat.id in self._hidden or self._filter not in chat.title.casefold():
                continue
            group = _group(chat.updated)
            if group != heading:
                heading = group
                self._rows.append(group)
            self._rows.append(chat)
        self.endResetModel()


class ChatDelegate(QStyledItemDelegate):
    """Paints a row: the title left, when it was changed right."""

    def sizeHint(self, option: QStyleOptionViewItem, index: _Index) -> QSize:
        """Give the height of a row; a heading has room above it."""
        return QSize(120, ROW if index.data(ID_ROLE) is not None else ROW + 4)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: _Index) -> None:
        """Paint one row."""
        rect: QRect = option.rect
        text = str(index.data(Qt.ItemDataRole.DisplayRole))
        inner = rect.adjusted(16, 0, -16, 0)
        if index.data(ID_ROLE) is None:
            painter.setFont(ui_font("caption", 500))
            painter.setPen(colour("muted"))
            painter.drawText(inner.adjusted(0, 6, 0, 0), Qt.AlignmentFlag.AlignVCenter, text)
            return
        state: QStyle.StateFlag = option.state
        is_selected = bool(state & QStyle.StateFlag.State_Selected)
        _paint_ground(painter, rect, state)
        when = "" if is_selected else str(index.data(TIME_ROLE))
        painter.setFont(ui_font("caption"))
        painter.setPen(colour("muted"))
        painter.drawText(inner, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignRight, when)
        taken = painter.fontMetrics().horizontalAdvance(when) + 8 if when else 0
        painter.setFont(ui_font("body", 500 if is_selected else 400))
        painter.setPen(colour("text"))
        room = inner.adjusted(0, 0, -taken, 0)
        shown = painter.fontMetrics().elidedText(text, Qt.TextElideMode.ElideRight, room.width())
        painter.drawText(room, Qt.AlignmentFlag.AlignVCenter | Qt.TextFlag.TextSingleLine, shown)

    def createEditor(self, parent: QWidget, option: QStyleOptionViewItem, index: _Index) -> QWidget:
        """Give the field to rename a conversation in."""
        field = QLineEdit(parent)
        field.setProperty("kind", "rename")
        field.setAccessibleName(self.tr("Chat title"))
        return field

    def setModelData(self, editor: QWidget, model: QAbstractItemModel, index: _Index) -> None:
        """Take the title over."""
        if isinstance(editor, QLineEdit):
            model.setData(index, editor.text())


def _paint_ground(painter: QPainter, rect: QRect, state: QStyle.StateFlag) -> None:
    is_selected = bool(state & QStyle.StateFlag.State_Selected)
    if not is_selected and not state & QStyle.StateFlag.State_MouseOver:
        return
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(colour("selected" if is_selected else "hover"))
    painter.drawRoundedRect(rect.adjusted(8, 0, -8, 0), 8, 8)
    painter.restore()


def _group(updated: float) -> str:
    day, today = datetime.fromtimestamp(updated).date(), datetime.now().date()
    if day >= today:
        return QCoreApplication.translate("ChatListModel", "Today")
    if day >= today - timedelta(days=7):
        return QCoreApplication.translate("ChatListModel", "Previous 7 days")
    return QCoreApplication.translate("ChatListModel", "Older")


def _short_time(updated: float) -> str:
    moment, now = datetime.fromtimestamp(updated), datetime.now()
    if moment.date() == now.date():
        return moment.strftime("%H:%M")
    if moment.date() >= now.date() - timedelta(days=7):
        return QLocale().dayName(moment.isoweekday(), QLocale.FormatType.ShortFormat)
    return QLocale().toString(moment.date(), QLocale.FormatType.ShortFormat)  # type: ignore[call-overload, no-any-return]
