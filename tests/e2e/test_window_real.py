"""The real window on a real (virtual) screen, with the real service and the starter model."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from octavo.core.chats.store import ChatStore
from octavo.core.chats.types import Chat
from octavo.core.client import ServiceClient
from octavo.core.client.types import ServerStatus
from octavo.core.config.paths import Home
from octavo.core.errors import OctavoError
from tests.e2e.screen import Screen, virtual_screen

ROOT = Path(__file__).resolve().parent.parent.parent
PICTURES = ROOT / "build" / "screenshots"
QUESTION = "Name three colours."


@pytest.fixture(scope="module")
def screen() -> Iterator[Screen]:
    with virtual_screen() as running:
        yield running


@pytest.fixture
def home(octavo_home: Path) -> Iterator[Home]:
    """A home whose service is ended with the test, whatever happened."""
    place = Home(octavo_home)
    yield place
    ask(place, ServiceClient.stop_service)


@pytest.fixture
def app(screen: Screen, home: Home, smollm2: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """The app as `octavo-desktop` starts it."""
    environment = {**screen.environment, "OCTAVO_HOME": str(home.root), "OCTAVO_STARTER_MODEL": str(smollm2)}
    process = subprocess.Popen([sys.executable, "-m", "octavo.desktop.app"], env=environment)
    yield process
    if process.poll() is None:
        process.kill()
        process.wait(10)


def ask(home: Home, question: Callable[[ServiceClient], object]) -> object:
    """Ask the running service; None where none answers."""

    async def connected() -> object:
        async with await ServiceClient.connect(home) as client:
            return await question(client)  # type: ignore[misc]

    try:
        return asyncio.run(connected())
    except OctavoError:
        return None


def wait_for(what: str, ready: Callable[[], object], seconds: float) -> object:
    """Wait until something is so and give it; a test fails by name when it never is."""
    end = time.monotonic() + seconds
    while not (found := ready()):
        assert time.monotonic() < end, f"{what} did not happen within {seconds} s"
        time.sleep(0.05)
    return found


def open_window(screen: Screen, app: "subprocess.Popen[bytes]") -> None:
    """Wait for the window and give it the keyboard."""
    wait_for("the window with the keyboard", lambda: screen.focus(app.pid), 30)


def model_is_ready(home: Home) -> bool:
    """Say whether the service has a model in memory."""
    instances = ask(home, ServiceClient.instances)
    return isinstance(instances, list) and any(status.state == "ready" for status in instances)


async def newest(client: ServiceClient) -> Chat | None:
    """Read the chat that was used last."""
    chats = await client.chats()
    return await client.chat(chats[0].id) if chats else None


def answer_in(home: Home) -> str:
    """Give the text of the last answer of the newest chat, as far as it is written."""

    chat = ask(home, newest)
    if not isinstance(chat, Chat) or not chat.messages or chat.messages[-1].role != "assistant":
        return ""
    return chat.messages[-1].content


def reply_has_ended(home: Home) -> bool:
    """Say whether nothing is being written."""
    chats = ask(home, ServiceClient.chats)
    return isinstance(chats, list) and bool(chats) and chats[0].reply is None


def services_of(home: Home) -> list[psutil.Process]:
    """Find the processes of a home's service."""
    found = []
    for process in psutil.process_iter(["cmdline"]):
        if "octavo.server.service" in (process.info["cmdline"] or []):
            try:
                if process.environ().get("OCTAVO_HOME") == str(home.root):
                    found.append(process)
            except psutil.Error:
                continue
    return found


def test_a_newcomers_first_start(screen: Screen, app: "subprocess.Popen[bytes]", home: Home) -> None:
    """The window opens, the starter model loads by itself, a question streams, closing ends it with 0."""
    open_window(screen, app)
    wait_for("the load of the starter model", lambda: model_is_ready(home), 60)
    screen.type(QUESTION)
    screen.press("Return")
    asked = time.monotonic()
    wait_for("the first text of an answer", lambda: answer_in(home), 60)
    print(f"first text stored {time.monotonic() - asked:.2f} s after Return")
    wait_for("the end of the answer", lambda: reply_has_ended(home), 120)
    time.sleep(0.3)
    screen.picture(PICTURES / "real-window.png")
    screen.press("ctrl+q")
    assert app.wait(10) == 0


