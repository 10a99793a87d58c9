"""Write a picture of every view, dark and light, in English and Korean, into build/screenshots (1280×800).

`make screenshots` runs it. The window is the real one; the service behind it is the fake of the desktop
tests, so that the pictures show the same content every time.
"""

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
sys.path.insert(0, str(ROOT))

from PySide6.QtCore import QEvent  # noqa: E402
from PySide6.QtWidgets import QApplication  # noqa: E402

from octavo.core.chats.types import Chat, ChatMessage, MessageStats, ReplySnapshot, ReplyText  # noqa: E402
from octavo.core.errors import InsufficientMemory  # noqa: E402
from octavo.desktop.app import make_application, make_window  # noqa: E402
from octavo.desktop.values import ReplyMoved  # noqa: E402
from octavo.desktop.views.window import Window  # noqa: E402
from octavo.desktop.widgets.answer import AnswerView  # noqa: E402
from tests.desktop.fake_client import FakeHouse, figures, model  # noqa: E402
from tests.desktop.scenes import CHATS, SCENES, Scene  # noqa: E402

PICTURES = ROOT / "build" / "screenshots"
LLAMA = model("bartowski/Meta-Llama-3.1-8B-Instruct", "Llama 3.1 8B Instruct", "Q4_K_M", 4_920_000_000)
STARTER = model("HuggingFaceTB/SmolLM2-135M-Instruct", "SmolLM2 135M Instruct", "Q4_1", 98_362_432)
QWEN = model("Qwen/Qwen3-4B-Instruct", "Qwen3 4B Instruct", "Q5_K_M", 2_890_000_000)
BROKEN = model(
    "someone/half-a-file", "half-a-file", "", 1_240_000_000, fault="The file ends in the tensor table."
)
STATS = MessageStats(
    prompt_tokens=1017,
    cached_tokens=788,
    completion_tokens=187,
    tokens_per_s=8.4,
    first_token_s=1.3,
    prefill_s=1.3,
    stop_reason="stop",
)


def main() -> int:
    """Take all pictures, or those of the views that are named."""
    chosen = _chosen()
    application = make_application()
    PICTURES.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="octavo-pictures-") as folder:
        os.environ["OCTAVO_HOME"] = folder
        _take_all(application, chosen)
    if "chat" in chosen:
        (ROOT / "docs").mkdir(exist_ok=True)
        shutil.copyfile(PICTURES / "chat-dark-en.png", ROOT / "docs" / "window.png")
    return 0


def _chosen() -> list[str]:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("view", nargs="*", help=f"which to take, of {', '.join(POSES)}; without one, all")
    named: list[str] = parser.parse_args().view
    if unknown := [name for name in named if name not in POSES]:
        parser.error(f"there is no view {', '.join(unknown)}")
    return named or list(POSES)


def _take_all(application: QApplication, chosen: list[str]) -> None:
    for language in ("en", "ko"):
        for theme in ("dark", "light"):
            for name in chosen:
                picture = PICTURES / f"{name}-{theme}-{language}.png"
                _take(application, picture, POSES[name], theme, language)
                print(picture.relative_to(ROOT))


def _take(
    application: QApplication,
    picture: Path,
    pose: "Callable[[Window, FakeHouse, Scene], None]",
    theme: str,
    language: str,
) -> None:
    house = _house(theme, language)
    if pose is pose_no_models:
        house.models = []
    window, studio = make_window(application, house.open)
    studio.remembered.keep("model", LLAMA.key)
    studio.current = LLAMA.key
    window.resize(1280, 800)
    window.show()
    studio.bridge.start()
    _until(application, lambda: studio.is_connected and (studio.instance is not None or not house.models))
    _until(application, lambda: studio.instance is None or studio.instance.state == "ready")
    pose(window, house, SCENES[language])
    _settle(application)
    window.grab().save(str(picture))
    window.close()
    window.deleteLater()
    _settle(application)


def pose_empty(window: Window, house: FakeHouse, scene: Scene) -> None:
    """A new chat."""
    window.dialogue.start_new()


