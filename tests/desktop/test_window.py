"""The window as a person meets it, over a fake service."""

from collections.abc import Callable
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractItemView,
    QAbstractSlider,
    QLineEdit,
    QPlainTextEdit,
    QScrollBar,
    QTextEdit,
    QWidget,
)
from pytestqt.qtbot import QtBot

from octavo.core.chats.types import ReplyText
from octavo.core.errors import LoadFailed, WorkerCrashed
from octavo.desktop.studio import Studio
from octavo.desktop.theme.look import Look
from octavo.desktop.views.window import Window
from octavo.desktop.widgets.answer import AnswerView
from octavo.desktop.widgets.question import QuestionView
from tests.desktop.fake_client import STARTER, FakeHouse, figures

WAIT_MS = 5000
Opened = Callable[[], tuple[Window, Studio]]


def type_and_send(window: Window, text: str) -> None:
    edit = window.chat.composer.edit
    edit.setFocus()
    QTest.keyClicks(edit, text)
    QTest.keyClick(edit, Qt.Key.Key_Return)


def answer_of(window: Window) -> AnswerView:
    answer = window.chat.conversation.last_answer
    assert answer is not None
    return answer


def questions_in(window: Window) -> list[str]:
    return [view.text for view in window.chat.conversation.findChildren(QuestionView) if view.isVisible()]


def wait_for_answer(qtbot: QtBot, window: Window) -> None:
    qtbot.waitUntil(lambda: not window.dialogue.is_busy and bool(answer_of(window).text), timeout=WAIT_MS)


def test_the_starter_model_is_loaded_by_itself(studio_window: Opened, house: FakeHouse, qtbot: QtBot) -> None:
    window, studio = studio_window()
    qtbot.waitUntil(lambda: studio.instance is not None and studio.instance.state == "ready", timeout=WAIT_MS)
    assert studio.current == STARTER.key
    assert window.top_bar.eject.isEnabled()


def test_a_first_question_makes_a_chat_and_streams_its_answer(
    studio_window: Opened, house: FakeHouse, qtbot: QtBot
) -> None:
    window, _ = studio_window()
    type_and_send(window, "Hello, who are you?")
    assert questions_in(window) == ["Hello, who are you?"]
    assert window.chat.composer.edit.toPlainText() == ""
    wait_for_answer(qtbot, window)
    assert answer_of(window).text == "Hello from the fake."
    (chat,) = house.chats.values()
    assert chat.title == "Hello, who are you?"
    assert window.dialogue.chat_id == chat.id
    type_and_send(window, "And more?")
    wait_for_answer(qtbot, window)
    qtbot.waitUntil(lambda: len(house.chats[chat.id].messages) == 4, timeout=WAIT_MS)


def test_an_answer_is_written_again_in_its_place(
    studio_window: Opened, house: FakeHouse, qtbot: QtBot
) -> None:
    window, _ = studio_window()
    type_and_send(window, "Hi")
    wait_for_answer(qtbot, window)
    first = answer_of(window)
    house.words = ["Another", " one."]
    first.caption.again_wanted.emit()
    qtbot.waitUntil(lambda: first.text == "Another one." and not window.dialogue.is_busy, timeout=WAIT_MS)
    assert answer_of(window) is first
    assert questions_in(window) == ["Hi"]


def test_escape_stops_an_answer_and_its_text_stays(
    studio_window: Opened, house: FakeHouse, qtbot: QtBot
) -> None:
    house.holds_replies = True
    window, _ = studio_window()
    type_and_send(window, "Hi")
    qtbot.waitUntil(lambda: answer_of(window).text == "Hello from the fake.", timeout=WAIT_MS)
    assert window.actions_table["stop"].isEnabled()
    window.actions_table["stop"].trigger()
    wait_for_answer(qtbot, window)
    assert answer_of(window).text == "Hello from the fake."
    assert any(call.startswith("stop_reply") for call in house.calls)
    assert not window.actions_table["stop"].isEnabled()


