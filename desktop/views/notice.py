"""The lines under the top bar: the service is away, or came back without its port open."""

from PySide6.QtCore import QEvent, Slot
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QWidget

from octavo.desktop.failures import told
from octavo.desktop.studio import Studio
from octavo.desktop.theme.icons import picture
from octavo.desktop.widgets.buttons import IconButton, button
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
            reason=told(connection.error)
        )


class PortNotice(QFrame):
    """Says that the public port was open before the service was lost and could not be opened again."""

    def __init__(self, studio: Studio, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("kind", "notice")
        self._studio = studio
        self._sign = QLabel()
        self._text = label(tone="secondary")
        self._text.setWordWrap(True)
        self._again = button("text")
        self._close = IconButton("x", side=24)
        row = QHBoxLayout(self)
        row.setContentsMargins(24, 8, 24, 8)
        row.setSpacing(10)
        row.addWidget(self._sign)
        row.addWidget(self._text, 1)
        row.addWidget(self._again)
        row.addWidget(self._close)
        self._again.clicked.connect(studio.reopen_port)
        self._close.clicked.connect(studio.forget_port)
        studio.server_changed.connect(self.refresh)
        self.refresh()

    @Slot()
    def refresh(self) -> None:
        """Show what went wrong, or nothing."""
        port, error = self._studio.lost_port, self._studio.port_error
        self.setVisible(port is not None and error is not None)
        self._sign.setPixmap(picture("server", "warn", 16, self.devicePixelRatioF()))
        self._again.setText(self.tr("Switch on again"))
        self._close.describe(self.tr("Leave it off"))
        if port is not None and error is not None:
            said = self.tr("The API server was on at {address} and is off now. {reason}")
            self._text.setText(said.format(address=f"{port.host}:{port.port}", reason=told(error)))

    def changeEvent(self, event: QEvent) -> None:
        """Follow the language and the theme."""
        super().changeEvent(event)
        if event.type() in (QEvent.Type.LanguageChange, QEvent.Type.PaletteChange) and hasattr(
            self, "_close"
        ):
            self.refresh()
