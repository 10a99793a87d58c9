"""The settings page: what this window looks like and which language it speaks."""

from PySide6.QtCore import QEvent, Qt, Slot
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QScrollArea, QVBoxLayout, QWidget

from octavo.desktop.studio import Studio
from octavo.desktop.values import Preferences
from octavo.desktop.widgets.labels import hairline, label
from octavo.desktop.widgets.segmented import Segmented

MEASURE = 760
ROW = 56


class SettingsPage(QWidget):
    """One readable column of rows; each change is kept by the service at once."""

    def __init__(self, studio: Studio, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("ground", "surface")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self._studio = studio
        self._title = label(size="title", weight=600)
        self.theme = Segmented(("system", "dark", "light"))
        self.language = Segmented(("system", "en", "ko"))
        self._texts = {
            name: (label(weight=500), label(size="caption", tone="muted")) for name in ("theme", "language")
        }
        self._lay_out()
        self.theme.chosen.connect(self._on_theme_chosen)
        self.language.chosen.connect(self._on_language_chosen)
        self.retranslate()

    def show_preferences(self, preferences: Preferences) -> None:
        """Show the settings as they are."""
        self.theme.choose(preferences.theme)
        self.language.choose(preferences.language)

    def retranslate(self) -> None:
        """Write the texts in the present language."""
        self._title.setText(self.tr("Settings"))
        self._say("theme", self.tr("Theme"), self.tr("System follows what your desktop is set to."))
        self._say("language", self.tr("Language"), self.tr("Changes at once, in every window."))
        system = self.tr("System")
        self.theme.describe(
            self.tr("Theme"), {"system": system, "dark": self.tr("Dark"), "light": self.tr("Light")}
        )
        self.language.describe(self.tr("Language"), {"system": system, "en": "English", "ko": "한국어"})

    def changeEvent(self, event: QEvent) -> None:
        """Follow the language."""
        super().changeEvent(event)
        if event.type() == QEvent.Type.LanguageChange:
            self.retranslate()

    def _lay_out(self) -> None:
        column = QWidget()
        column.setMaximumWidth(MEASURE)
        inside = QVBoxLayout(column)
        inside.setContentsMargins(0, 16, 0, 24)
        inside.setSpacing(16)
        inside.addWidget(self._title)
        inside.addWidget(self._card())
        inside.addStretch(1)
        body = QWidget()
        row = QHBoxLayout(body)
        row.setContentsMargins(24, 0, 24, 0)
        row.addWidget(column, 1000)
        row.addStretch(1)
        area = QScrollArea()
        area.setWidget(body)
        area.setWidgetResizable(True)
        outer = QVBoxLayout(self)
        outer.setContentsMargins(0, 0, 0, 0)
        outer.addWidget(area)

    def _card(self) -> QFrame:
        card = QFrame()
        card.setProperty("kind", "card")
        rows = QVBoxLayout(card)
        rows.setContentsMargins(1, 1, 1, 1)
        rows.setSpacing(0)
        rows.addWidget(_row(self._texts["theme"], self.theme))
        rows.addWidget(hairline())
        rows.addWidget(_row(self._texts["language"], self.language))
        return card

    def _say(self, name: str, title: str, help_text: str) -> None:
        heading, help_line = self._texts[name]
        heading.setText(title)
        help_line.setText(help_text)

    @Slot(str)
    def _on_theme_chosen(self, theme: str) -> None:
        self._studio.bridge.change_settings("appearance", theme=theme)

    @Slot(str)
    def _on_language_chosen(self, language: str) -> None:
        self._studio.bridge.change_settings("appearance", language=language)


def _row(texts: tuple[QLabel, QLabel], control: QWidget) -> QWidget:
    row = QWidget()
    row.setMinimumHeight(ROW)
    words = QVBoxLayout()
    words.setSpacing(0)
    words.addStretch(1)
    for text in texts:
        words.addWidget(text)
    words.addStretch(1)
    across = QHBoxLayout(row)
    across.setContentsMargins(16, 8, 16, 8)
    across.addLayout(words, 1)
    across.addWidget(control, 0, Qt.AlignmentFlag.AlignVCenter)
    return row
