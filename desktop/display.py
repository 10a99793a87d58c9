"""Find out, before Qt is asked, whether a window can open here: Qt itself would abort the process."""

import os
import socket
import sys
from pathlib import Path

_NEEDS_NO_DISPLAY = ("offscreen", "minimal", "vnc", "linuxfb", "eglfs")


def missing_for_a_window() -> str | None:
    """Give one sentence that says what is missing, or None when a window can open."""
    if sys.platform != "linux" or _chosen_platform() in _NEEDS_NO_DISPLAY:
        return None
    if _has_wayland():
        return None
    display = os.environ.get("DISPLAY", "")
    if not display:
        return (
            "Octavo's window needs a display, and neither DISPLAY nor WAYLAND_DISPLAY is set; "
            "`octavo chat` works in this terminal instead."
        )
    if not _x_server_answers(display):
        return f"Octavo's window needs a display, and no X server answers at DISPLAY={display}."
    return _missing_library()


def _chosen_platform() -> str:
    return os.environ.get("QT_QPA_PLATFORM", "").split(":")[0]


def _has_wayland() -> bool:
    name = os.environ.get("WAYLAND_DISPLAY", "")
    folder = os.environ.get("XDG_RUNTIME_DIR", "")
    return bool(name) and Path(folder, name).exists() and _chosen_platform() != "xcb"


def _x_server_answers(display: str) -> bool:
    host, _, number = display.rpartition(":")
    number = number.split(".")[0]
    if not number.isdigit():
        return False
    if host in ("", "unix"):
        return _connects(f"/tmp/.X11-unix/X{number}") or _connects(f"\0/tmp/.X11-unix/X{number}")
    return _connects((host.strip("[]"), 6000 + int(number)))


def _connects(address: str | tuple[str, int]) -> bool:
    try:
        if isinstance(address, tuple):
            socket.create_connection(address, timeout=2).close()
            return True
        with socket.socket(socket.AF_UNIX) as probe:
            probe.connect(address)
    except OSError:
        return False
    return True


def _missing_library() -> str | None:
    """Load Qt's X11 plug-in as Qt would: the loader's message names the library that isn't installed."""
    import ctypes
    import importlib.util

    found = importlib.util.find_spec("PySide6")
    if found is None or found.origin is None:
        return "Octavo's window needs PySide6, and it isn't installed in this Python environment."
    plugin = Path(found.origin).with_name("Qt") / "plugins" / "platforms" / "libqxcb.so"
    if not plugin.exists():
        return None
    try:
        ctypes.CDLL(str(plugin))
    except OSError as fault:
        return f"Octavo's window needs a system library that isn't installed: {str(fault).split(':')[0]}."
    return None