def test_the_window_outlives_its_service(screen: Screen, app: "subprocess.Popen[bytes]", home: Home) -> None:
    """``kill -9`` of the service: the window starts another one, which loads the model and answers."""
    open_window(screen, app)
    wait_for("the load of the starter model", lambda: model_is_ready(home), 60)
    (first,) = services_of(home)
    first.kill()
    wait_for("another service", lambda: [p for p in services_of(home) if p.pid != first.pid], 30)
    wait_for("the load in it", lambda: model_is_ready(home), 60)
    assert app.poll() is None
    screen.type(QUESTION)
    screen.press("Return")
    wait_for("the first text of an answer", lambda: answer_in(home), 60)
    screen.press("Escape")
    wait_for("the end of the answer", lambda: reply_has_ended(home), 60)
    os.kill(app.pid, signal.SIGTERM)
    assert app.wait(10) == 0


def begin_long_answer(screen: Screen, app: "subprocess.Popen[bytes]", home: Home) -> None:
    """Have an answer written that goes on for minutes."""
    open_window(screen, app)
    wait_for("the load of the starter model", lambda: model_is_ready(home), 60)
    screen.type("Write a very long story about a printer.")
    screen.press("Return")
    wait_for("the first text of an answer", lambda: answer_in(home), 60)


def test_a_service_killed_with_the_api_on_comes_back_with_it(
    screen: Screen, app: "subprocess.Popen[bytes]", home: Home
) -> None:
    """``kill -9`` in an answer: the port is open again where it was, and the answer says what happened."""
    begin_long_answer(screen, app, home)
    opened = ask(home, lambda client: client.start_server(port=0))
    assert isinstance(opened, ServerStatus) and opened.is_on
    time.sleep(1)  # the window hears of it
    (first,) = services_of(home)
    first.kill()
    killed = time.monotonic()
    wait_for("another service", lambda: [p for p in services_of(home) if p.pid != first.pid], 30)
    wait_for("the open port", lambda: ask(home, ServiceClient.server) == opened, 30)
    print(f"the port was open again {time.monotonic() - killed:.1f} s after the service was killed")
    left = ask(home, newest)
    assert isinstance(left, Chat)
    assert (left.reply, left.messages[-1].state) == (None, "failed")
    assert left.messages[-1].content and left.messages[-1].error is not None
    time.sleep(0.5)
    screen.picture(PICTURES / "real-window-broken-off.png")


def test_a_killed_window_takes_its_service_along_even_while_it_answers(
    screen: Screen, app: "subprocess.Popen[bytes]", home: Home
) -> None:
    """``kill -9`` of the window with the API off: the service ends within 15 s and keeps the text."""
    begin_long_answer(screen, app, home)
    app.kill()
    app.wait(10)
    killed = time.monotonic()
    wait_for("the end of the service", lambda: not services_of(home), 15)
    print(f"the service ended {time.monotonic() - killed:.1f} s after the window was killed")
    kept = asyncio.run(newest_chat(home))
    assert kept.messages[-1].content
    assert kept.messages[-1].state == "cancelled"
    assert "service ends: nobody needs it" in (home.logs / "service.log").read_text()


def test_with_the_api_on_the_service_and_the_answer_outlive_the_window(
    screen: Screen, app: "subprocess.Popen[bytes]", home: Home
) -> None:
    """``kill -9`` of the window with the API on: the answer is written on, and the service stays."""
    begin_long_answer(screen, app, home)
    ask(home, lambda client: client.start_server(port=0))
    app.kill()
    app.wait(10)
    written = len(answer_in(home))
    wait_for("more of the answer", lambda: len(answer_in(home)) > written + 100, 30)
    time.sleep(12)  # past the grace of a service that nobody needs
    assert services_of(home)
    assert ask(home, ServiceClient.health)


async def newest_chat(home: Home) -> Chat:
    """Read the newest chat from the database, when no service runs."""
    store = ChatStore.open(home.database)
    try:
        return await store.chat((await store.chats())[0].id)
    finally:
        await store.close()
