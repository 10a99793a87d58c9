"""The left side of the chat page: search, new chat, and the list of conversations."""

from PySide6.QtCore import QEvent, QModelIndex, QPoint, Qt, Signal, Slot
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QHBoxLayout, QLineEdit, QListView, QMenu, QVBoxLayout, QWidget

from octavo.core.chats.types import ChatSummary
from octavo.desktop.lists.chats import ID_ROLE, ChatDelegate, ChatListModel
from octavo.desktop.theme.icons import icon
from octavo.desktop.widgets.buttons import edged_button


class _List(QListView):
    """The list itself: F2 renames, Delete deletes."""

    delete_wanted = Signal()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Delete:
            self.delete_wanted.emit()
        else:
            super().keyPressEvent(event)


class ChatList(QWidget):
    """Shows all conversations and says which one the person wants."""

    open_wanted = Signal(str)
    new_wanted = Signal()
    rename_wanted = Signal(str, str)
    delete_wanted = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("ground", "bg")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self._current = ""
        self.model = ChatListModel()
        self._search = QLineEdit()
        self._search.setProperty("kind", "search")
        self._search.setClearButtonEnabled(True)
        self._search_icon = self._search.addAction(
            icon("search", "muted"), QLineEdit.ActionPosition.LeadingPosition
        )
        self._new = edged_button("square-pen")
        self._list = _List()
        self._list.setModel(self.model)
        self._list.setItemDelegate(ChatDelegate(self._list))
        self._list.setMouseTracking(True)
        self._list.setEditTriggers(QListView.EditTrigger.EditKeyPressed)
        self._list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._list.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self._lay_out()
        self._connect()
        self.retranslate()

    def show_chats(self, chats: tuple[ChatSummary, ...]) -> None:
        """Show these conversations."""
        self.model.show_chats(chats)
        self._select_current()

    def set_current(self, chat: str) -> None:
        """Mark the open conversation; none for a new one."""
        self._current = chat
        self._select_current()

    def retranslate(self) -> None:
        """Write the texts in the present language."""
        self._search.setPlaceholderText(self.tr("Search chats"))
        self._search.setAccessibleName(self.tr("Search chats"))
        self._new.describe(self.tr("New chat"), "Ctrl+N")
        self._list.setAccessibleName(self.tr("Chats"))
        self.model.retranslate()
        self._select_current()

    def changeEvent(self, event: QEvent) -> None:
        """Follow the language."""
        super().changeEvent(event)
        if event.type() == QEvent.Type.LanguageChange:
            self.retranslate()

    def _lay_out(self) -> None:
        head = QHBoxLayout()
        head.setContentsMargins(12, 12, 12, 8)
        head.setSpacing(8)
        head.addWidget(self._search, 1)
        head.addWidget(self._new)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addLayout(head)
        column.addWidget(self._list, 1)

    def _connect(self) -> None:
        self._search.textChanged.connect(self._on_filter_changed)
        self._new.clicked.connect(self.new_wanted)
        self._list.clicked.connect(self._on_row_activated)
        self._list.activated.connect(self._on_row_activated)
        self._list.delete_wanted.connect(self._on_delete_wanted)
        self._list.customContextMenuRequested.connect(self._on_menu_wanted)
        self.model.rename_wanted.connect(self.rename_wanted)

    def _select_current(self) -> None:
        index = self.model.index_of(self._current)
        if index.isValid():
            self._list.setCurrentIndex(index)
        else:
            self._list.clearSelection()

    @Slot(str)
    def _on_filter_changed(self, text: str) -> None:
        self.model.set_filter(text)
        self._select_current()

    @Slot(QModelIndex)
    def _on_row_activated(self, index: QModelIndex) -> None:
        chat = index.data(ID_ROLE)
        if chat and chat != self._current:
            self.open_wanted.emit(chat)

    @Slot()
    def _on_delete_wanted(self) -> None:
        chat = self._list.currentIndex().data(ID_ROLE)
        if chat:
            self.delete_wanted.emit(chat)

    @Slot(QPoint)
    def _on_menu_wanted(self, place: QPoint) -> None:
        index = self._list.indexAt(place)
        chat = index.data(ID_ROLE)
        if chat is None:
            return
        menu = QMenu(self)
        rename = menu.addAction(icon("pencil"), self.tr("Rename"))
        delete = menu.addAction(icon("trash-2"), self.tr("Delete"))
        chosen = menu.exec(self._list.viewport().mapToGlobal(place))
        if chosen is rename:
            self._list.edit(index)
        elif chosen is delete:
            self.delete_wanted.emit(chat)
