"""The program as a process: it opens, closes, and says what is missing where it can't. Case E07."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from octavo.desktop.display import missing_for_a_window

CHILD = """
import sys
sys.path.insert(0, sys.argv[1])
from octavo.desktop import app
from tests.desktop.fake_client import FakeHouse
from PySide6.QtCore import QTimer
original = app.make_window
def make_window(application, open_service=None):
    window, studio = original(application, FakeHouse().open)
    def close_when_ready():
        if studio.instance and studio.instance.state == "ready":
            QTimer.singleShot(50, window.close)
    studio.current_changed.connect(close_when_ready)
    return window, studio
app.make_window = make_window
sys.exit(app.run())
"""


def environment(home: Path, **changes: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in ("DISPLAY", "WAYLAND_DISPLAY")}
    kept.pop("QT_QPA_PLATFORM", None)
    return {**kept, "OCTAVO_HOME": str(home), **changes}


def test_the_window_opens_and_closes_with_exit_code_0(octavo_home: Path) -> None:
    root = Path(__file__).resolve().parent.parent.parent
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-c", CHILD, str(root)],
        env=environment(octavo_home, QT_QPA_PLATFORM="offscreen"),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stdout) == (0, "")
    assert "Traceback" not in done.stderr and "QThread" not in done.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="displays of X11 and Wayland are Linux's")
@pytest.mark.parametrize(
    "start",
    [["-m", "octavo.desktop.app"], ["-c", "import octavo.desktop.app as a, sys; sys.exit(a.main([]))"]],
)
def test_E07_without_a_display_the_window_says_so_and_exits_1(start: list[str], octavo_home: Path) -> None:
    done = subprocess.run(
        [sys.executable, *start], env=environment(octavo_home), capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 1
    (sentence,) = done.stderr.strip().splitlines()
    assert "neither DISPLAY nor WAYLAND_DISPLAY is set" in sentence
    assert not (octavo_home / "run").exists()


@pytest.mark.skipif(sys.platform != "linux", reason="displays of X11 and Wayland are Linux's")
def test_E07_a_display_that_does_not_answer_is_named(octavo_home: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "octavo.desktop.app"],
        env=environment(octavo_home, DISPLAY=":987"),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 1
    assert "no X server answers at DISPLAY=:987" in done.stderr


def test_E07_the_check_needs_no_qt(octavo_home: Path) -> None:
    code = (
        "import sys; import octavo.desktop.app as app; app.missing_for_a_window();"
        "print([name for name in sys.modules if name.startswith('PySide6')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment(octavo_home), capture_output=True, text=True, timeout=60
    )
    assert done.stdout.strip() == "[]"


def test_an_offscreen_platform_needs_no_display(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("QT_QPA_PLATFORM", "offscreen")
    assert missing_for_a_window() is None


def test_opening_the_window_imports_nothing_heavy(octavo_home: Path) -> None:
    code = (
        "import sys; from octavo.desktop import app; app.make_window(app.make_application());"
        "print(sorted({'httpx2', 'pydantic', 'numpy', 'markdown_it', 'pygments', 'pyqtgraph', 'llama_cpp',"
        "'fastapi', 'psutil'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environment(octavo_home, QT_QPA_PLATFORM="offscreen"),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stdout.strip()) == (0, "[]"), done.stderr
