"""A toast: one sentence above the strip, or above the composer, that goes away by itself."""

from PySide6.QtCore import QEvent, QObject, QPoint, QRect, QTimer, Signal, Slot
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QVBoxLayout, QWidget

from octavo.core.errors import ErrorReport
from octavo.desktop.failures import advice, facts, sentence
from octavo.desktop.widgets.buttons import IconButton, button
from octavo.desktop.widgets.labels import label

STAY_MS = 6000
STAY_WITH_UNDO_MS = 10000
ABOVE_STRIP = 36 + 24
ABOVE_OTHERS = 8
MOST_WIDE = 484
LEAST_HIGH = 48
_MOVES = (QEvent.Type.Resize, QEvent.Type.Move, QEvent.Type.Show, QEvent.Type.Hide)


class Toast(QFrame):
    """One at a time. With an action it stays longer; under the pointer it stays."""

    action_wanted = Signal()
    gone = Signal()

    def __init__(self, window: QWidget) -> None:
        super().__init__(window)
        self._window = window
        self.setProperty("kind", "popup")
        self._avoided: QWidget | None = None
        self._text = label()
        self._facts = label(size="caption", tone="muted")
        self._action = button("text")
        self._close = IconButton("x", side=24)
        self._lay_out()
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.timeout.connect(self._on_time_over)
        self._action.clicked.connect(self._on_action_clicked)
        self._close.clicked.connect(self._on_time_over)
        window.installEventFilter(self)
        self.hide()

    def keep_clear_of(self, other: QWidget) -> None:
        """Stand above another part of the window where it would be covered."""
        self._avoided = other
        other.installEventFilter(self)

    def show_report(self, error: ErrorReport) -> None:
        """Show an error: what happened and what to do, and its facts beneath."""
        self.show_text(f"{sentence(error)} {advice(error)}".strip(), beneath=facts(error))

    def show_text(self, text: str, action: str = "", beneath: str = "") -> None:
        """Show a sentence, a smaller one beneath, and a button that does one thing about it."""
        if self.isVisible():
            self.gone.emit()
        self._text.setText(text)
        self._facts.setText(beneath)
        self._facts.setVisible(bool(beneath))
        self._action.setText(action)
        self._action.setVisible(bool(action))
        self._close.describe(self.tr("Close"))
        self.setAccessibleName(f"{text} {beneath}".strip())
        self._fit()
        self._place()
        self.show()
        self.raise_()
        self._timer.start(STAY_WITH_UNDO_MS if action else STAY_MS)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Stay in the middle when the window changes its size, and above what grows."""
        if event.type() in _MOVES and self.isVisible():
            QTimer.singleShot(0, self, self._place)
        return False

    def _lay_out(self) -> None:
        words = QVBoxLayout()
        words.setSpacing(2)
        row = QHBoxLayout(self)
        row.setContentsMargins(16, 7, 12, 7)
        row.setSpacing(12)
        self.setMinimumHeight(LEAST_HIGH)
        for part in (self._text, self._facts):
            part.setWordWrap(True)
            words.addWidget(part)
        row.addLayout(words)
        row.addWidget(self._action)
        row.addWidget(self._close)

    def _fit(self) -> None:
        """Break the lines where the toast would be too wide."""
        texts = [part for part in (self._text, self._facts) if part.text()]
        buttons = (self._action.sizeHint().width() + 12 if self._action.text() else 0) + 24 + 12
        wide = min(max(map(_natural_width, texts)), MOST_WIDE - 16 - 12 - 2 - buttons)
        for part in texts:
            part.setFixedSize(wide, part.heightForWidth(wide))

    @Slot()
    def _place(self) -> None:
        self.adjustSize()
        window, other = self._window, self._avoided
        place = QRect(QPoint(0, 0), self.size())
        place.moveBottom(window.height() - ABOVE_STRIP - 1)
        middle = window.width() // 2
        if other is not None and other.isVisible():
            taken = QRect(other.mapTo(window, QPoint(0, 0)), other.size())
            middle = taken.center().x()
            if place.bottom() >= taken.top() - ABOVE_OTHERS:
                place.moveBottom(taken.top() - ABOVE_OTHERS - 1)
        self.move(middle - place.width() // 2, place.top())

    @Slot()
    def _on_time_over(self) -> None:
        if self.underMouse() and self.sender() is self._timer:
            self._timer.start(STAY_MS)
            return
        self._timer.stop()
        self.hide()
        self.gone.emit()

    @Slot()
    def _on_action_clicked(self) -> None:
        self._timer.stop()
        self.hide()
        self.action_wanted.emit()


def _natural_width(part: QLabel) -> int:
    part.ensurePolished()
    return part.fontMetrics().horizontalAdvance(part.text()) + 2
