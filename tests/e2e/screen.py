"""A virtual X screen for tests: start it, type into it, take its picture."""

import os
import struct
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class Screen:
    """A running Xvfb of 1280×800."""

    def __init__(self, display: str, folder: Path) -> None:
        self.display = display
        self._folder = folder

    @property
    def environment(self) -> dict[str, str]:
        """Give an environment in which programs open their windows here."""
        kept = {name: value for name, value in os.environ.items() if name != "WAYLAND_DISPLAY"}
        return {**kept, "DISPLAY": self.display, "QT_QPA_PLATFORM": "xcb"}

    def focus(self, pid: int, title: str = "Octavo") -> bool:
        """Give a process's window the keyboard, there being no window manager; False while it has none."""
        found = self._xdotool("search", "--onlyvisible", "--pid", str(pid), "--name", title, check=False)
        for window in found.split():
            self._xdotool("windowfocus", window, check=False)
            if self._xdotool("getwindowfocus", "-f", check=False) == window:
                return True
        return False

    def type(self, text: str) -> None:
        """Type text on the keyboard."""
        self._xdotool("type", "--delay", "15", text)

    def press(self, key: str) -> None:
        """Press one key, by its X name."""
        self._xdotool("key", key)

    def picture(self, path: Path) -> None:
        """Write what the screen shows as a PNG."""
        from PySide6.QtGui import QImage

        data = (self._folder / "Xvfb_screen0").read_bytes()
        fields = struct.unpack(">25I", data[:100])
        header, width, height, line, colours = fields[0], fields[4], fields[5], fields[12], fields[19]
        pixels = data[header + colours * 12 :]
        path.parent.mkdir(parents=True, exist_ok=True)
        if not QImage(pixels, width, height, line, QImage.Format.Format_RGB32).save(str(path)):
            raise OSError(f"{path} could not be written")

    def _xdotool(self, *arguments: str, check: bool = True) -> str:
        done = subprocess.run(
            ["xdotool", *arguments],
            env=self.environment,
            capture_output=True,
            text=True,
            check=check,
            timeout=20,
        )
        return done.stdout.strip()


@contextmanager
def virtual_screen() -> Iterator[Screen]:
    """Run an Xvfb on a display number that is free."""
    with tempfile.TemporaryDirectory(prefix="octavo-screen-") as folder:
        reading, writing = os.pipe()
        command = [
            "Xvfb",
            "-displayfd",
            str(writing),
            "-screen",
            "0",
            "1280x800x24",
            "-fbdir",
            folder,
            "-noreset",
        ]
        server = subprocess.Popen(command, pass_fds=(writing,), stderr=subprocess.DEVNULL)
        os.close(writing)
        with os.fdopen(reading) as told:
            number = told.readline().strip()
        try:
            yield Screen(f":{number}", Path(folder))
        finally:
            server.terminate()
            server.wait(10)
