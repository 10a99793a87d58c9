"""What the window remembers between starts: its shape, and what was chosen last."""

from PySide6.QtCore import QByteArray, QSettings

from octavo.core.config.paths import Home


class Remembered:
    """A small file beside the settings; losing it loses nothing that matters."""

    def __init__(self, home: Home) -> None:
        self._file = QSettings(str(home.root / "window.ini"), QSettings.Format.IniFormat)

    def text(self, key: str, default: str = "") -> str:
        """Give a remembered text."""
        return str(self._file.value(key, default))

    def shape(self, key: str) -> QByteArray:
        """Give a remembered geometry or splitter state; empty when there is none."""
        value = self._file.value(key)
        return value if isinstance(value, QByteArray) else QByteArray()

    def keep(self, key: str, value: str | QByteArray) -> None:
        """Remember a value."""
        if self._file.value(key) != value:
            self._file.setValue(key, value)

    def forget(self, key: str) -> None:
        """Remove a value."""
        self._file.remove(key)

    def save(self) -> None:
        """Write the file now."""
        self._file.sync()
