"""The model picker of the top bar: a pill that shows the current model, and the list it opens."""

from PySide6.QtCore import QEvent, QModelIndex, QObject, QPoint, QRect, QRectF, QSize, Qt, Signal, Slot
from PySide6.QtGui import QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QAbstractButton, QApplication, QFrame, QListView, QVBoxLayout, QWidget

from octavo.desktop.lists.models import KEY_ROLE, ROW, ModelDelegate, ModelListModel, dot_of, paint_chip
from octavo.desktop.quantities import file_size
from octavo.desktop.studio import Studio
from octavo.desktop.theme.fonts import ui_font
from octavo.desktop.theme.icons import paint_icon
from octavo.desktop.theme.look import colour
from octavo.desktop.widgets.buttons import button
from octavo.desktop.widgets.dot import paint_dot
from octavo.desktop.widgets.labels import hairline, label

LEAST_WIDTH = 352
MOST_ROWS = 8


class PickerPill(QAbstractButton):
    """Shows the current model, and how far it is loaded."""

    def __init__(self, studio: Studio, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._studio = studio
        self.setFixedHeight(32)
        self.setMinimumWidth(LEAST_WIDTH)
        self.setMouseTracking(True)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        studio.current_changed.connect(self._on_current_changed)
        self._on_current_changed()

    def sizeHint(self) -> QSize:
        """Give the width that fits common names."""
        return QSize(LEAST_WIDTH, 32)

    def changeEvent(self, event: QEvent) -> None:
        """Follow the language."""
        super().changeEvent(event)
        if event.type() == QEvent.Type.LanguageChange:
            self._on_current_changed()

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Paint edge, dot, name, chip, size and arrows; a line along the bottom while the model loads."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        edge = QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5)
        painter.setPen(QPen(colour("focus_ring" if self.hasFocus() else "control"), 1 + self.hasFocus()))
        painter.setBrush(colour("hover" if self.underMouse() else "raised"))
        painter.drawRoundedRect(edge, 8, 8)
        paint_icon(
            painter,
            "chevrons-up-down",
            "secondary",
            self.rect().center() + QPoint(self.width() // 2 - 22, -7),
            14,
        )
        paint_dot(painter, QRectF(13, 12, 8, 8), dot_of(self._studio.instance))
        right = self._paint_right(painter, self.rect().adjusted(30, 0, -32, 0))
        self._paint_name(painter, right)
        self._paint_share(painter)

    def _paint_right(self, painter: QPainter, room: QRect) -> QRect:
        entry, status = self._studio.entry, self._studio.instance
        text = file_size(entry.size_bytes) if entry is not None and entry.size_bytes else ""
        if status is not None and status.state == "loading":
            text = self.tr("Loading {share} %").format(share=round(status.share * 100))
        painter.setFont(ui_font("caption"))
        painter.setPen(colour("muted"))
        painter.drawText(room, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignRight, text)
        return room.adjusted(0, 0, -painter.fontMetrics().horizontalAdvance(text) - 8, 0)

    def _paint_name(self, painter: QPainter, room: QRect) -> None:
        entry = self._studio.entry
        painter.setFont(ui_font("body", 500))
        painter.setPen(colour("text"))
        metrics = painter.fontMetrics()
        chip_wide = metrics.horizontalAdvance(entry.quant) + 12 if entry is not None and entry.quant else 0
        whole = entry.name if entry is not None else self._nothing()
        name = metrics.elidedText(whole, Qt.TextElideMode.ElideRight, room.width() - chip_wide - 8)
        painter.drawText(room, Qt.AlignmentFlag.AlignVCenter, name)
        if entry is not None and entry.quant:
            left = room.left() + metrics.horizontalAdvance(name) + 8
            paint_chip(painter, QRect(left, 6, chip_wide, 20), entry.quant)

    def _paint_share(self, painter: QPainter) -> None:
        status = self._studio.instance
        if status is not None and status.state == "loading":
            wide = (self.width() - 16) * max(0.02, min(1.0, status.share))
            painter.fillRect(QRectF(8, self.height() - 3, wide, 2), colour("fill"))

    def _nothing(self) -> str:
        if not self._studio.is_listed:
            return self.tr("Starting…")
        return self.tr("Choose a model") if self._studio.models else self.tr("No model")

    @Slot()
    def _on_current_changed(self) -> None:
        entry = self._studio.entry
        name = entry.name if entry is not None else self._nothing()
        self.setAccessibleName(self.tr("Model: {name}").format(name=name))
        self.setToolTip(self.tr("Choose a model (Ctrl+L)"))
        self.update()


class PickerPopup(QFrame):
    """The list of models over the page; choosing one loads it."""

    file_wanted = Signal()

    def __init__(self, studio: Studio, pill: QWidget, window: QWidget) -> None:
        super().__init__(window)
        self._window = window
        self.setProperty("kind", "popup")
        self._studio = studio
        self._pill = pill
        self._model = ModelListModel(studio)
        self._title = label(size="caption", tone="muted", weight=500)
        self._list = QListView()
        self._list.setModel(self._model)
        self._list.setItemDelegate(ModelDelegate(self._list))
        self._list.setMouseTracking(True)
        self._list.setVerticalScrollMode(QListView.ScrollMode.ScrollPerPixel)
        self._add = button("text", "file-plus-2")
        column = QVBoxLayout(self)
        column.setContentsMargins(5, 9, 5, 5)
        column.setSpacing(4)
        self._title.setContentsMargins(12, 0, 0, 0)
        column.addWidget(self._title)
        column.addWidget(self._list)
        column.addWidget(hairline())
        column.addWidget(self._add, 0, Qt.AlignmentFlag.AlignLeft)
        self._list.clicked.connect(self._on_chosen)
        self._list.activated.connect(self._on_chosen)
        self._add.clicked.connect(self._on_add_wanted)
        self.hide()
        self.retranslate()

    def open(self) -> None:
        """Show the list under the pill, the current model marked."""
        shown = range(min(MOST_ROWS, self._model.rowCount()))
        self._list.setFixedHeight(max(ROW, sum(self._list.sizeHintForRow(row) for row in shown)))
        self.setFixedWidth(max(self._pill.width(), 420))
        self.adjustSize()
        self.move(self._pill.mapTo(self._window, self._pill.rect().bottomLeft()) + QPoint(0, 5))
        self._list.setCurrentIndex(self._model.index(self._model.row_of(self._studio.current), 0))
        self.show()
        self.raise_()
        self._list.setFocus(Qt.FocusReason.PopupFocusReason)
        QApplication.instance().installEventFilter(self)  # type: ignore[union-attr]

    def close_popup(self) -> None:
        """Hide the list."""
        QApplication.instance().removeEventFilter(self)  # type: ignore[union-attr]
        self.hide()

    def toggle(self) -> None:
        """Open the list, or close it."""
        if self.isVisible():
            self.close_popup()
        else:
            self.open()

    def retranslate(self) -> None:
        """Write the texts in the present language."""
        self._title.setText(self.tr("Models on this computer"))
        self._list.setAccessibleName(self.tr("Models"))
        self._add.setText(self.tr("Add a .gguf file"))

    def changeEvent(self, event: QEvent) -> None:
        """Follow the language."""
        super().changeEvent(event)
        if event.type() == QEvent.Type.LanguageChange:
            self.retranslate()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Close on Esc."""
        if event.key() == Qt.Key.Key_Escape:
            self.close_popup()
        else:
            super().keyPressEvent(event)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Close when the person clicks elsewhere."""
        if isinstance(event, QMouseEvent) and event.type() == QEvent.Type.MouseButtonPress:
            place = event.globalPosition().toPoint()
            outside = not self.rect().contains(self.mapFromGlobal(place))
            if outside and not self._pill.rect().contains(self._pill.mapFromGlobal(place)):
                self.close_popup()
        return False

    @Slot(QModelIndex)
    def _on_chosen(self, index: QModelIndex) -> None:
        key = index.data(KEY_ROLE)
        if key and index.flags() & Qt.ItemFlag.ItemIsSelectable:
            self.close_popup()
            self._studio.choose_model(key)

    @Slot()
    def _on_add_wanted(self) -> None:
        self.close_popup()
        self.file_wanted.emit()
