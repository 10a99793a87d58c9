"""The line under the top bar that says that the service is away, and what is being done about it."""

from PySide6.QtCore import QEvent, Slot
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QWidget

from octavo.desktop.failures import sentence
from octavo.desktop.studio import Studio
from octavo.desktop.theme.icons import picture
from octavo.desktop.widgets.labels import label


class ConnectionNotice(QFrame):
    """Hidden while all is well."""

    def __init__(self, studio: Studio, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("kind", "notice")
        self._studio = studio
        self._was_connected = False
        self._sign = QLabel()
        self._text = label(tone="secondary")
        row = QHBoxLayout(self)
        row.setContentsMargins(24, 8, 24, 8)
        row.setSpacing(10)
        row.addWidget(self._sign)
        row.addWidget(self._text, 1)
        studio.connection_changed.connect(self.refresh)
        self.refresh()

    @Slot()
    def refresh(self) -> None:
        """Show the state of the connection."""
        connection = self._studio.connection
        self._was_connected = self._was_connected or connection.state == "connected"
        is_first_try = connection.state == "connecting" and not self._was_connected and not self._text.text()
        self.setVisible(connection.state != "connected" and not is_first_try)
        self._sign.setPixmap(picture("unplug", "warn", 16, self.devicePixelRatioF()))
        self._text.setText(self._said())

    def changeEvent(self, event: QEvent) -> None:
        """Follow the language and the theme."""
        super().changeEvent(event)
        if event.type() in (QEvent.Type.LanguageChange, QEvent.Type.PaletteChange) and hasattr(self, "_text"):
            self.refresh()

    def _said(self) -> str:
        connection = self._studio.connection
        if connection.state == "connected":
            return ""
        if self._was_connected:
            return self.tr("Octavo's service stopped. It is being started again; what was written is kept.")
        if connection.error is None:
            return ""
        return self.tr("Octavo's service does not start, trying again: {reason}").format(
            reason=sentence(connection.error)
        )
