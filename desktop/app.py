"""The composition root of the desktop app: everything is made here, once, and handed to who needs it."""

import argparse
import os
import signal
import socket
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from octavo.desktop.display import missing_for_a_window

if TYPE_CHECKING:  # Qt may abort where no display is, so it is imported only after the check
    from PySide6.QtWidgets import QApplication

    from octavo.desktop.service import OpenService
    from octavo.desktop.studio import Studio
    from octavo.desktop.views.window import Window


def main(arguments: Sequence[str] | None = None) -> int:
    """Open the window and stay until it is closed; gives the exit code."""
    import multiprocessing

    multiprocessing.freeze_support()
    wanted = _parser().parse_args(arguments)
    missing = missing_for_a_window()
    if missing is not None:
        print(missing, file=sys.stderr)
        return 1
    return run(Path(wanted.file) if wanted.file else None)


def run(file: Path | None = None, open_service: "OpenService | None" = None) -> int:
    """Make the application and its window and run it."""
    from PySide6.QtCore import QTimer

    application = make_application()
    window, studio = make_window(application, open_service)
    listening = _quit_on_signals(window)
    window.show()
    QTimer.singleShot(0, studio.bridge.start)
    if file is not None:
        _add_when_connected(studio, file.absolute())
    code = application.exec()
    studio.bridge.close()
    for end in listening:
        end.close()
    return code


def make_application() -> "QApplication":
    """Make the Qt application."""
    from PySide6.QtWidgets import QApplication

    application = QApplication(sys.argv[:1])
    application.setApplicationName("Octavo")
    application.setDesktopFileName("octavo")
    return application


def make_window(
    application: "QApplication", open_service: "OpenService | None" = None
) -> "tuple[Window, Studio]":
    """Make the window and what it stands on; nothing is connected yet."""
    from octavo.core.config.paths import home
    from octavo.desktop import service
    from octavo.desktop.bridge import Bridge
    from octavo.desktop.language import Language
    from octavo.desktop.remembered import Remembered
    from octavo.desktop.studio import Studio
    from octavo.desktop.theme.icons import icon
    from octavo.desktop.theme.look import Look
    from octavo.desktop.values import preferences
    from octavo.desktop.views.window import Window

    place = home()
    remembered = Remembered(place)
    known = preferences({"appearance": {name: remembered.text(name) for name in ("theme", "language")}})
    language = application.findChild(Language) or Language(application, known.language)
    look = application.findChild(Look) or Look(application, known.theme)
    application.setWindowIcon(icon("octavo", "fill"))
    bridge = Bridge(place, open_service or service.open_service)
    studio = Studio(bridge, remembered)
    return Window(studio, look, language), studio


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="octavo-desktop", description="Octavo's window.")
    parser.add_argument("file", nargs="?", help="a .gguf file to add to the library")
    return parser


def _add_when_connected(studio: "Studio", file: Path) -> None:
    added: list[Path] = []

    def add() -> None:
        if studio.is_connected and not added:
            added.append(file)
            studio.add_model(file)

    studio.connection_changed.connect(add)


def _quit_on_signals(window: "Window") -> tuple[socket.socket, ...]:
    """Close the window on SIGINT and SIGTERM; Python only sees a signal when Qt hands control back to it."""
    from PySide6.QtCore import QSocketNotifier

    if sys.platform == "win32":
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        return ()
    ours, theirs = socket.socketpair()
    for end in (ours, theirs):
        end.setblocking(False)
    signal.set_wakeup_fd(theirs.fileno())
    notifier = QSocketNotifier(ours.fileno(), QSocketNotifier.Type.Read, window)
    notifier.activated.connect(lambda: ours.recv(64))
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: window.close())
    return ours, theirs


if __name__ == "__main__":
    os.environ.setdefault("QT_ENABLE_HIGHDPI_SCALING", "1")
    sys.exit(main())
