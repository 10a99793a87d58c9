"""A block of running text: selectable, as high as its content, and deaf to everything but allowed links."""

import math

from PySide6.QtCore import QEvent, QSize, Qt, QUrl, Signal, Slot
from PySide6.QtGui import QPainter, QPaintEvent, QResizeEvent, QTextCursor, QWheelEvent
from PySide6.QtWidgets import QFrame, QSizePolicy, QTextBrowser, QWidget

from octavo.desktop.theme.fonts import PIXELS, mono_css, ui_font
from octavo.desktop.theme.look import Look, colour
from octavo.desktop.widgets.markdown.blocks import is_allowed

CARET_WIDTH = 8


class ProseView(QTextBrowser):
    """Shows HTML made from Markdown. It loads nothing: no picture, no file, no page."""

    link_wanted = Signal(str)

    def __init__(self, parent: QWidget | None = None, *, keeps_caret_room: bool = False) -> None:
        super().__init__(parent)
        self._html = ""
        self._caret_room = CARET_WIDTH + 2 if keeps_caret_room else 0
        self._has_caret = False
        self.refused: list[str] = []
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setOpenLinks(False)
        self.setUndoRedoEnabled(False)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self.viewport().setAutoFillBackground(False)
        self.document().setDocumentMargin(0)
        self.setProperty("text_size", "reading")
        self.document().setDefaultFont(ui_font("reading"))
        self.setAccessibleName(self.tr("Message text"))
        self.anchorClicked.connect(self._on_anchor_clicked)

    def show_html(self, html: str) -> None:
        """Replace the text."""
        self._html = html
        self.document().setDefaultStyleSheet(_css())
        self.setHtml(html)
        self._fit()

    def set_caret(self, shown: bool) -> None:
        """Show or hide the block that marks where the text grows."""
        if shown != self._has_caret:
            self._has_caret = shown
            self.viewport().update()

    def loadResource(self, kind: int, name: QUrl | str) -> object:
        """Refuse: whatever a text names is neither fetched nor read."""
        self.refused.append(name.toString() if isinstance(name, QUrl) else name)
        return None

    def sizeHint(self) -> QSize:
        """Give the height of the text at the present width."""
        return QSize(self.width(), self.height())

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Lay the text out for the new width."""
        super().resizeEvent(event)
        if event.size().width() != event.oldSize().width():
            self._fit()

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Leave scrolling to the conversation."""
        event.ignore()

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint the text, and the caret behind its end."""
        super().paintEvent(event)
        if self._has_caret:
            cursor = QTextCursor(self.document())
            cursor.movePosition(QTextCursor.MoveOperation.End)
            place = self.cursorRect(cursor)
            painter = QPainter(self.viewport())
            middle = place.center().y()
            painter.fillRect(place.left() + 2, middle - 8, CARET_WIDTH, 16, colour("fill"))

    def changeEvent(self, event: QEvent) -> None:
        """Colour the text anew for another theme."""
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange and self._html:
            self.show_html(self._html)
        elif event.type() == QEvent.Type.LanguageChange:
            self.setAccessibleName(self.tr("Message text"))

    def _fit(self) -> None:
        width = self.viewport().width() - self._caret_room
        if width > 0:
            self.document().setTextWidth(width)
            self.setFixedHeight(math.ceil(self.document().size().height()))

    @Slot(QUrl)
    def _on_anchor_clicked(self, address: QUrl) -> None:
        if is_allowed(address.toString()):
            self.link_wanted.emit(address.toString())


def _css() -> str:
    theme = Look.now()
    return f"""
body, p, li {{ color: {theme.hex("text")}; line-height: 24px; }}
p {{ margin: 0 0 8px 0; }}
li {{ margin: 0 0 4px 0; }}
h1, h2 {{ font-size: {PIXELS["title"]}px; font-weight: 600; line-height: 28px; margin: 8px 0 8px 0; }}
h3, h4, h5, h6 {{ font-size: {PIXELS["reading"]}px; font-weight: 600; line-height: 24px;
  margin: 8px 0 4px 0; }}
ul, ol {{ margin: 0 0 4px 0; }}
a {{ color: {theme.hex("accent_text")}; text-decoration: none; }}
em {{ font-style: italic; }}
blockquote {{ margin: 0 0 8px 16px; }}
blockquote p {{ color: {theme.hex("secondary")}; }}
pre {{ font-family: {mono_css()}; font-size: {PIXELS["code"]}px; background-color: {theme.hex("bg")}; }}
.code {{ font-family: {mono_css()}; font-size: {PIXELS["code"]}px; background-color: {theme.hex("hover")}; }}
.muted {{ color: {theme.hex("muted")}; }}"""
