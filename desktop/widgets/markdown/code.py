"""A code block: language, copy button, and the code in colour."""

from PySide6.QtCore import QEvent, QPoint, Qt, Slot
from PySide6.QtGui import QGuiApplication, QTextBlockFormat, QTextCursor, QWheelEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QTextEdit, QVBoxLayout, QWidget

from octavo.desktop.theme.fonts import mono_font
from octavo.desktop.widgets.buttons import button
from octavo.desktop.widgets.labels import label
from octavo.desktop.widgets.markdown.blocks import Code
from octavo.desktop.widgets.markdown.highlight import CodeHighlighter

LINE = 20
PADDING = 8


class CodeText(QTextEdit):
    """The code itself: read only, not wrapped, as high as its lines."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setReadOnly(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setLineWrapMode(QTextEdit.LineWrapMode.NoWrap)
        self.setUndoRedoEnabled(False)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.viewport().setAutoFillBackground(False)
        self.setProperty("text_size", "code")
        self.document().setDefaultFont(mono_font())
        self.document().setDocumentMargin(PADDING)
        self.shown = ""

    def show_text(self, text: str) -> None:
        """Show the code; where it only grew, the new part is added at the end."""
        cursor = QTextCursor(self.document())
        if text.startswith(self.shown) and self.shown:
            cursor.movePosition(QTextCursor.MoveOperation.End)
            cursor.insertText(text[len(self.shown) :])
        else:
            cursor.select(QTextCursor.SelectionType.Document)
            cursor.setBlockFormat(_line_format())
            cursor.insertText(text)
        self.shown = text
        self.fit()

    def fit(self) -> None:
        """Take the height of all lines, and of the scroll bar where one line is too long."""
        height = self.document().blockCount() * LINE + 2 * PADDING
        too_wide = self.document().idealWidth() > self.viewport().width() > 0
        self.setFixedHeight(height + (self.horizontalScrollBar().sizeHint().height() if too_wide else 0))

    def resizeEvent(self, event: object) -> None:
        """Make room for the scroll bar, or take it back."""
        super().resizeEvent(event)  # type: ignore[arg-type]
        self.fit()

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Scroll sideways only; up and down belongs to the conversation."""
        if event.angleDelta() == QPoint() or event.angleDelta().x() == 0:
            event.ignore()
        else:
            super().wheelEvent(event)


class CodeBlock(QFrame):
    """A code block with a header row."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("kind", "code")
        self._language: QLabel = label(size="caption", tone="muted")
        self._copy = button("small", "copy", self)
        self._copy.clicked.connect(self._on_copy_clicked)
        self._code = CodeText(self)
        self._highlighter = CodeHighlighter(self._code.document())
        header = QHBoxLayout()
        header.setContentsMargins(12, 1, 4, 1)
        header.addWidget(self._language, 1)
        header.addWidget(self._copy)
        line = QFrame(self)
        line.setProperty("kind", "hairline")
        line.setFixedHeight(1)
        column = QVBoxLayout(self)
        column.setContentsMargins(1, 1, 1, 1)
        column.setSpacing(0)
        column.addLayout(header)
        column.addWidget(line)
        body = QHBoxLayout()
        body.setContentsMargins(4, 0, 4, 0)
        body.addWidget(self._code)
        column.addLayout(body)
        self.retranslate()

    @property
    def text(self) -> str:
        """Give the code that is shown."""
        return self._code.shown

    def show_block(self, block: Code, final: bool = True) -> None:
        """Show a block; ``final`` says that it won't grow any more."""
        self._language.setText(block.language)
        self._highlighter.set_language(block.language)
        self._code.show_text(block.text)
        self._highlighter.read(block.text, final)

    def retranslate(self) -> None:
        """Write the texts in the present language."""
        self._copy.setText(self.tr("Copy"))
        self._copy.setAccessibleName(self.tr("Copy the code"))
        self._code.setAccessibleName(self.tr("Code"))

    def changeEvent(self, event: QEvent) -> None:
        """Follow the language and the theme."""
        super().changeEvent(event)
        if event.type() == QEvent.Type.LanguageChange:
            self.retranslate()
        elif event.type() == QEvent.Type.PaletteChange and hasattr(self, "_highlighter"):
            self._highlighter.rehighlight()

    @Slot()
    def _on_copy_clicked(self) -> None:
        QGuiApplication.clipboard().setText(self._code.shown)
        self._copy.setText(self.tr("Copied"))


def _line_format() -> QTextBlockFormat:
    form = QTextBlockFormat()
    form.setLineHeight(LINE, QTextBlockFormat.LineHeightTypes.FixedHeight.value)
    return form
