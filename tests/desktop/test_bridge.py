"""The crossing: news on the main thread, wishes that never wait, a service that dies and comes back."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QObject, QThread, Slot
from pytestqt.qtbot import QtBot

from octavo.core.config.paths import Home
from octavo.core.events import ActionTaken
from octavo.desktop.bridge import Bridge
from octavo.desktop.values import Connection, ReplyMoved, WishFailed
from tests.desktop.fake_client import FakeHouse

WAIT_MS = 5000


class Listener(QObject):
    """Keeps what the bridge told, and on which thread."""

    def __init__(self, bridge: Bridge) -> None:
        super().__init__()
        self.told: list[object] = []
        self.threads: set[QThread] = set()
        bridge.connection_changed.connect(self._on_told)
        bridge.models_listed.connect(self._on_told)
        bridge.event_arrived.connect(self._on_told)
        bridge.chat_made.connect(self._on_told)
        bridge.reply_began.connect(self._on_told)
        bridge.reply_moved.connect(self._on_told)
        bridge.wish_failed.connect(self._on_told)

    @Slot(object)
    def _on_told(self, told: object) -> None:
        self.told.append(told)
        self.threads.add(QThread.currentThread())

    def of(self, kind: type) -> list[object]:
        """Give what was told of one kind."""
        return [told for told in self.told if isinstance(told, kind)]

    @property
    def states(self) -> list[str]:
        """Give the states of the connection, in order."""
        return [told.state for told in self.told if isinstance(told, Connection)]


@pytest.fixture
def bridge(house: FakeHouse, octavo_home: Path, qtbot: QtBot) -> Iterator[Bridge]:
    made = Bridge(Home(octavo_home), house.open)
    yield made
    assert made.close()
    made.deleteLater()


def test_news_arrives_on_the_main_thread(bridge: Bridge, house: FakeHouse, qtbot: QtBot) -> None:
    listener = Listener(bridge)
    bridge.start()
    qtbot.waitUntil(lambda: "connected" in listener.states, timeout=WAIT_MS)
    assert listener.states == ["connecting", "connected"]
    house.publish(ActionTaken(text="unloaded"))
    qtbot.waitUntil(lambda: bool(listener.of(ActionTaken)), timeout=WAIT_MS)
    assert listener.threads == {listener.thread()}
    assert house.clients[0].lease_kind == "window"


def test_a_load_goes_with_the_lease(bridge: Bridge, house: FakeHouse, qtbot: QtBot) -> None:
    listener = Listener(bridge)
    bridge.start()
    qtbot.waitUntil(lambda: "connected" in listener.states, timeout=WAIT_MS)
    bridge.load_model("m")
    qtbot.waitUntil(lambda: any(call.startswith("load m") for call in house.calls), timeout=WAIT_MS)
    assert "load m lease=lease-1" in house.calls


def test_a_reply_is_followed_to_its_end(bridge: Bridge, house: FakeHouse, qtbot: QtBot) -> None:
    listener = Listener(bridge)
    bridge.start()
    qtbot.waitUntil(lambda: "connected" in listener.states, timeout=WAIT_MS)
    bridge.make_chat(title="t")
    qtbot.waitUntil(lambda: bool(house.chats), timeout=WAIT_MS)
    (chat,) = house.chats
    bridge.ask(chat, "hi", None)

    def ended() -> bool:
        return any(type(moved.event).__name__ == "ReplyEnded" for moved in listener.of(ReplyMoved))  # type: ignore[attr-defined]

    qtbot.waitUntil(ended, timeout=WAIT_MS)
    events = [moved.event for moved in listener.of(ReplyMoved)]  # type: ignore[attr-defined]
    text = "".join(event.text for event in events if type(event).__name__ in ("ReplySnapshot", "ReplyText"))
    assert text == "".join(house.words)
    assert events[-1].message.content == text


def test_pieces_of_text_are_joined_to_at_most_thirty_a_second(
    bridge: Bridge, house: FakeHouse, qtbot: QtBot
) -> None:
    house.words = ["w "] * 400
    house.pause_s = 0.001
    listener = Listener(bridge)
    bridge.start()
    qtbot.waitUntil(lambda: "connected" in listener.states, timeout=WAIT_MS)
    bridge.make_chat(title="t")
    qtbot.waitUntil(lambda: bool(house.chats), timeout=WAIT_MS)
    began = time.monotonic()
    bridge.ask(next(iter(house.chats)), "hi", None)

    def texts() -> list[object]:
        return [m.event for m in listener.of(ReplyMoved) if type(m.event).__name__ == "ReplyText"]  # type: ignore[attr-defined]

    qtbot.waitUntil(lambda: sum(len(event.text) for event in texts()) == 800, timeout=10_000)  # type: ignore[attr-defined]
    spent = time.monotonic() - began
    assert len(texts()) <= 30 * spent + 2


def test_a_dead_service_is_started_again_and_the_lease_taken_anew(
    bridge: Bridge, house: FakeHouse, qtbot: QtBot
) -> None:
    listener = Listener(bridge)
    bridge.start()
    qtbot.waitUntil(lambda: "connected" in listener.states, timeout=WAIT_MS)
    house.die()
    qtbot.waitUntil(lambda: listener.states.count("connected") == 2, timeout=WAIT_MS)
    assert listener.states == ["connecting", "connected", "lost", "connecting", "connected"]
    assert (house.opened, house.clients[0].lease_kind) == (2, "window")


def test_a_service_that_does_not_start_is_tried_less_and_less_often(
    bridge: Bridge, house: FakeHouse, qtbot: QtBot
) -> None:
    house.refuse_opening = True
    listener = Listener(bridge)
    bridge.start()
    qtbot.waitUntil(lambda: listener.states.count("lost") >= 2, timeout=WAIT_MS)
    waits = [told.retry_s for told in listener.of(Connection) if told.state == "lost"]  # type: ignore[attr-defined]
    assert waits[1] > waits[0]
    house.refuse_opening = False
    qtbot.waitUntil(lambda: "connected" in listener.states, timeout=WAIT_MS)


def test_a_wish_that_cannot_be_granted_is_told(bridge: Bridge, house: FakeHouse, qtbot: QtBot) -> None:
    listener = Listener(bridge)
    bridge.start()
    qtbot.waitUntil(lambda: "connected" in listener.states, timeout=WAIT_MS)
    bridge.open_chat("nothing")
    qtbot.waitUntil(lambda: bool(listener.of(WishFailed)), timeout=WAIT_MS)
    (failed,) = listener.of(WishFailed)
    assert isinstance(failed, WishFailed)
    assert (failed.wish, failed.subject, failed.error.code) == ("open", "nothing", "chat_not_found")


def test_closing_ends_the_lease_and_the_thread_at_once(
    house: FakeHouse, octavo_home: Path, qtbot: QtBot
) -> None:
    bridge = Bridge(Home(octavo_home), house.open)
    listener = Listener(bridge)
    bridge.start()
    qtbot.waitUntil(lambda: "connected" in listener.states, timeout=WAIT_MS)
    client = house.clients[0]
    began = time.monotonic()
    assert bridge.close()
    assert time.monotonic() - began < 2
    assert client.closed
    assert not [thread for thread in threading.enumerate() if thread.name == "octavo-courier"]
    assert bridge.close()
