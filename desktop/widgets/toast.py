"""A toast: one sentence above the strip that goes away by itself."""

from PySide6.QtCore import QEvent, QObject, QTimer, Signal, Slot
from PySide6.QtWidgets import QFrame, QHBoxLayout, QWidget

from octavo.desktop.widgets.buttons import IconButton, button
from octavo.desktop.widgets.labels import label

STAY_MS = 6000
STAY_WITH_UNDO_MS = 10000
ABOVE_STRIP = 36 + 24


class Toast(QFrame):
    """One at a time. With an action it stays longer; under the pointer it stays."""

    action_wanted = Signal()
    gone = Signal()

    def __init__(self, window: QWidget) -> None:
        super().__init__(window)
        self._window = window
        self.setProperty("kind", "popup")
        self._text = label()
        self._action = button("text")
        self._close = IconButton("x", side=24)
        row = QHBoxLayout(self)
        row.setContentsMargins(16, 7, 12, 7)
        row.setSpacing(12)
        for part in (self._text, self._action, self._close):
            row.addWidget(part)
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.timeout.connect(self._on_time_over)
        self._action.clicked.connect(self._on_action_clicked)
        self._close.clicked.connect(self._on_time_over)
        window.installEventFilter(self)
        self.hide()

    def show_text(self, text: str, action: str = "") -> None:
        """Show a sentence, and a button that does one thing about it."""
        if self.isVisible():
            self.gone.emit()
        self._text.setText(text)
        self._action.setText(action)
        self._action.setVisible(bool(action))
        self._close.describe(self.tr("Close"))
        self.setAccessibleName(text)
        self._place()
        self.show()
        self.raise_()
        self._timer.start(STAY_WITH_UNDO_MS if action else STAY_MS)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Stay in the middle when the window changes its size."""
        if event.type() == QEvent.Type.Resize:
            self._place()
        return False

    def _place(self) -> None:
        self.adjustSize()
        window = self._window
        self.move((window.width() - self.width()) // 2, window.height() - self.height() - ABOVE_STRIP)

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