def test_a_question_that_could_not_be_put_comes_back(
    studio_window: Opened, house: FakeHouse, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    window, _ = studio_window()
    error = WorkerCrashed("The worker ended: SIGKILL.", hint="Ask again.", signal="SIGKILL")

    async def refuse(*_arguments: object) -> None:
        raise error

    monkeypatch.setattr(house.clients[0], "create_chat", lambda **_fields: refuse())
    type_and_send(window, "Precious words")
    qtbot.waitUntil(lambda: not window.dialogue.is_busy, timeout=WAIT_MS)
    assert window.chat.composer.edit.toPlainText() == "Precious words"
    assert answer_of(window)._error is not None


def test_a_failed_load_is_told_in_place(studio_window: Opened, house: FakeHouse, qtbot: QtBot) -> None:
    house.load_error = LoadFailed("llama.cpp refused the model.", log=["line one", "line two"])
    window, _ = studio_window()
    panel = window.chat._load_error
    qtbot.waitUntil(panel.isVisible, timeout=WAIT_MS)
    assert panel._message.text() == "llama.cpp refused the model."
    assert "line two" in panel._details.toPlainText()
    house.load_error = None
    panel.retry_wanted.emit()
    qtbot.waitUntil(lambda: not panel.isVisible(), timeout=WAIT_MS)


def test_without_models_there_is_one_thing_to_do(
    studio_window: Opened, house: FakeHouse, qtbot: QtBot
) -> None:
    house.models = []
    window, studio = studio_window()
    assert window.chat._middle.currentWidget() is window.chat._no_model
    studio.add_model(Path("/models/some.gguf"))
    qtbot.waitUntil(lambda: studio.instance is not None, timeout=WAIT_MS)
    assert "import /models/some.gguf" in house.calls
    assert window.chat._middle.currentWidget() is window.chat._greeting


def test_drafts_stay_with_their_chat(studio_window: Opened, house: FakeHouse, qtbot: QtBot) -> None:
    window, _ = studio_window()
    type_and_send(window, "First chat")
    wait_for_answer(qtbot, window)
    first = window.dialogue.chat_id
    QTest.keyClicks(window.chat.composer.edit, "half a thought")
    window.actions_table["new_chat"].trigger()
    assert window.chat.composer.edit.toPlainText() == ""
    QTest.keyClicks(window.chat.composer.edit, "other words")
    window.dialogue.open(first)
    qtbot.waitUntil(lambda: window.chat.composer.edit.toPlainText() == "half a thought", timeout=WAIT_MS)
    window.actions_table["new_chat"].trigger()
    assert window.chat.composer.edit.toPlainText() == "other words"


def test_the_setup_is_kept_with_the_chat(studio_window: Opened, house: FakeHouse, qtbot: QtBot) -> None:
    window, _ = studio_window()
    window.chat.panel._prompt.setPlainText("Be brief.")
    window.chat.panel._fields["temperature"]._slider.setValue(8)
    type_and_send(window, "Hi")
    wait_for_answer(qtbot, window)
    (chat,) = house.chats.values()
    assert (chat.system_prompt, chat.sampling) == ("Be brief.", {"temperature": 0.4})
    window.chat.panel._reset.click()
    qtbot.waitUntil(lambda: house.chats[chat.id].sampling == {}, timeout=WAIT_MS)


def test_a_deleted_chat_can_be_brought_back(studio_window: Opened, house: FakeHouse, qtbot: QtBot) -> None:
    window, _ = studio_window()
    type_and_send(window, "Keep me")
    wait_for_answer(qtbot, window)
    chat = window.dialogue.chat_id
    window.chat.list.delete_wanted.emit(chat)
    assert not window.chat.list.model.index_of(chat).isValid()
    window.toast._action.click()
    assert window.chat.list.model.index_of(chat).isValid()
    window.chat.list.delete_wanted.emit(chat)
    window.toast._close.click()
    qtbot.waitUntil(lambda: house.chats == {}, timeout=WAIT_MS)


def test_the_strip_shows_the_figures(studio_window: Opened, house: FakeHouse, qtbot: QtBot) -> None:
    window, studio = studio_window()
    house.publish(figures(STARTER.key, 0.15, 0.10, 42.04, (412, 8192)))
    qtbot.waitUntil(lambda: studio.figures is not None, timeout=WAIT_MS)
    assert window.strip._used.text() == "0.25"
    assert window.strip._whole.text() == "/ 15.6 GiB"
    assert window.strip._kv._value.text() == "412 / 8,192"
    assert window.strip._speed._value.text() == "42.0 tok/s"
    widths = window.strip._bar.widths(200)
    assert len(widths) == 2 and all(width >= 3 for width in widths)


def test_the_port_is_opened_and_closed_by_a_click(
    studio_window: Opened, house: FakeHouse, qtbot: QtBot
) -> None:
    window, studio = studio_window()
    window.strip.server._button.click()
    qtbot.waitUntil(lambda: studio.server.is_on, timeout=WAIT_MS)
    assert window.strip.server._button.text() == "API 127.0.0.1:1234"
    window.strip.server._button.click()
    qtbot.waitUntil(lambda: not studio.server.is_on, timeout=WAIT_MS)


def test_theme_and_language_change_live_and_are_kept_by_the_service(
    studio_window: Opened, house: FakeHouse, qtbot: QtBot, look: Look
) -> None:
    window, _ = studio_window()
    window.settings.theme._buttons["light"].click()
    window.settings.language._buttons["ko"].click()
    qtbot.waitUntil(lambda: look.theme.name == "light", timeout=WAIT_MS)
    qtbot.waitUntil(lambda: window.chat.composer._send.text() == "보내기", timeout=WAIT_MS)
    assert house.settings["appearance"] == {"theme": "light", "language": "ko"}


def test_the_palette_finds_commands_in_both_languages(studio_window: Opened, qtbot: QtBot) -> None:
    window, _ = studio_window()
    window.settings.language._buttons["ko"].click()
    qtbot.waitUntil(lambda: window.chat.composer._send.text() == "보내기", timeout=WAIT_MS)
    window.actions_table["open_palette"].trigger()
    box = window.palette_box
    for letters in ("settings", "설정"):
        box._field.setText(letters)
        assert [entry.text for entry in box._model.entries] == ["설정"]
    QTest.keyClick(box._field, Qt.Key.Key_Return)
    assert not box.isVisible()
    assert window._pages.currentWidget() is window.settings
    window.actions_table["open_palette"].trigger()
    QTest.keyClick(box._field, Qt.Key.Key_Escape)
    assert not box.isVisible()


def test_the_picker_loads_what_is_chosen_and_leaves_what_is_broken(
    studio_window: Opened, house: FakeHouse, qtbot: QtBot
) -> None:
    from tests.desktop.fake_client import model

    other = model("b/other", "Other", "Q8_0", 10**9)
    house.models = [STARTER, other, model("b/broken", "Broken", "", 10, fault="cut off")]
    window, studio = studio_window()
    qtbot.waitUntil(lambda: studio.instance is not None, timeout=WAIT_MS)
    window.picker.open()
    rows = window.picker._model
    window.picker._list.clicked.emit(rows.index(2, 0))
    assert studio.current == STARTER.key
    window.picker._list.clicked.emit(rows.index(1, 0))
    qtbot.waitUntil(lambda: studio.instance_of(other.key) is not None, timeout=WAIT_MS)
    assert studio.current == other.key
    assert not window.picker.isVisible()


def test_a_long_chat_shows_its_end_first(studio_window: Opened, house: FakeHouse, qtbot: QtBot) -> None:
    from octavo.core.chats.types import Chat, ChatMessage

    window, _ = studio_window()
    turns = [
        ChatMessage(id=f"m{n}", role="assistant" if n % 2 else "user", content=f"turn {n}", created=0.0)
        for n in range(200)
    ]
    house.chats["long"] = Chat(
        id="long",
        title="Long",
        model=None,
        system_prompt="",
        sampling={},
        created=0.0,
        updated=0.0,
        messages=turns,
    )
    window.dialogue.open("long")
    qtbot.waitUntil(lambda: window.dialogue.chat_id == "long", timeout=WAIT_MS)
    assert len(questions_in(window)) == 15
    assert answer_of(window).text == "turn 199"
    window.chat.conversation._earlier.click()
    qtbot.waitUntil(lambda: len(questions_in(window)) == 30, timeout=WAIT_MS)


def test_every_control_has_an_accessible_name(studio_window: Opened, house: FakeHouse, qtbot: QtBot) -> None:
    house.words = ["Text\n\n```py\nx = 1\n```\n\n", "| a |\n|---|\n| 1 |\n\n", "end"]
    window, _ = studio_window()
    type_and_send(window, "Hi")
    wait_for_answer(qtbot, window)
    window.picker.open()
    window.palette_box.open()
    window.toast.show_text("Chat deleted.", "Undo")
    kinds = (QAbstractButton, QAbstractSlider, QLineEdit, QPlainTextEdit, QTextEdit, QAbstractItemView)
    nameless = [
        f"{type(child).__name__} in {type(child.parent()).__name__}"
        for kind in kinds
        for child in window.findChildren(kind)
        if not isinstance(child, QScrollBar) and not _is_part_of_qt(child) and not _name(child)
    ]
    assert nameless == []


def _name(widget: QWidget) -> str:
    shown = widget.text() if isinstance(widget, QAbstractButton) else ""
    return widget.accessibleName() or shown


def _is_part_of_qt(widget: QWidget) -> bool:
    return widget.objectName().startswith("qt_") or isinstance(widget.parent(), QLineEdit)


def test_tab_goes_from_the_list_over_the_conversation_and_the_composer_to_the_panel(
    studio_window: Opened, qtbot: QtBot
) -> None:
    window, _ = studio_window()
    type_and_send(window, "Hi")
    wait_for_answer(qtbot, window)
    window.chat.composer.edit.setPlainText("More")
    window.activateWindow()
    window.setFocus()
    window.chat.list.findChildren(QLineEdit)[0].setFocus()
    reached = ["Search chats"]
    for _ in range(40):
        QTest.keyClick(window.focusWidget(), Qt.Key.Key_Tab)
        reached.append(_name(window.focusWidget()))
    wanted = [
        "Search chats",
        "New chat",
        "Copy the answer",
        "Message",
        "Send",
        "System prompt",
        "Temperature",
    ]
    assert sorted(wanted, key=reached.index) == wanted
    assert {"Chat", "Search or run"} <= set(reached)


def test_a_deletion_that_can_still_be_undone_is_carried_out_when_the_window_closes(
    studio_window: Opened, house: FakeHouse, qtbot: QtBot
) -> None:
    window, _ = studio_window()
    type_and_send(window, "Away with it")
    wait_for_answer(qtbot, window)
    window.chat.list.delete_wanted.emit(window.dialogue.chat_id)
    assert house.chats
    window.close()
    assert house.chats == {}


def test_a_question_is_put_even_when_the_person_moves_on_at_once(
    studio_window: Opened, house: FakeHouse, qtbot: QtBot
) -> None:
    window, _ = studio_window()
    type_and_send(window, "Asked in passing")
    window.actions_table["new_chat"].trigger()
    qtbot.waitUntil(lambda: any(len(chat.messages) == 2 for chat in house.chats.values()), timeout=WAIT_MS)
    assert window.dialogue.chat is None
    assert not window.dialogue.is_busy


def test_stop_before_the_service_answered_stops_the_answer(
    studio_window: Opened, house: FakeHouse, qtbot: QtBot
) -> None:
    house.holds_replies = True
    window, _ = studio_window()
    type_and_send(window, "Never mind")
    window.actions_table["stop"].trigger()
    qtbot.waitUntil(lambda: not window.dialogue.is_busy, timeout=WAIT_MS)
    assert any(call.startswith("stop_reply") for call in house.calls)


def test_new_text_does_not_move_who_reads_above(
    studio_window: Opened, house: FakeHouse, qtbot: QtBot
) -> None:
    house.words = ["line\n\n"] * 60
    house.holds_replies = True
    window, _ = studio_window()
    type_and_send(window, "Much")
    view = window.chat.conversation
    bar = view.verticalScrollBar()
    qtbot.waitUntil(lambda: answer_of(window).text.count("line") == 60 and bar.maximum() > 0, timeout=WAIT_MS)
    qtbot.waitUntil(lambda: bar.value() == bar.maximum(), timeout=WAIT_MS)
    bar.setValue(0)
    view.follow(ReplyText(text="more\n\n" * 20, tokens=99))
    qtbot.waitUntil(view._pill.isVisible, timeout=WAIT_MS)
    qtbot.wait(50)
    assert bar.value() == 0
    view._pill.click()
    qtbot.waitUntil(lambda: bar.value() == bar.maximum() and not view._pill.isVisible(), timeout=WAIT_MS)
    view.follow(ReplyText(text="last\n\n" * 20, tokens=120))
    qtbot.wait(50)
    assert bar.value() == bar.maximum()
    window.dialogue.stop()
    qtbot.waitUntil(lambda: not window.dialogue.is_busy, timeout=WAIT_MS)
