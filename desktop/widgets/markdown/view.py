"""A Markdown text as a column of block widgets, of which only the last is shown again while it grows."""

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QVBoxLayout, QWidget

from octavo.desktop.widgets.markdown.blocks import Block, Code, GrowingText, Prose, Table
from octavo.desktop.widgets.markdown.code import CodeBlock
from octavo.desktop.widgets.markdown.prose import ProseView
from octavo.desktop.widgets.markdown.table import TableBlock

BlockWidget = ProseView | CodeBlock | TableBlock


class MarkdownView(QWidget):
    """Shows a text that may grow. ``shown_blocks`` counts every time a block was put on screen."""

    link_wanted = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._text = GrowingText()
        self._widgets: list[BlockWidget] = []
        self._has_caret = False
        self.shown_blocks = 0
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(8)

    @property
    def text(self) -> str:
        """Give the Markdown that is shown."""
        return self._text.text

    @property
    def block_widgets(self) -> list[BlockWidget]:
        """Give the widgets of the blocks, in order."""
        return list(self._widgets)

    def show_text(self, text: str, final: bool = True) -> None:
        """Replace the text."""
        self._text = GrowingText()
        self._text.append(text)
        self._show_from(0, final)

    def append(self, text: str) -> None:
        """Add text at the end."""
        self._show_from(self._text.append(text), final=False)

    def finish(self) -> None:
        """Take the text as complete: put right what was cut wrongly while it grew, and colour the code."""
        self._has_caret = False
        changed = self._text.finish()
        last = len(self._text.blocks) - 1
        self._show_from(max(0, min(changed, last)), final=True)

    def set_caret(self, shown: bool) -> None:
        """Show or hide the mark at the end of the text."""
        self._has_caret = shown
        self._place_caret()

    def _show_from(self, first: int, final: bool) -> None:
        blocks = self._text.blocks
        for at in range(first, len(blocks)):
            self._show(at, blocks[at], final or at < len(blocks) - 1)
        while len(self._widgets) > len(blocks):
            self._drop(self._widgets.pop())
        self._place_caret()

    def _show(self, at: int, block: Block, final: bool) -> None:
        self.shown_blocks += 1
        kind = _WIDGETS[type(block)]
        if at < len(self._widgets) and not isinstance(self._widgets[at], kind):
            self._drop(self._widgets.pop(at))
            self._add(at, block)
        elif at >= len(self._widgets):
            self._add(at, block)
        match self._widgets[at], block:
            case ProseView() as prose, Prose(html=html):
                prose.show_html(html)
            case CodeBlock() as code, Code():
                code.show_block(block, final)
            case TableBlock() as table, Table():
                table.show_block(block, final)

    def _add(self, at: int, block: Block) -> None:
        widget: BlockWidget
        if isinstance(block, Prose):
            widget = ProseView(self, keeps_caret_room=True)
            widget.link_wanted.connect(self.link_wanted)
        else:
            widget = CodeBlock(self) if isinstance(block, Code) else TableBlock(self)
        self._widgets.insert(at, widget)
        self._column.insertWidget(at, widget)

    def _drop(self, widget: BlockWidget) -> None:
        self._column.removeWidget(widget)
        widget.hide()
        widget.deleteLater()

    def _place_caret(self) -> None:
        for at, widget in enumerate(self._widgets):
            if isinstance(widget, ProseView):
                widget.set_caret(self._has_caret and at == len(self._widgets) - 1)


_WIDGETS: dict[type[Block], type[BlockWidget]] = {Prose: ProseView, Code: CodeBlock, Table: TableBlock}