def pose_chat(window: Window, house: FakeHouse, scene: Scene) -> None:
    """A finished answer with code and a table, and one that is being written."""
    house.publish(figures(LLAMA.key, 1.01, 4.58, 8.4, (1204, 8192)))
    _open(window, house, scene)
    window.dialogue._on_reply_moved(
        ReplyMoved("c0", ReplySnapshot(reply="r", chat="c0", message="m4", text="", state="writing"))
    )
    for tokens, text in ((1, scene.writing[:8]), (61, scene.writing[8:])):
        window.dialogue._on_reply_moved(ReplyMoved("c0", ReplyText(text=text, tokens=tokens)))
    _answer(window).writing.show_writing(61, 8.4)


def pose_picker(window: Window, house: FakeHouse, scene: Scene) -> None:
    """The list of models over the page."""
    pose_chat(window, house, scene)
    window.picker.open()


def pose_palette(window: Window, house: FakeHouse, scene: Scene) -> None:
    """The command palette."""
    pose_chat(window, house, scene)
    window.palette_box.open()


def pose_settings(window: Window, house: FakeHouse, scene: Scene) -> None:
    """The settings page."""
    window.open_page("settings")


def pose_error(window: Window, house: FakeHouse, scene: Scene) -> None:
    """An answer that failed, with its details open."""
    _open(window, house, scene, failed=True)
    window.dialogue._set_busy(False)
    panel = _answer(window)._error
    assert panel is not None
    panel._on_fold_clicked()


def pose_no_models(window: Window, house: FakeHouse, scene: Scene) -> None:
    """An empty library."""


POSES = {
    "chat": pose_chat,
    "empty": pose_empty,
    "picker": pose_picker,
    "palette": pose_palette,
    "settings": pose_settings,
    "error": pose_error,
    "no-models": pose_no_models,
}


def _answer(window: Window) -> AnswerView:
    answer = window.chat.conversation.last_answer
    assert answer is not None
    return answer


def _house(theme: str, language: str) -> FakeHouse:
    house = FakeHouse([LLAMA, QWEN, STARTER, BROKEN])
    house.settings = {"appearance": {"theme": theme, "language": language}}
    now = time.time()
    for number, (title, age_h) in enumerate(CHATS[language]):
        moment = now - age_h * 3600
        house.chats[f"c{number}"] = Chat(
            id=f"c{number}",
            title=title,
            model=LLAMA.key,
            system_prompt=SCENES[language].system_prompt if number == 0 else "",
            sampling={"temperature": 0.4, "top_p": 0.9, "repeat_penalty": 1.08} if number == 0 else {},
            created=moment,
            updated=moment,
            messages=[],
        )
    return house


def _open(window: Window, house: FakeHouse, scene: Scene, failed: bool = False) -> None:
    now = time.time()
    error = InsufficientMemory(
        "The KV cache needs 4.00 GiB at 32,768 tokens, and 2.31 GiB are free.",
        hint="Use a shorter context, or unload another model.",
        model=LLAMA.key,
        needed_bytes=4_294_967_296,
        available_bytes=2_480_343_613,
    ).report()
    last = ChatMessage(id="m4", role="assistant", content="", created=now, state="writing")
    if failed:
        last = ChatMessage(id="m4", role="assistant", content="", created=now, state="failed", error=error)
    turns = [
        ChatMessage(id="m1", role="user", content=scene.question, created=now),
        ChatMessage(id="m2", role="assistant", content=scene.answer, created=now, stats=STATS),
        ChatMessage(id="m3", role="user", content=scene.next_question, created=now),
        last,
    ]
    house.chats["c0"] = _with(house.chats["c0"], turns, None if failed else "r")
    window.dialogue._wanted = "c0"
    window.dialogue._on_chat_opened(house.chats["c0"])


def _with(chat: Chat, turns: list[ChatMessage], reply: str | None) -> Chat:
    import msgspec

    return msgspec.structs.replace(chat, messages=turns, reply=reply)


def _until(application: QApplication, ready: Callable[[], bool]) -> None:
    end = time.monotonic() + 10
    while not ready():
        if time.monotonic() > end:
            raise TimeoutError("the window did not get ready for its picture")
        application.processEvents()
        time.sleep(0.002)


def _settle(application: QApplication) -> None:
    end = time.monotonic() + 0.15
    while time.monotonic() < end:
        application.processEvents()
        application.sendPostedEvents(None, QEvent.Type.DeferredDelete)
        time.sleep(0.002)


if __name__ == "__main__":
    sys.exit(main())
