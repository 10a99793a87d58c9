"""A slider with a number field: label, groove and field for one number."""

from dataclasses import dataclass

from PySide6.QtCore import QEvent, QLocale, Qt, Signal, Slot
from PySide6.QtGui import QMouseEvent, QWheelEvent
from PySide6.QtWidgets import QGridLayout, QHBoxLayout, QLineEdit, QSlider, QWidget

from octavo.desktop.widgets.dot import StatusDot
from octavo.desktop.widgets.labels import label


@dataclass(frozen=True, slots=True)
class Range:
    """What a number may be: its bounds, the slider's step, and its value when nobody chose one."""

    least: float
    most: float
    step: float
    default: float


class _Slider(QSlider):
    """A slider that turns the wheel only while it has the focus."""

    def wheelEvent(self, event: QWheelEvent) -> None:
        if self.hasFocus():
            super().wheelEvent(event)
        else:
            event.ignore()


class SliderField(QWidget):
    """One number; an accent dot after the label says that it isn't the default."""

    value_changed = Signal(float)

    def __init__(self, bounds: Range, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._range = bounds
        self._value = bounds.default
        self._label = label()
        self._dot = StatusDot()
        self._slider = _Slider(Qt.Orientation.Horizontal)
        self._slider.setRange(0, round((bounds.most - bounds.least) / bounds.step))
        self._field = QLineEdit()
        self._field.setProperty("kind", "number")
        self._field.setFixedWidth(64)
        self._field.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        self._label.setBuddy(self._field)
        self._lay_out()
        self._slider.valueChanged.connect(self._on_slider_moved)
        self._field.editingFinished.connect(self._on_field_edited)
        self.set_value(bounds.default)

    @property
    def value(self) -> float:
        """Give the number."""
        return self._value

    @property
    def is_default(self) -> bool:
        """Say whether the number is the one that nobody chose."""
        return abs(self._value - self._range.default) < self._range.step / 2

    def set_value(self, value: float) -> None:
        """Show a number without telling; one outside the bounds is brought inside."""
        self._value = min(max(value, self._range.least), self._range.most)
        self._slider.blockSignals(True)
        self._slider.setValue(round((self._value - self._range.least) / self._range.step))
        self._slider.blockSignals(False)
        self._field.setText(QLocale().toString(self._value, "f", 2))
        self._dot.setVisible(not self.is_default)

    def reset(self) -> None:
        """Go back to the default."""
        self._change(self._range.default)

    def describe(self, name: str, help_text: str) -> None:
        """Set the label, which is also the spoken name, and the help shown on hover."""
        self._label.setText(name)
        self._slider.setAccessibleName(name)
        self._field.setAccessibleName(name)
        for part in (self._label, self._slider, self._field):
            part.setToolTip(help_text)

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        """Reset on a double click on the label."""
        if self._label.geometry().contains(event.position().toPoint()):
            self.reset()

    def changeEvent(self, event: QEvent) -> None:
        """Write the number as the language does."""
        super().changeEvent(event)
        if event.type() == QEvent.Type.LanguageChange:
            self.set_value(self._value)

    def _lay_out(self) -> None:
        head = QHBoxLayout()
        head.setSpacing(6)
        head.addWidget(self._label)
        head.addWidget(self._dot)
        head.addStretch(1)
        self._dot.show_state("accent")
        grid = QGridLayout(self)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setHorizontalSpacing(12)
        grid.setVerticalSpacing(0)
        grid.addLayout(head, 0, 0)
        grid.addWidget(self._slider, 1, 0)
        grid.addWidget(self._field, 1, 1)

    def _change(self, value: float) -> None:
        before = self._value
        self.set_value(value)
        if self._value != before:
            self.value_changed.emit(self._value)

    @Slot(int)
    def _on_slider_moved(self, position: int) -> None:
        self._change(round(self._range.least + position * self._range.step, 4))

    @Slot()
    def _on_field_edited(self) -> None:
        number, is_number = QLocale().toDouble(self._field.text().strip())
        if not is_number:
            number, is_number = QLocale.c().toDouble(self._field.text().strip())
        self._change(number if is_number else self._value)
