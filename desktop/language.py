"""The language of the window: English or Korean, changed live."""

from importlib.resources import as_file, files
from typing import Literal

from PySide6.QtCore import QLibraryInfo, QLocale, QObject, Qt, QTranslator
from PySide6.QtWidgets import QApplication

Choice = Literal["system", "en", "ko"]


class Language(QObject):
    """Installs the translations; every widget hears of a change by ``QEvent.LanguageChange``."""

    def __init__(self, application: QApplication, choice: Choice = "system") -> None:
        super().__init__(application)
        self._application = application
        self._translators: list[QTranslator] = []
        self.code = ""
        self.choose(choice)

    def choose(self, choice: Choice) -> None:
        """Change the language now, in every open window."""
        code = choice if choice != "system" else _system_code()
        if code == self.code:
            return
        self.code = code
        QLocale.setDefault(QLocale(QLocale.Language.Korean if code == "ko" else QLocale.Language.English))
        self._application.setLayoutDirection(Qt.LayoutDirection.LeftToRight)
        for translator in self._translators:
            self._application.removeTranslator(translator)
        self._translators = [translator for translator in self._wanted(code) if self._installed(translator)]

    def _wanted(self, code: str) -> list[QTranslator]:
        ours, qt = QTranslator(self), QTranslator(self)
        with as_file(files("octavo.resources").joinpath(f"i18n/octavo_{code}.qm")) as path:
            ours.load(str(path))
        qt.load(f"qtbase_{code}", QLibraryInfo.path(QLibraryInfo.LibraryPath.TranslationsPath))
        return [qt, ours]

    def _installed(self, translator: QTranslator) -> bool:
        return not translator.isEmpty() and self._application.installTranslator(translator)


def _system_code() -> str:
    return "ko" if QLocale.system().language() == QLocale.Language.Korean else "en"
