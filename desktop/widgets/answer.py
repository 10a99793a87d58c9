"""An answer in the conversation: Markdown without a box, and one line under it of fixed height."""

import time

from PySide6.QtCore import QEvent, Signal, Slot
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QHBoxLayout, QStackedWidget, QVBoxLayout, QWidget

from octavo.core.chats.types import ChatMessage, MessageStats
from octavo.core.errors import ErrorReport
from octavo.desktop.quantities import count, one_decimal, seconds
from octavo.desktop.widgets.buttons import caption_button
from octavo.desktop.widgets.error_panel import ErrorPanel
from octavo.desktop.widgets.labels import elided_label, label
from octavo.desktop.widgets.markdown.view import MarkdownView

LINE_HEIGHT = 24


class WritingLine(QWidget):
    """What is being done for an answer that isn't finished: loading, reading or writing, with the figures."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._stage = label(size="caption", tone="secondary", weight=500)
        self._figures = label(size="caption", tone="muted")
        self._keys = label(size="caption", tone="muted")
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(8)
        row.addWidget(self._stage)
        row.addWidget(self._figures, 1)
        row.addWidget(self._keys)

    def show_waiting(self) -> None:
        """Say that the question went out."""
        self._say(self.tr("Waiting for the model"), "")

    def show_loading(self, share: float) -> None:
        """Say how far the model is loaded."""
        if share >= 1:  # the model is there, and the first piece of the prompt isn't read yet
            self._say(self.tr("Reading prompt…"), "")
        else:
            self._say(self.tr("Loading model {share} %").format(share=int(share * 100)), "")

    def show_reading(self, done: int, total: int) -> None:
        """Say how much of the prompt is read."""
        figures = self.tr("{done}/{total} tokens").format(done=count(done), total=count(total))
        self._say(self.tr("Reading prompt"), figures)

    def show_writing(self, tokens: int, tokens_per_s: float) -> None:
        """Say how fast the answer is written."""
        figures = self.tr("{speed} tok/s · {tokens} tokens").format(
            speed=one_decimal(tokens_per_s), tokens=count(tokens)
        )
        self._say(self.tr("Writing"), figures)

    def show_interrupted(self) -> None:
        """Say that the service went away."""
        self._say(self.tr("Connection lost, joining again"), "")

    def _say(self, stage: str, figures: str) -> None:
        self._stage.setText(stage)
        self._figures.setText(figures)
        self._keys.setText(self.tr("Esc stops"))


class CaptionLine(QWidget):
    """What can be done with a finished answer, and what it took."""

    copy_wanted = Signal()
    again_wanted = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._message: ChatMessage | None = None
        self._copy = caption_button("copy")
        self._again = caption_button("refresh-cw")
        self._facts = elided_label(size="caption", tone="muted")
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(0)
        row.addWidget(self._copy)
        row.addWidget(self._again)
        row.addStretch(1)
        row.addWidget(self._facts)
        self._copy.clicked.connect(self.copy_wanted)
        self._again.clicked.connect(self.again_wanted)

    def show_message(self, message: ChatMessage) -> None:
        """Show the facts of an answer."""
        self._message = message
        self.retranslate()

    def allow_again(self, allowed: bool) -> None:
        """Show or hide the button that has the answer written again."""
        self._again.setVisible(allowed)

    def retranslate(self) -> None:
        """Write the texts in the present language."""
        self._copy.describe(self.tr("Copy the answer"))
        self._again.describe(self.tr("Answer again"))
        if self._message is not None:
            self._facts.show_text(self._written_facts(self._message))

    def changeEvent(self, event: QEvent) -> None:
        """Follow the language."""
        super().changeEvent(event)
        if event.type() == QEvent.Type.LanguageChange:
            self.retranslate()

    def _written_facts(self, message: ChatMessage) -> str:
        stopped = [self.tr("Stopped")] if message.state == "cancelled" else []
        if message.stats is None:
            return "".join(stopped)
        stats = message.stats
        cut = [self.tr("Cut at the length limit")] if stats.stop_reason == "length" else []
        speed = self.tr("{speed} tok/s").format(speed=one_decimal(stats.tokens_per_s))
        tokens = self.tr("{tokens} tokens").format(tokens=count(stats.completion_tokens))
        return " · ".join([*stopped, *cut, speed, tokens, self._first_token(stats)])

    def _first_token(self, stats: MessageStats) -> str:
        parts = [self.tr("queue {seconds}").format(seconds=seconds(stats.queue_s))]
        if stats.load_s >= 0.05:
            parts.append(self.tr("load {seconds}").format(seconds=seconds(stats.load_s)))
        parts.append(self.tr("prefill {seconds}").format(seconds=seconds(stats.prefill_s)))
        return self.tr("first token {seconds} s = {parts}").format(
            seconds=seconds(stats.first_token_s), parts=" + ".join(parts)
        )


class AnswerView(QWidget):
    """One answer, while it is written and after."""

    again_wanted = Signal()
    link_wanted = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.markdown = MarkdownView()
        self.writing = WritingLine()
        self.caption = CaptionLine()
        self._error: ErrorPanel | None = None
        self._first_text_at = 0.0
        self._first_tokens = 0
        self._foot = QStackedWidget()
        self._foot.addWidget(self.writing)
        self._foot.addWidget(self.caption)
        self._foot.setFixedHeight(LINE_HEIGHT)
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(8)
        self._column.addWidget(self.markdown)
        self._column.addWidget(self._foot)
        self.markdown.link_wanted.connect(self.link_wanted)
        self.caption.copy_wanted.connect(self._on_copy_wanted)
        self.caption.again_wanted.connect(self.again_wanted)

    @property
    def text(self) -> str:
        """Give the Markdown of the answer."""
        return self.markdown.text

    def begin(self, text: str = "") -> None:
        """Show an answer that is going to be written, with what there is of it."""
        self._first_text_at = 0.0
        self._remove_error()
        self.markdown.show_text(text, final=False)
        self.markdown.setVisible(bool(text))
        self._foot.setCurrentWidget(self.writing)
        self.writing.show_waiting()

    def append(self, text: str, tokens: int) -> None:
        """Add text as it comes."""
        now = time.monotonic()
        if not self._first_text_at:
            self._first_text_at, self._first_tokens = now, tokens
        self.markdown.show()
        self.markdown.append(text)
        self.markdown.set_caret(True)
        spent = now - self._first_text_at
        speed = (tokens - self._first_tokens) / spent if spent > 0.2 else 0.0
        self.writing.show_writing(tokens, speed)

    def end(self, message: ChatMessage, is_last: bool = True) -> None:
        """Show a finished answer, or what there is of one that was stopped or failed."""
        if self.markdown.text != message.content:
            self.markdown.show_text(message.content)
        self.markdown.finish()
        self.markdown.set_caret(False)
        self.markdown.setVisible(bool(message.content))
        self.caption.show_message(message)
        self._foot.setCurrentWidget(self.caption)
        if message.error is not None:
            self.show_error(message.error)
        self.allow_again(is_last)

    def allow_again(self, allowed: bool) -> None:
        """Offer to write the answer again, which only the last one can be, or don't."""
        self.caption.allow_again(allowed)
        if self._error is not None:
            self._error.allow_retry(allowed)

    def show_error(self, error: ErrorReport) -> None:
        """Put an error under the text."""
        if self._error is None:
            self._error = ErrorPanel()
            self._error.retry_wanted.connect(self.again_wanted)
            self._column.insertWidget(1, self._error)
        broke_off = self.tr("The answer broke off") if self.text else ""
        self._error.show_report(error, broke_off or self.tr("The answer could not be written"))
        self.markdown.set_caret(False)

    def _remove_error(self) -> None:
        if self._error is not None:
            self._column.removeWidget(self._error)
            self._error.deleteLater()
            self._error = None

    @Slot()
    def _on_copy_wanted(self) -> None:
        QGuiApplication.clipboard().setText(self.text)
