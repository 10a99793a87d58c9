"""A choice of two to four: buttons in one frame, arrows move, one tab stop."""

from PySide6.QtCore import QObject, Qt, Signal, Slot
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QAbstractButton, QButtonGroup, QFrame, QHBoxLayout, QPushButton, QWidget


class Segmented(QFrame):
    """One of a few values is chosen; ``keys`` name them, ``describe`` writes their texts."""

    chosen = Signal(str)

    def __init__(self, keys: tuple[str, ...], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("kind", "segments")
        self._buttons: dict[str, QPushButton] = {}
        self._group = QButtonGroup(self)
        row = QHBoxLayout(self)
        row.setContentsMargins(2, 2, 2, 2)
        row.setSpacing(2)
        for name in keys:
            row.addWidget(self._new_button(name))
        self._group.buttonClicked.connect(self._on_button_clicked)
        self.choose(keys[0])

    @property
    def value(self) -> str:
        """Give the key of the chosen segment."""
        checked = self._group.checkedButton()
        return next((name for name, made in self._buttons.items() if made is checked), "")

    def choose(self, key: str) -> None:
        """Choose a segment without telling."""
        self._buttons[key].setChecked(True)
        for name, made in self._buttons.items():
            made.setFocusPolicy(Qt.FocusPolicy.StrongFocus if name == key else Qt.FocusPolicy.ClickFocus)

    def describe(self, name: str, texts: dict[str, str]) -> None:
        """Set the spoken name of the choice and the text of each segment."""
        self.setAccessibleName(name)
        for key, text in texts.items():
            self._buttons[key].setText(text)
            self._buttons[key].setAccessibleName(f"{name}: {text}")

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Move the choice with the arrow keys."""
        step = {Qt.Key.Key_Left: -1, Qt.Key.Key_Right: 1}.get(Qt.Key(event.key()), 0)
        names = list(self._buttons)
        target = names.index(self.value) + step
        if not step or not 0 <= target < len(names):
            super().keyPressEvent(event)
            return
        self.choose(names[target])
        self._buttons[names[target]].setFocus(Qt.FocusReason.TabFocusReason)
        self.chosen.emit(names[target])

    def eventFilter(self, watched: QObject, event: object) -> bool:
        """Take the arrow keys from the buttons, which would only move the focus."""
        is_press = isinstance(event, QKeyEvent) and event.type() == QKeyEvent.Type.KeyPress
        if isinstance(event, QKeyEvent) and is_press and event.key() in (Qt.Key.Key_Left, Qt.Key.Key_Right):
            self.keyPressEvent(event)
            return True
        return False

    def _new_button(self, name: str) -> QPushButton:
        made = QPushButton(self)
        made.setProperty("kind", "segment")
        made.setCheckable(True)
        made.installEventFilter(self)
        self._group.addButton(made)
        self._buttons[name] = made
        return made

    @Slot(QAbstractButton)
    def _on_button_clicked(self, _button: QAbstractButton) -> None:
        self.choose(self.value)
        self.chosen.emit(self.value)
