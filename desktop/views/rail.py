"""The navigation rail: one button a page."""

from PySide6.QtCore import QEvent, QRectF, QSize, Qt, Signal, Slot
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QAbstractButton, QButtonGroup, QFrame, QVBoxLayout, QWidget

from octavo.desktop.theme.icons import paint_icon
from octavo.desktop.theme.look import colour
from octavo.desktop.widgets.buttons import IconButton

WIDTH, ITEM, LOGO = 56, 40, 28


class Logo(QWidget):
    """Octavo's mark."""

    def sizeHint(self) -> QSize:
        """Give the size of the mark."""
        return QSize(LOGO, LOGO)

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Paint the mark in the accent colour."""
        paint_icon(QPainter(self), "octavo", "fill", self.rect().topLeft(), LOGO)


class Rail(QFrame):
    """Shows which page is open and asks for others."""

    page_wanted = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("line", "right")
        self.setFixedWidth(WIDTH)
        self._pages = {"chat": _page_button("message-square"), "settings": _page_button("settings")}
        self._group = QButtonGroup(self)
        column = QVBoxLayout(self)
        column.setContentsMargins(8, 10, 7, 12)
        column.setSpacing(8)
        logo = Logo()
        logo.setFixedSize(LOGO, LOGO)
        column.addWidget(logo, 0, Qt.AlignmentFlag.AlignHCenter)
        column.addSpacing(10)
        column.addWidget(self._pages["chat"])
        column.addStretch(1)
        column.addWidget(self._pages["settings"])
        for made in self._pages.values():
            self._group.addButton(made)
        self._group.buttonClicked.connect(self._on_button_clicked)
        self.retranslate()

    def show_page(self, page: str) -> None:
        """Mark a page as the open one."""
        self._pages[page].setChecked(True)
        self.update()

    def retranslate(self) -> None:
        """Write the texts in the present language."""
        self._pages["chat"].describe(self.tr("Chat"), "Ctrl+1")
        self._pages["settings"].describe(self.tr("Settings"), "Ctrl+,")

    def changeEvent(self, event: QEvent) -> None:
        """Follow the language."""
        super().changeEvent(event)
        if event.type() == QEvent.Type.LanguageChange:
            self.retranslate()

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint the accent line beside the open page's button."""
        super().paintEvent(event)
        open_page = self._group.checkedButton()
        if open_page is not None:
            painter = QPainter(self)
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(colour("fill"))
            place = open_page.geometry()
            painter.drawRoundedRect(QRectF(-2, place.top() + 8, 5, place.height() - 16), 2, 2)

    @Slot(QAbstractButton)
    def _on_button_clicked(self, clicked: QAbstractButton) -> None:
        self.page_wanted.emit(next(name for name, made in self._pages.items() if made is clicked))


def _page_button(name: str) -> IconButton:
    made = IconButton(name, side=ITEM, drawing=20, role="muted")
    made.setCheckable(True)
    return made
