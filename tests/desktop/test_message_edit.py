"""Typing, input methods and huge pastes. Case E01 is here, with the Korean half of the check list."""

import time

import pytest
from PySide6.QtCore import QMimeData, Qt
from PySide6.QtGui import QInputMethodEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from octavo.desktop.theme.look import Look
from octavo.desktop.widgets.composer import Composer, Draft

PLAIN, SHIFT, CTRL = (
    Qt.KeyboardModifier.NoModifier,
    Qt.KeyboardModifier.ShiftModifier,
    Qt.KeyboardModifier.ControlModifier,
)
KEYPAD = Qt.KeyboardModifier.KeypadModifier
SENDING_KEYS = [
    (Qt.Key.Key_Return, PLAIN),
    (Qt.Key.Key_Return, CTRL),
    (Qt.Key.Key_Enter, KEYPAD),
]


@pytest.fixture
def composer(qtbot: QtBot, look: Look) -> Composer:
    made = Composer()
    qtbot.addWidget(made)
    made.resize(600, 120)
    made.show()
    made.edit.setFocus()
    return made


def sent_by(composer: Composer) -> list[str]:
    sent: list[str] = []
    composer.send_requested.connect(sent.append)
    return sent


def compose(composer: Composer, preedit: str) -> None:
    QApplication.sendEvent(composer.edit, QInputMethodEvent(preedit, []))


def commit(composer: Composer, text: str) -> None:
    event = QInputMethodEvent()
    event.setCommitString(text)
    QApplication.sendEvent(composer.edit, event)


@pytest.mark.parametrize(("key", "modifiers"), SENDING_KEYS)
def test_E01_return_while_kana_is_composed_sends_nothing(
    composer: Composer, key: Qt.Key, modifiers: Qt.KeyboardModifier
) -> None:
    sent = sent_by(composer)
    compose(composer, "にほん")
    QTest.keyClick(composer.edit, key, modifiers)
    assert sent == []
    assert composer.edit.toPlainText() == ""
    commit(composer, "日本")
    QTest.keyClick(composer.edit, key, modifiers)
    assert sent == ["日本"]


def test_E01_shift_return_while_kana_is_composed_breaks_no_line(composer: Composer) -> None:
    sent = sent_by(composer)
    compose(composer, "にほん")
    QTest.keyClick(composer.edit, Qt.Key.Key_Return, SHIFT)
    assert (sent, composer.edit.toPlainText()) == ([], "")


@pytest.mark.parametrize(("key", "modifiers"), SENDING_KEYS)
def test_E01_return_while_hangul_is_composed_takes_it_over_and_sends_once(
    composer: Composer, key: Qt.Key, modifiers: Qt.KeyboardModifier
) -> None:
    sent = sent_by(composer)
    composer.edit.insertPlainText("안녕하세")
    compose(composer, "요")
    QTest.keyClick(composer.edit, key, modifiers)
    assert sent == ["안녕하세요"]
    composer.set_draft(Draft())
    QTest.keyClick(composer.edit, key, modifiers)
    assert sent == ["안녕하세요"]


def test_E01_a_lone_hangul_syllable_is_sent(composer: Composer) -> None:
    sent = sent_by(composer)
    compose(composer, "ㄱ")
    compose(composer, "가")
    QTest.keyClick(composer.edit, Qt.Key.Key_Return)
    assert sent == ["가"]


def test_E01_shift_return_while_hangul_is_composed_takes_it_over_and_breaks_the_line(
    composer: Composer,
) -> None:
    sent = sent_by(composer)
    compose(composer, "한")
    QTest.keyClick(composer.edit, Qt.Key.Key_Return, SHIFT)
    assert (sent, composer.edit.toPlainText()) == ([], "한\n")


def test_return_sends_and_shift_return_breaks_the_line(composer: Composer) -> None:
    sent = sent_by(composer)
    QTest.keyClicks(composer.edit, "one")
    QTest.keyClick(composer.edit, Qt.Key.Key_Return, SHIFT)
    QTest.keyClicks(composer.edit, "two")
    QTest.keyClick(composer.edit, Qt.Key.Key_Return)
    assert sent == ["one\ntwo"]


def test_nothing_is_sent_when_nothing_is_written_or_an_answer_is_under_way(composer: Composer) -> None:
    sent = sent_by(composer)
    QTest.keyClicks(composer.edit, "   ")
    QTest.keyClick(composer.edit, Qt.Key.Key_Return)
    composer.set_draft(Draft("hello"))
    composer.set_busy(True)
    QTest.keyClick(composer.edit, Qt.Key.Key_Return)
    assert sent == []
    assert composer.draft.typed == "hello"


def test_stop_stands_in_the_place_of_send(composer: Composer) -> None:
    composer.set_busy(True)
    assert composer._stop.isVisible() and not composer._send.isVisible()
    composer.set_busy(False)
    assert composer._send.isVisible() and not composer._stop.isVisible()


@pytest.mark.parametrize(
    "text", ["x" * 1_000_000, "a line of words\n" * 62_500], ids=["one line", "many lines"]
)
def test_pasting_a_megabyte_folds_it_and_holds_nothing(composer: Composer, text: str) -> None:
    sent = sent_by(composer)
    data = QMimeData()
    data.setText(text)
    QTest.keyClicks(composer.edit, "Sum up:")
    began = time.perf_counter()
    composer.edit.insertFromMimeData(data)
    QApplication.processEvents()
    composer.grab()
    assert time.perf_counter() - began < 1.0
    assert composer.edit.toPlainText() == "Sum up:"
    QTest.keyClick(composer.edit, Qt.Key.Key_Return)
    assert sent == [f"Sum up:\n\n{text}"]


def test_a_folded_paste_can_be_taken_out(composer: Composer) -> None:
    composer.set_draft(Draft("", ("y" * 20_000,)))
    assert composer._send.isEnabled()
    composer._pastes[0].removed.emit()
    assert composer.draft == Draft()
    assert not composer._send.isEnabled()


def test_the_field_grows_with_its_text_and_not_beyond_ten_lines(composer: Composer) -> None:
    one = composer.edit.height()
    composer.edit.setPlainText("a\nb\nc")
    three = composer.edit.height()
    composer.edit.setPlainText("\n" * 50)
    assert one < three < composer.edit.height() <= 10 * composer.edit.fontMetrics().lineSpacing() + 6
