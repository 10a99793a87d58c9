"""A service that is killed under an open window: what was on is on again, the answer says what happened."""

from collections.abc import Callable

import pytest
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from octavo.core.chats.types import ReplyLoading, ReplyReading
from octavo.core.errors import Conflict
from octavo.desktop.language import Language
from octavo.desktop.studio import Studio
from octavo.desktop.views.notice import PortNotice
from octavo.desktop.views.window import Window
from octavo.desktop.widgets.answer import AnswerView
from octavo.desktop.widgets.error_panel import ErrorPanel
from tests.desktop.fake_client import FakeHouse

WAIT_MS = 5000
Opened = Callable[[], tuple[Window, Studio]]
TAKEN = Conflict("127.0.0.1:4321 is taken by another program.", hint="Choose another port.")


def ask(window: Window, text: str) -> None:
    window.chat.composer.edit.setPlainText(text)
    QTest.qWait(1)
    window.chat.composer._send.click()


def answer_of(window: Window) -> AnswerView:
    answer = window.chat.conversation.last_answer
    assert answer is not None
    return answer


def error_of(answer: AnswerView) -> ErrorPanel:
    assert answer._error is not None
    return answer._error


def lose_the_service(studio: Studio, house: FakeHouse, qtbot: QtBot) -> None:
    house.die()
    qtbot.waitUntil(lambda: not studio.is_connected, timeout=WAIT_MS)
    qtbot.waitUntil(lambda: studio.is_connected, timeout=WAIT_MS)


def open_port(studio: Studio, qtbot: QtBot) -> None:
    studio.bridge.reopen_server("127.0.0.1", 4321)
    qtbot.waitUntil(lambda: studio.server.is_on, timeout=WAIT_MS)


def offers_to_try_again(answer: AnswerView) -> bool:
    return answer._error is not None and answer._error._retry.isVisible()


def break_off(window: Window, studio: Studio, house: FakeHouse, qtbot: QtBot) -> AnswerView:
    house.holds_replies = True
    ask(window, "Hi")
    qtbot.waitUntil(lambda: answer_of(window).text == "Hello from the fake.", timeout=WAIT_MS)
    house.die()
    qtbot.waitUntil(lambda: not studio.is_connected, timeout=WAIT_MS)
    assert answer_of(window).text == "Hello from the fake."
    qtbot.waitUntil(lambda: studio.is_connected and not window.dialogue.is_busy, timeout=WAIT_MS)
    qtbot.waitUntil(lambda: offers_to_try_again(answer_of(window)), timeout=WAIT_MS)
    house.holds_replies = False
    return answer_of(window)


def test_an_answer_whose_service_died_says_so_and_keeps_its_text(
    studio_window: Opened, house: FakeHouse, qtbot: QtBot
) -> None:
    window, studio = studio_window()
    answer = break_off(window, studio, house, qtbot)
    assert answer.text == "Hello from the fake."
    panel = error_of(answer)
    assert panel._title.text() == "The answer broke off"
    assert panel._message.text() == "The service ended while this was written."
    assert panel._retry.isVisible()
    assert "Stopped" not in answer.caption._facts.text()


def test_an_answer_whose_service_died_can_be_written_again(
    studio_window: Opened, house: FakeHouse, qtbot: QtBot
) -> None:
    window, studio = studio_window()
    answer = break_off(window, studio, house, qtbot)
    house.words = ["Whole."]
    error_of(answer)._retry.click()
    qtbot.waitUntil(lambda: answer.text == "Whole." and not window.dialogue.is_busy, timeout=WAIT_MS)
    assert answer._error is None


def test_only_the_last_answer_offers_to_try_again(
    studio_window: Opened, house: FakeHouse, qtbot: QtBot
) -> None:
    window, studio = studio_window()
    first = break_off(window, studio, house, qtbot)
    ask(window, "Again?")
    qtbot.waitUntil(lambda: answer_of(window) is not first and not window.dialogue.is_busy, timeout=WAIT_MS)
    assert not error_of(first)._retry.isVisible()


def test_it_is_told_in_korean(
    studio_window: Opened, house: FakeHouse, qtbot: QtBot, language: Language
) -> None:
    house.settings["appearance"]["language"] = "ko"
    window, studio = studio_window()
    qtbot.waitUntil(lambda: window.chat.composer._send.text() == "보내기", timeout=WAIT_MS)
    panel = error_of(break_off(window, studio, house, qtbot))
    assert "예기치 않게 종료" in panel._message.text()
    assert panel._title.text() == "답변이 중간에 끊겼습니다"


def test_the_port_is_open_again_where_it_was(studio_window: Opened, house: FakeHouse, qtbot: QtBot) -> None:
    window, studio = studio_window()
    open_port(studio, qtbot)
    lose_the_service(studio, house, qtbot)
    qtbot.waitUntil(lambda: studio.server.is_on, timeout=WAIT_MS)
    assert (house.status.is_on, house.status.port) == (True, 4321)
    assert window.strip.server._button.text() == "API 127.0.0.1:4321"
    assert studio.lost_port is None and not notice_of(window).isVisible()


def notice_of(window: Window) -> PortNotice:
    return window.findChildren(PortNotice)[0]


def test_a_port_that_was_closed_stays_closed(studio_window: Opened, house: FakeHouse, qtbot: QtBot) -> None:
    _, studio = studio_window()
    open_port(studio, qtbot)
    studio.switch_server()
    qtbot.waitUntil(lambda: not studio.server.is_on, timeout=WAIT_MS)
    lose_the_service(studio, house, qtbot)
    qtbot.wait(50)
    assert not house.status.is_on and studio.lost_port is None


def test_a_port_that_cannot_be_opened_again_is_told_with_one_button(
    studio_window: Opened, house: FakeHouse, qtbot: QtBot
) -> None:
    window, studio = studio_window()
    notice = notice_of(window)
    open_port(studio, qtbot)
    house.port_error = TAKEN
    lose_the_service(studio, house, qtbot)
    qtbot.waitUntil(notice.isVisible, timeout=WAIT_MS)
    assert "127.0.0.1:4321 and is off now. 127.0.0.1:4321 is taken" in notice._text.text()
    assert not window.toast.isVisible()
    house.port_error = None
    notice._again.click()
    qtbot.waitUntil(lambda: studio.server.is_on and not notice.isVisible(), timeout=WAIT_MS)
    assert house.status.port == 4321


def test_the_port_can_be_left_off(studio_window: Opened, house: FakeHouse, qtbot: QtBot) -> None:
    window, studio = studio_window()
    open_port(studio, qtbot)
    house.port_error = TAKEN
    lose_the_service(studio, house, qtbot)
    qtbot.waitUntil(notice_of(window).isVisible, timeout=WAIT_MS)
    notice_of(window)._close.click()
    assert not notice_of(window).isVisible()
    house.port_error = None
    lose_the_service(studio, house, qtbot)
    qtbot.wait(50)
    assert not studio.server.is_on


@pytest.mark.parametrize(
    ("event", "stage"),
    [
        (ReplyLoading(share=0.426), "Loading model 42 %"),
        (ReplyLoading(share=0.996), "Loading model 99 %"),
        (ReplyLoading(share=1.0), "Reading prompt…"),
        (ReplyReading(done=8, total=20), "Reading prompt"),
    ],
)
def test_a_model_that_is_loaded_is_not_loading_any_more(
    window: Window, event: ReplyLoading | ReplyReading, stage: str
) -> None:
    window.chat.conversation.follow(event)
    assert answer_of(window).writing._stage.text() == stage
