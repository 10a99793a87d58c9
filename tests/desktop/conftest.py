"""A window over a fake service, and the means to wait for it."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from octavo.desktop.app import make_window
from octavo.desktop.language import Language
from octavo.desktop.studio import Studio
from octavo.desktop.theme.look import Look
from octavo.desktop.views.window import Window
from tests.desktop.fake_client import FakeHouse

WAIT_MS = 5000


@pytest.fixture
def house() -> FakeHouse:
    """A service in this process."""
    return FakeHouse()


@pytest.fixture
def look(qapp: QApplication) -> Look:
    """The dark theme, on the application."""
    found = qapp.findChild(Look) or Look(qapp, "dark")
    found.choose("dark")
    return found


@pytest.fixture
def language(qapp: QApplication) -> Iterator[Language]:
    """English; whatever a test chooses is put back."""
    found = qapp.findChild(Language) or Language(qapp, "en")
    found.choose("en")
    yield found
    found.choose("en")


@pytest.fixture
def studio_window(
    qapp: QApplication, qtbot: QtBot, look: Look, language: Language, house: FakeHouse, octavo_home: Path
) -> Iterator[Callable[[], tuple[Window, Studio]]]:
    """Open a window over ``house``; it is connected when the call returns."""
    made: list[Window] = []

    def open_window() -> tuple[Window, Studio]:
        octavo_home.mkdir(exist_ok=True)
        window, studio = make_window(qapp, house.open)
        made.append(window)
        window.resize(1280, 800)
        window.show()
        studio.bridge.start()
        qtbot.waitUntil(lambda: studio.is_connected, timeout=WAIT_MS)
        return window, studio

    yield open_window
    for window in made:
        window.close()
        window.deleteLater()


@pytest.fixture
def window(studio_window: Callable[[], tuple[Window, Studio]]) -> Window:
    """An open, connected window."""
    return studio_window()[0]
