"""The conversation: a column of questions and answers that follows its end while the person is there."""

from PySide6.QtCore import QEvent, QPoint, Qt, QUrl, Signal, Slot
from PySide6.QtGui import QDesktopServices, QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QMessageBox, QScrollArea, QVBoxLayout, QWidget

from octavo.core.chats.types import (
    ChatMessage,
    ReplyEnded,
    ReplyEvent,
    ReplyLoading,
    ReplyReading,
    ReplySnapshot,
    ReplyText,
)
from octavo.core.errors import ErrorReport
from octavo.desktop.widgets.answer import AnswerView
from octavo.desktop.widgets.buttons import button
from octavo.desktop.widgets.markdown.blocks import host_of
from octavo.desktop.widgets.question import QuestionView

MEASURE = 720
MARGIN = 32
BUILT_AT_ONCE = 30
NEAR_END = 8


class Conversation(QScrollArea):
    """Shows messages; the last thirty are built at once, older ones when they are asked for."""

    again_wanted = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._body = QWidget()
        self._older: list[ChatMessage] = []
        self._answer: AnswerView | None = None
        self._last_answer: AnswerView | None = None
        self._follows = True
        self._earlier = button("text")
        self._earlier.clicked.connect(self._on_earlier_wanted)
        self._pill = button("pill", "arrow-down", self)
        self._pill.clicked.connect(self.go_to_end)
        self._pill.hide()
        self._lay_out()
        bar = self.verticalScrollBar()
        bar.rangeChanged.connect(self._on_range_changed)
        bar.valueChanged.connect(self._on_value_changed)
        self.retranslate()

    @property
    def last_answer(self) -> AnswerView | None:
        """Give the view of the newest answer."""
        return self._last_answer

    # ---- what is shown

    def show_messages(self, messages: list[ChatMessage], has_reply: bool) -> None:
        """Show a conversation from its end; with ``has_reply`` its last answer is still being written."""
        self.clear()
        turns = [message for message in messages if message.role != "system"]
        self._older = turns[:-BUILT_AT_ONCE]
        for message in turns[-BUILT_AT_ONCE:]:
            self._messages.addWidget(self._built(message))
        self._earlier.setVisible(bool(self._older))
        if self._last_answer is not None:
            self._last_answer.allow_again(True)
        if has_reply and self._last_answer is not None and turns and turns[-1].role == "assistant":
            self._answer = self._last_answer
        self._follows = True
        self.go_to_end()

    def clear(self) -> None:
        """Show nothing."""
        self._older, self._answer, self._last_answer = [], None, None
        while (item := self._messages.takeAt(0)) is not None:
            if (widget := item.widget()) is not None:
                widget.hide()
                widget.deleteLater()
        self._earlier.hide()
        self._pill.hide()

    def add_question(self, text: str) -> None:
        """Show a question that was just put."""
        self._messages.addWidget(QuestionView(text))
        self._follows = True

    def begin_answer(self) -> None:
        """Make room for an answer; when the last one is written again, its place is used."""
        last = self._messages.itemAt(self._messages.count() - 1)
        at_end = last.widget() if last is not None else None
        if self._last_answer is not None:
            self._last_answer.allow_again(False)
        self._answer = at_end if isinstance(at_end, AnswerView) else self._new_answer()
        if self._answer is not at_end:
            self._messages.addWidget(self._answer)
        self._last_answer = self._answer
        self._answer.begin()

    def follow(self, event: ReplyEvent) -> None:
        """Show what happened to the answer."""
        if self._answer is None:
            self.begin_answer()
        answer = self._answer
        assert answer is not None
        match event:
            case ReplySnapshot(text=text):
                answer.begin(text)
            case ReplyLoading(share=share):
                answer.writing.show_loading(share)
            case ReplyReading(done=done, total=total):
                answer.writing.show_reading(done, total)
            case ReplyText(text=text, tokens=tokens):
                answer.append(text, tokens)
                self._pill.setVisible(not self._follows)
            case ReplyEnded(message=message):
                answer.end(message)
                self._answer = None

    def interrupt(self) -> None:
        """Say that the answer will be joined again."""
        if self._answer is not None:
            self._answer.writing.show_interrupted()

    def show_error(self, error: ErrorReport) -> None:
        """Show that a question could not be put, in its place."""
        if self._answer is None:
            self.begin_answer()
        if self._answer is not None:
            message = ChatMessage(
                id="", role="assistant", content=self._answer.text, created=0.0, error=error
            )
            self._answer.end(message)
            self._answer = None

    def order_tabs(self) -> None:
        """Let Tab go through what is shown from top to bottom; Qt would put it last, by its age."""
        before: QWidget = self
        for control in self._controls():
            QWidget.setTabOrder(before, control)
            before = control

    @Slot()
    def go_to_end(self) -> None:
        """Scroll to the newest text and stay there."""
        self._follows = True
        self._pill.hide()
        self.verticalScrollBar().setValue(self.verticalScrollBar().maximum())

    # ---- Qt's

    def retranslate(self) -> None:
        """Write the texts in the present language."""
        self._earlier.setText(self.tr("Show earlier messages"))
        self._pill.setText(self.tr("New text"))
        self.setAccessibleName(self.tr("Conversation"))
        self._place_pill()

    def changeEvent(self, event: QEvent) -> None:
        """Follow the language."""
        super().changeEvent(event)
        if event.type() == QEvent.Type.LanguageChange:
            self.retranslate()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Keep the pill in its place."""
        super().resizeEvent(event)
        self._place_pill()

    # ---- inside

    def _lay_out(self) -> None:
        column = QWidget()
        column.setMaximumWidth(MEASURE)
        self._messages = QVBoxLayout()
        self._messages.setSpacing(12)
        inside = QVBoxLayout(column)
        inside.setContentsMargins(0, 16, 0, 4)
        inside.setSpacing(16)
        inside.addWidget(self._earlier)
        inside.addLayout(self._messages)
        inside.addStretch(1)
        self._row = QHBoxLayout(self._body)
        self._row.setContentsMargins(MARGIN, 0, MARGIN, 0)
        self._row.addStretch(1)
        self._row.addWidget(column, 1000)
        self._row.addStretch(1)
        self.setWidget(self._body)
        self.setWidgetResizable(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFrameShape(self.Shape.NoFrame)

    def _controls(self) -> list[QWidget]:
        found = [
            child
            for child in self._body.findChildren(QWidget)
            if child.focusPolicy() & Qt.FocusPolicy.TabFocus and child.isVisibleTo(self._body)
        ]
        places = {child: child.mapTo(self._body, QPoint(0, 0)) for child in found}
        return sorted(found, key=lambda child: (places[child].y(), places[child].x()))

    def _built(self, message: ChatMessage) -> QWidget:
        if message.role == "user":
            return QuestionView(message.content)
        answer = self._new_answer()
        if message.state == "writing":
            answer.begin(message.content)
        else:
            answer.end(message, is_last=False)
        self._last_answer = answer
        return answer

    def _new_answer(self) -> AnswerView:
        made = AnswerView()
        made.again_wanted.connect(self.again_wanted)
        made.link_wanted.connect(self._on_link_wanted)
        return made

    def _place_pill(self) -> None:
        self._pill.adjustSize()
        self._pill.move((self.width() - self._pill.width()) // 2, self.height() - self._pill.height() - 8)
        self._pill.raise_()

    @Slot()
    def _on_earlier_wanted(self) -> None:
        bar = self.verticalScrollBar()
        from_end = bar.maximum() - bar.value()
        newest = self._last_answer
        batch, self._older = self._older[-BUILT_AT_ONCE:], self._older[:-BUILT_AT_ONCE]
        for at, message in enumerate(batch):
            self._messages.insertWidget(at, self._built(message))
        self._last_answer = newest
        self._earlier.setVisible(bool(self._older))
        self._follows = False
        self._body.adjustSize()
        bar.setValue(bar.maximum() - from_end)

    @Slot(int, int)
    def _on_range_changed(self, _least: int, most: int) -> None:
        bar_width = self.verticalScrollBar().sizeHint().width() if most > 0 else 0
        self._row.setContentsMargins(MARGIN, 0, MARGIN - bar_width, 0)
        if self._follows:
            self.verticalScrollBar().setValue(most)

    @Slot(int)
    def _on_value_changed(self, value: int) -> None:
        self._follows = value >= self.verticalScrollBar().maximum() - NEAR_END
        if self._follows:
            self._pill.hide()

    @Slot(str)
    def _on_link_wanted(self, address: str) -> None:
        question = self.tr("Open this page of {host} in the browser?").format(host=host_of(address))
        asked = QMessageBox(QMessageBox.Icon.NoIcon, self.tr("Open link"), question, parent=self)
        asked.setInformativeText(address[:500])
        go = asked.addButton(self.tr("Open"), QMessageBox.ButtonRole.AcceptRole)
        asked.addButton(QMessageBox.StandardButton.Cancel)
        asked.exec()
        if asked.clickedButton() is go:
            QDesktopServices.openUrl(QUrl(address))
