"""The memory strip along the bottom: which model, what it takes, how fast it writes, and the public port."""

from PySide6.QtCore import QEvent, Qt, Signal, Slot
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QPushButton, QWidget

from octavo.core.events import InstanceFigures
from octavo.desktop.lists.models import dot_of
from octavo.desktop.quantities import count, gib, memory, one_decimal
from octavo.desktop.studio import Studio
from octavo.desktop.widgets.dot import StatusDot, Swatch
from octavo.desktop.widgets.labels import label, set_tone, upright
from octavo.desktop.widgets.memory_bar import MemoryBar, Part

HEIGHT = 36
NARROW = 860


class Cell(QWidget):
    """A muted label and a value beside it."""

    def __init__(self, sample: str, swatch: str = "") -> None:
        super().__init__()
        self._name = label(size="caption", tone="muted")
        self._value = label(size="caption", weight=500)
        self._sample = sample
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(8)
        if swatch:
            row.addWidget(Swatch(swatch))
        row.addWidget(self._name)
        row.addWidget(self._value)

    def show_value(self, name: str, value: str, tone: str = "text") -> None:
        """Show a value; the cell keeps the room for its longest one."""
        self._name.setText(name)
        self._name.setVisible(bool(name))
        self._value.setText(value)
        set_tone(self._value, tone)
        self._value.setMinimumWidth(self._value.fontMetrics().horizontalAdvance(self._sample))


class ServerCell(QWidget):
    """The state of the public port; a click opens or closes it."""

    switch_wanted = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._dot = StatusDot()
        self._button = QPushButton()
        self._button.setProperty("kind", "small")
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(2)
        row.addWidget(self._dot)
        row.addWidget(self._button)
        self._button.clicked.connect(self.switch_wanted)

    def show_server(self, is_on: bool, address: str, can_switch: bool) -> None:
        """Show whether the port is open, and where."""
        self._dot.show_state("good" if is_on else "hollow")
        state = address if is_on else self.tr("off")
        self._button.setText(self.tr("API {state}").format(state=state))
        self._button.setAccessibleName(self.tr("API server: {state}").format(state=state))
        self._button.setToolTip(
            self.tr("Close the port")
            if is_on
            else self.tr("Open the port, so that other programs can use the model")
        )
        self._button.setEnabled(can_switch)


class MemoryStrip(QFrame):
    """Shows the newest figures of the current model."""

    def __init__(self, studio: Studio, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._studio = studio
        self.setProperty("line", "top")
        self.setFixedHeight(HEIGHT)
        self._dot = StatusDot()
        self._model = label(size="caption", weight=500)
        self._bar = MemoryBar(200, 8)
        self._used = label(size="caption", weight=500)
        self._whole = label(size="caption", tone="muted")
        self._kv = Cell("8,888 / 8,888", "kv")
        self._speed = Cell("888.8 tok/s")
        self.server = ServerCell()
        self._kv_line = _inset(upright())
        self._lay_out()
        studio.figures_changed.connect(self.refresh)
        studio.current_changed.connect(self.refresh)
        studio.server_changed.connect(self.refresh)
        studio.connection_changed.connect(self.refresh)
        self.server.switch_wanted.connect(self._on_switch_wanted)
        self.refresh()

    @Slot()
    def refresh(self) -> None:
        """Show what is known now."""
        studio = self._studio
        sample = studio.figures_of(studio.current)
        entry, status = studio.entry, studio.instance
        self._dot.show_state(dot_of(status))
        loaded = entry.name if entry is not None and status is not None else self.tr("No model loaded")
        more = len(studio.instances) - 1
        self._set_model(f"{loaded} +{more}" if more > 0 and status is not None else loaded)
        self._show_memory(sample)
        nothing = "–"
        self._kv.show_value(
            self.tr("KV"),
            f"{count(sample.kv_used)} / {count(sample.kv_size)}" if sample is not None else nothing,
        )
        speed = (
            one_decimal(sample.tokens_per_s) if sample is not None and sample.tokens_per_s > 0 else nothing
        )
        self._speed.show_value("", self.tr("{speed} tok/s").format(speed=speed))
        server = studio.server
        self.server.show_server(server.is_on, f"{server.host}:{server.port}", studio.is_connected)

    def changeEvent(self, event: QEvent) -> None:
        """Follow the language."""
        super().changeEvent(event)
        if event.type() == QEvent.Type.LanguageChange:
            self.refresh()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Leave the KV cell out where the window is narrow; the bar and the speed stay."""
        super().resizeEvent(event)
        for part in (self._kv, self._kv_line):
            part.setVisible(event.size().width() >= NARROW)

    def _lay_out(self) -> None:
        row = QHBoxLayout(self)
        row.setContentsMargins(16, 0, 8, 0)
        row.setSpacing(12)
        model = QHBoxLayout()
        model.setSpacing(7)
        model.addWidget(self._dot)
        model.addWidget(self._model, 1)
        self._model.setFixedWidth(184)
        row.addLayout(model)
        row.addWidget(_inset(upright()))
        row.addWidget(self._bar)
        used = QHBoxLayout()
        used.setSpacing(4)
        used.addWidget(self._used)
        used.addWidget(self._whole)
        row.addLayout(used)
        for part in (self._kv_line, self._kv, _inset(upright()), self._speed):
            row.addWidget(part)
        row.addStretch(1)
        row.addWidget(self.server)

    def _set_model(self, text: str) -> None:
        shown = self._model.fontMetrics().elidedText(text, Qt.TextElideMode.ElideRight, self._model.width())
        self._model.setText(shown)
        self._model.setToolTip(text)

    def _show_memory(self, sample: InstanceFigures | None) -> None:
        figures = self._studio.figures
        whole = figures.memory_total_bytes if figures is not None else 0
        private = sample.private_bytes if sample is not None else 0
        mapped = sample.file_bytes if sample is not None else 0
        self._bar.show_parts((Part("other", private), Part("weights_resident", mapped)), whole)
        self._used.setText(gib(sample.rss_bytes) if sample is not None else gib(0))
        self._whole.setText(f"/ {one_decimal(whole / 2**30)} GiB" if whole else "GiB")
        told = self.tr(
            "In memory: {file} of the model file, {private} of its own (cache, buffers, program)."
        ).format(file=memory(mapped), private=memory(private))
        self._bar.setToolTip(told)
        self._bar.setAccessibleName(told)

    @Slot()
    def _on_switch_wanted(self) -> None:
        self._studio.switch_server()


def _inset(line: QFrame) -> QWidget:
    """Keep a hairline 8 pixels away from the edges of the strip."""
    holder = QWidget()
    row = QHBoxLayout(holder)
    row.setContentsMargins(0, 8, 0, 8)
    row.addWidget(line)
    return holder
