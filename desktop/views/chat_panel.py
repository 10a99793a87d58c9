"""The right side of the chat page: the system prompt and the sampling of this conversation."""

from PySide6.QtCore import QEvent, Qt, QTimer, Signal, Slot
from PySide6.QtWidgets import QFrame, QHBoxLayout, QPlainTextEdit, QScrollArea, QVBoxLayout, QWidget

from octavo.desktop.dialogue import Setup
from octavo.desktop.widgets.buttons import caption_button
from octavo.desktop.widgets.labels import hairline, label
from octavo.desktop.widgets.slider_field import Range, SliderField

SETTLE_MS = 400

# the engine's own defaults (core.engine.protocol.Sampling)
RANGES = {
    "temperature": Range(0.0, 2.0, 0.05, 0.8),
    "top_p": Range(0.0, 1.0, 0.01, 0.95),
    "min_p": Range(0.0, 1.0, 0.01, 0.05),
    "repeat_penalty": Range(0.8, 2.0, 0.01, 1.0),
}


class ChatPanel(QWidget):
    """Shows a ``Setup``; what is changed is told once the person pauses."""

    setup_changed = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._title = label(weight=600)
        self._prompt_label = label(weight=500)
        self._prompt = QPlainTextEdit()
        self._prompt.setProperty("kind", "field")
        self._prompt.setTabChangesFocus(True)
        self._prompt.setFixedHeight(96)
        self._prompt_label.setBuddy(self._prompt)
        self._sampling_label = label(weight=500)
        self._reset = caption_button("rotate-ccw")
        self._fields = {name: SliderField(bounds) for name, bounds in RANGES.items()}
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(SETTLE_MS)
        self._lay_out()
        self._connect()
        self.retranslate()

    @property
    def setup(self) -> Setup:
        """Give what is set now."""
        changed = {name: field.value for name, field in self._fields.items() if not field.is_default}
        return Setup(self._prompt.toPlainText(), tuple(sorted(changed.items())))

    def show_setup(self, setup: Setup) -> None:
        """Show a conversation's setup without telling."""
        self._timer.stop()
        self._prompt.blockSignals(True)
        if self._prompt.toPlainText() != setup.system_prompt:
            self._prompt.setPlainText(setup.system_prompt)
        self._prompt.blockSignals(False)
        chosen = dict(setup.sampling)
        for name, field in self._fields.items():
            field.set_value(chosen.get(name, RANGES[name].default))
        self._show_reset()

    def flush(self) -> None:
        """Tell at once what was changed a moment ago."""
        if self._timer.isActive():
            self._timer.stop()
            self._on_settled()

    def retranslate(self) -> None:
        """Write the texts in the present language."""
        self._title.setText(self.tr("This chat"))
        self._prompt_label.setText(self.tr("System prompt"))
        self._prompt.setAccessibleName(self.tr("System prompt"))
        self._prompt.setPlaceholderText(self.tr("How the model should answer"))
        self._sampling_label.setText(self.tr("Sampling"))
        self._reset.describe(self.tr("Back to the defaults"))
        fields = self._fields
        fields["temperature"].describe(
            self.tr("Temperature"), self.tr("Higher is more varied; 0 always takes the likeliest word.")
        )
        fields["top_p"].describe(self.tr("Top P"), self.tr("Keep the likeliest words that share this much."))
        fields["min_p"].describe(
            self.tr("Min P"), self.tr("Drop words less likely than this share of the likeliest.")
        )
        fields["repeat_penalty"].describe(
            self.tr("Repeat penalty"), self.tr("Above 1, words that were just used become less likely.")
        )

    def changeEvent(self, event: QEvent) -> None:
        """Follow the language."""
        super().changeEvent(event)
        if event.type() == QEvent.Type.LanguageChange:
            self.retranslate()

    def _lay_out(self) -> None:
        head = QFrame()
        head.setProperty("line", "bottom")
        head.setFixedHeight(48)
        head_row = QHBoxLayout(head)
        head_row.setContentsMargins(16, 0, 16, 0)
        head_row.addWidget(self._title)
        sampling_row = QHBoxLayout()
        sampling_row.addWidget(self._sampling_label, 1)
        sampling_row.addWidget(self._reset)
        body = QWidget()
        inside = QVBoxLayout(body)
        inside.setContentsMargins(16, 12, 16, 12)
        inside.setSpacing(8)
        inside.addWidget(self._prompt_label)
        inside.addWidget(self._prompt)
        inside.addSpacing(8)
        inside.addWidget(hairline())
        inside.addLayout(sampling_row)
        for field in self._fields.values():
            inside.addWidget(field)
        inside.addStretch(1)
        area = QScrollArea()
        area.setWidget(body)
        area.setWidgetResizable(True)
        area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(head)
        column.addWidget(area, 1)

    def _connect(self) -> None:
        self._prompt.textChanged.connect(self._on_edited)
        for field in self._fields.values():
            field.value_changed.connect(self._on_edited)
        self._reset.clicked.connect(self._on_reset_wanted)
        self._timer.timeout.connect(self._on_settled)

    def _show_reset(self) -> None:
        self._reset.setEnabled(any(not field.is_default for field in self._fields.values()))

    @Slot()
    def _on_edited(self) -> None:
        self._show_reset()
        self._timer.start()

    @Slot()
    def _on_settled(self) -> None:
        self.setup_changed.emit(self.setup)

    @Slot()
    def _on_reset_wanted(self) -> None:
        for field in self._fields.values():
            field.reset()
