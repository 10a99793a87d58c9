"""The top bar: the model picker with its eject button, and the field that opens the palette."""

from PySide6.QtCore import QEvent, QSize, Qt, Slot
from PySide6.QtWidgets import QFrame, QHBoxLayout, QPushButton, QWidget

from octavo.desktop.studio import Studio
from octavo.desktop.theme.icons import icon
from octavo.desktop.views.picker import PickerPill
from octavo.desktop.widgets.buttons import ICON_GAP, IconButton
from octavo.desktop.widgets.labels import key

HEIGHT = 48
FIELD_WIDTH = 248


class PaletteField(QPushButton):
    """Looks like a search field and opens the palette."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("kind", "field")
        self.setIcon(icon("search", "muted"))
        self.setIconSize(QSize(16 + ICON_GAP, 16))
        self.setFixedSize(FIELD_WIDTH, 32)
        self._key = key("Ctrl K")
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 8, 0)
        row.addStretch(1)
        row.addWidget(self._key)
        self._key.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)


class TopBar(QFrame):
    """48 pixels high; it doesn't move between pages."""

    def __init__(self, studio: Studio, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._studio = studio
        self.setProperty("line", "bottom")
        self.setFixedHeight(HEIGHT)
        self.pill = PickerPill(studio)
        self.eject = IconButton("power")
        self.palette_field = PaletteField()
        row = QHBoxLayout(self)
        row.setContentsMargins(16, 0, 16, 0)
        row.setSpacing(8)
        row.addWidget(self.pill)
        row.addWidget(self.eject)
        row.addStretch(1)
        row.addWidget(self.palette_field)
        studio.current_changed.connect(self._on_current_changed)
        self._on_current_changed()
        self.retranslate()

    def retranslate(self) -> None:
        """Write the texts in the present language."""
        self.eject.describe(self.tr("Unload the model"))
        self.palette_field.setText(self.tr("Search or run…"))
        self.palette_field.setAccessibleName(self.tr("Search or run"))

    def changeEvent(self, event: QEvent) -> None:
        """Follow the language."""
        super().changeEvent(event)
        if event.type() == QEvent.Type.LanguageChange:
            self.retranslate()

    @Slot()
    def _on_current_changed(self) -> None:
        status = self._studio.instance
        self.eject.setEnabled(status is not None and status.state == "ready")
