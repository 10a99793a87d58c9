"""The look that is on now: which theme, put on the application, changed live."""

from typing import Literal

from PySide6.QtCore import QObject, Qt, Signal, Slot
from PySide6.QtGui import QColor
from PySide6.QtWidgets import QApplication, QStyleFactory

from octavo.desktop.theme.fonts import ui_font
from octavo.desktop.theme.palette import Theme, qt_palette, theme
from octavo.desktop.theme.style import style_sheet

Choice = Literal["system", "dark", "light"]


class Look(QObject):
    """Puts a theme on the application and follows the system's colour scheme when asked to."""

    theme_changed = Signal()

    _current: "Look | None" = None

    def __init__(self, application: QApplication, choice: Choice = "system") -> None:
        super().__init__(application)
        self._application = application
        self._choice: Choice = choice
        self.theme: Theme = theme(self._wanted())
        Look._current = self
        application.setStyle(QStyleFactory.create("Fusion"))
        application.setFont(ui_font())
        application.styleHints().colorSchemeChanged.connect(self._on_scheme_changed)
        self._put_on()

    @property
    def choice(self) -> Choice:
        """What the person chose: a theme, or to follow the system."""
        return self._choice

    def choose(self, choice: Choice) -> None:
        """Change the theme now, in every open window."""
        self._choice = choice
        self._refresh()

    @classmethod
    def now(cls) -> Theme:
        """Give the theme to paint with; the dark one before there is an application."""
        return cls._current.theme if cls._current is not None else theme("dark")

    @Slot()
    def _on_scheme_changed(self) -> None:
        if self._choice == "system":
            self._refresh()

    def _wanted(self) -> str:
        if self._choice != "system":
            return self._choice
        scheme = self._application.styleHints().colorScheme()
        return "light" if scheme == Qt.ColorScheme.Light else "dark"

    def _refresh(self) -> None:
        wanted = theme(self._wanted())
        if wanted.name != self.theme.name:
            self.theme = wanted
            self._put_on()
            self.theme_changed.emit()

    def _put_on(self) -> None:
        self._application.setPalette(qt_palette(self.theme))
        self._application.setStyleSheet(style_sheet(self.theme))


def colour(role: str) -> QColor:
    """Give the colour that a role has now."""
    return Look.now().colour(role)
