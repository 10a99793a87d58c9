"""Errors and broken files by name: which file it is, and what is wrong with it."""

from collections.abc import Callable

import pytest
from PySide6.QtCore import QPoint, Qt
from pytestqt.qtbot import QtBot

from octavo.core.errors import ErrorReport, InvalidGguf, UnreadableFile, WorkerCrashed
from octavo.desktop.failures import facts, sentence
from octavo.desktop.language import Language
from octavo.desktop.quantities import file_size
from octavo.desktop.studio import Studio
from octavo.desktop.views.window import Window
from tests.desktop.fake_client import STARTER, FakeHouse, model

Opened = Callable[[], tuple[Window, Studio]]
PAGE = InvalidGguf(
    "page.gguf: it is a web page (HTML), not a model",
    hint="Download it again.",
    path="/h/page.gguf",
    fault="html_page",
).report()


def test_in_english_the_services_words_are_enough(language: Language) -> None:
    assert (sentence(PAGE), facts(PAGE)) == (PAGE.message, "")


def test_under_a_translation_the_services_words_name_file_and_fault(language: Language) -> None:
    language.choose("ko")
    assert sentence(PAGE) != PAGE.message
    assert facts(PAGE) == PAGE.message


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (UnreadableFile("Permission denied.", path="/h/secret.gguf").report(), "secret.gguf"),
        (WorkerCrashed("The worker ended: SIGKILL.").report(), ""),
        (ErrorReport("new_code", "Something new."), ""),
    ],
)
def test_a_files_name_is_added_where_the_sentence_lacks_it(
    language: Language, error: ErrorReport, said: str
) -> None:
    assert facts(error) == said


def test_a_toast_names_the_file_and_stays_off_the_composer(
    window: Window, language: Language, qtbot: QtBot
) -> None:
    language.choose("ko")
    window.toast.show_report(PAGE)
    assert window.toast._facts.text() == PAGE.message
    assert PAGE.message in window.toast.accessibleName()
    composer = window.chat.composer
    assert _bottom(window) <= composer.mapTo(window, QPoint(0, 0)).y() - 8
    assert window.toast.width() <= 484
    composer.edit.setPlainText("line\n" * 5)
    qtbot.waitUntil(lambda: _bottom(window) <= composer.mapTo(window, QPoint(0, 0)).y() - 8, timeout=2000)


def test_a_toast_stands_above_the_strip_where_no_composer_is(window: Window) -> None:
    window.open_page("settings")
    window.toast.show_text("Kept.")
    assert window.height() - _bottom(window) == 36 + 24


def test_a_long_toast_is_broken_into_lines(window: Window) -> None:
    window.toast.show_text("many words " * 20, "Undo")
    assert window.toast.width() <= 484
    assert window.toast.height() > 60


def _bottom(window: Window) -> int:
    return window.toast.geometry().bottom() + 1


def test_broken_files_are_told_apart(studio_window: Opened, house: FakeHouse, qtbot: QtBot) -> None:
    first = model("x/page", "page", "", 512, fault="page.gguf: it is a web page (HTML), not a model")
    second = model("x/half", "half", "", 4096, fault="half.gguf: the file ends in the tensor table")
    house.models = [STARTER, first, second]
    window, _ = studio_window()
    window.picker.open()
    rows = window.picker._model
    shown = [rows.index(row, 0).data() for row in (1, 2)]
    assert shown == ["page.gguf", "half.gguf"]
    spoken = rows.index(1, 0).data(Qt.ItemDataRole.AccessibleTextRole)
    assert spoken == "page.gguf, 512 B, can't be used, it is a web page (HTML), not a model"
    tip = rows.index(2, 0).data(Qt.ItemDataRole.ToolTipRole)
    assert tip == "/models/x/half.gguf\nthe file ends in the tensor table"
    assert window.picker._list.height() == 40 + 48 + 48


@pytest.mark.parametrize(
    ("size", "said"),
    [(7, "7 B"), (999, "999 B"), (4_096, "4 KB"), (98_362_432, "98 MB"), (4_920_000_000, "4.92 GB")],
)
def test_sizes_are_never_rounded_to_nothing(language: Language, size: int, said: str) -> None:
    assert file_size(size) == said
