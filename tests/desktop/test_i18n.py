"""Both languages are complete, and change live."""

import ast
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from importlib.resources import as_file, files
from pathlib import Path

from PySide6.QtWidgets import QAbstractButton, QApplication, QLabel, QWidget
from pytestqt.qtbot import QtBot

import octavo.desktop
from octavo.desktop.language import Language
from octavo.desktop.views.window import Window

FOLDER = Path(octavo.desktop.__file__).resolve().parent
PLACEHOLDER = re.compile(r"\{[a-z_]+\}|%n")


def _messages(path: Path) -> dict[tuple[str, str, str], ET.Element]:
    found = {}
    for context in ET.parse(path).iter("context"):
        name = context.findtext("name") or ""
        for message in context.iter("message"):
            key = (name, message.findtext("source") or "", message.findtext("comment") or "")
            found[key] = message
    return found


def _extracted(folder: Path) -> dict[tuple[str, str, str], ET.Element]:
    target = folder / "now.ts"
    tool = Path(sys.executable).with_name("pyside6-lupdate")
    sources = [str(path) for path in sorted(FOLDER.rglob("*.py"))]
    subprocess.run([tool, *sources, "-ts", target], check=True, capture_output=True)
    return _messages(target)


def test_every_text_of_the_code_has_a_finished_korean_translation(tmp_path: Path) -> None:
    with as_file(files("octavo.resources").joinpath("i18n/octavo_ko.ts")) as path:
        korean = _messages(path)
    assert set(_extracted(tmp_path)) == set(korean)
    for key, message in korean.items():
        translation = message.find("translation")
        assert translation is not None and translation.get("type") is None, key
        forms = [form.text or "" for form in translation.iter("numerusform")] or [translation.text or ""]
        for form in forms:
            assert form.strip(), key
            assert set(PLACEHOLDER.findall(form)) == set(PLACEHOLDER.findall(key[1])), key


def test_the_compiled_translations_are_as_new_as_their_source(tmp_path: Path) -> None:
    tool = Path(sys.executable).with_name("pyside6-lrelease")
    for code in ("ko", "en"):
        with as_file(files("octavo.resources").joinpath(f"i18n/octavo_{code}.ts")) as path:
            compiled = tmp_path / f"{code}.qm"
            subprocess.run([tool, path, "-qm", compiled], check=True, capture_output=True)
            assert compiled.read_bytes() == path.with_suffix(".qm").read_bytes()


def _tr_calls() -> Iterator[tuple[Path, ast.Call]]:
    for path in sorted(FOLDER.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "tr":
                yield path, node


def test_only_literals_are_translated() -> None:
    calls = list(_tr_calls())
    assert len(calls) > 80
    for path, call in calls:
        first = call.args[0]
        assert isinstance(first, ast.Constant) and isinstance(first.value, str), f"{path}:{call.lineno}"


def _texts(widget: QWidget) -> set[str]:
    labels = {label.text() for label in widget.findChildren(QLabel)}
    buttons = {button.text() for button in widget.findChildren(QAbstractButton)}
    names = {child.accessibleName() for child in widget.findChildren(QWidget)}
    return labels | buttons | names


def test_an_open_window_changes_its_language_live(window: Window, language: Language) -> None:
    english = _texts(window)
    assert {"Send", "System prompt", "Temperature", "Settings", "Chats"} <= english
    language.choose("ko")
    QApplication.processEvents()
    korean = _texts(window)
    assert {"보내기", "시스템 프롬프트", "온도", "설정", "채팅 목록"} <= korean
    assert window.actions_table["new_chat"].text() == "새 채팅"
    left = {text for text in english & korean if re.search(r"[A-Za-z]{3}", text)}
    allowed = ("SmolLM2", "Top P", "Min P", "tok/s", "GiB", "Ctrl", "English", "Esc", "Octavo")
    assert not [text for text in left if not any(part in text for part in allowed)]
    language.choose("en")
    QApplication.processEvents()
    assert "Send" in _texts(window)


def test_korean_texts_fit_where_they_stand(window: Window, language: Language, qtbot: QtBot) -> None:
    language.choose("ko")
    window.resize(1024, 700)
    for page in ("chat", "settings"):
        window.open_page(page)
        qtbot.wait(50)
        for button in window.findChildren(QAbstractButton):
            if button.isVisible() and button.text():
                assert button.width() >= button.sizeHint().width(), button.text()
