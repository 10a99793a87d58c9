"""The checks of ``octavo doctor``: each looks at one thing and says what was found."""

import ctypes.util
import importlib.util
import json
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec
import psutil

from octavo.core import __version__
from octavo.core.config import paths
from octavo.core.config.settings import SettingsFile
from octavo.core.errors import StorageFailed
from octavo.server.cli.console import size
from octavo.server.cli.reach import running

CHILD_DEADLINE_S = 60
BACKEND_NOTES = "octavo-backend.json"
CPU_FLAGS = (
    *("sse4_2", "avx", "avx2", "fma", "f16c"),
    *("avx512f", "avx512_vnni", "avx_vnni", "amx_tile", "asimd"),
)
QT_LIBRARIES = ("EGL", "xkbcommon", "xcb-cursor", "xcb-icccm", "xcb-keysyms", "xkbcommon-x11")

ENGINE_CHILD = "from octavo.core.engine.doctor import system_info; print(system_info())"


class Finding(msgspec.Struct, frozen=True):
    """One thing that was looked at; ``advice`` is what to do about it, if anything."""

    name: str
    found: str
    advice: str = ""


async def examine() -> list[Finding]:
    """Look at everything."""
    findings = [check() for check in CHECKS]
    return [*findings, await _service()]


def _program() -> Finding:
    return Finding("Octavo", f"{__version__}, Python {platform.python_version()} at {sys.prefix}")


def _system() -> Finding:
    return Finding("System", f"{platform.platform()} on {platform.machine()}")


def _processor() -> Finding:
    flags = _cpu_flags()
    known = " ".join(flag for flag in CPU_FLAGS if flag in flags) or "unknown"
    cores = psutil.cpu_count(logical=False) or psutil.cpu_count() or 1
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else cores
    return Finding("Processor", f"{cores} cores, {allowed} usable; {known}")


def _memory() -> Finding:
    memory = psutil.virtual_memory()
    limit = _cgroup_limit()
    limited = f"; this session may use {size(limit)}" if limit and limit < memory.total else ""
    return Finding("Memory", f"{size(memory.total)}, {size(memory.available)} available{limited}")


def _backend() -> Finding:
    notes = _backend_notes()
    name = notes.get("backend", "unknown: not set up by make setup")
    better = "" if name == "cuda" or not shutil.which("nvidia-smi") else _gpu_advice()
    return Finding("Back end", f"{name} {notes.get('cmake_args', '')}".strip(), better)


def _gpu_advice() -> str:
    seen = _output(["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"])
    return f"{seen.splitlines()[0]} is here: make setup BACKEND=cuda (untested)" if seen else ""


def _engine() -> Finding:
    if getattr(sys, "frozen", False):
        return Finding("llama.cpp", "built in")
    told = _output([sys.executable, "-P", "-c", ENGINE_CHILD])
    if told:
        return Finding("llama.cpp", told.splitlines()[-1])
    return Finding("llama.cpp", "does not load", "make setup builds it anew for this machine.")


def _qt() -> Finding:
    if importlib.util.find_spec("PySide6") is None:
        return Finding("Qt", "not installed: no window, but everything else works")
    missing = [name for name in QT_LIBRARIES if ctypes.util.find_library(name) is None]
    if sys.platform != "linux" or not missing:
        return Finding("Qt", "its libraries are here")
    names = ", ".join(f"lib{name}" for name in missing)
    return Finding("Qt", f"missing system libraries: {names}", "make setup installs them as root on Debian.")


def _display() -> Finding:
    if sys.platform != "linux":
        return Finding("Display", "the system's own")
    shown = os.environ.get("WAYLAND_DISPLAY") or os.environ.get("DISPLAY")
    if shown:
        return Finding("Display", shown)
    return Finding("Display", "none", "The window can't open here; octavo chat and octavo serve can.")


def _home() -> Finding:
    home = paths.home()
    where = f"{home.root}; control door {home.control_socket}"
    disk = shutil.disk_usage(_existing(home.root))
    advice = ""
    try:
        home.check()
    except StorageFailed as error:
        advice = str(error)
    return Finding("Home", f"{where}; {size(disk.free)} free on its disk", advice)


def _settings() -> Finding:
    home = paths.home()
    if home.settings.exists():
        SettingsFile(home.settings)
    aside = sorted(path.name for path in home.root.glob("*.damaged-*"))
    if aside:
        return Finding("Set aside", ", ".join(aside), f"Damaged files, kept in {home.root}; defaults apply.")
    return Finding("Settings", "in order" if home.settings.exists() else "all default")


async def _service() -> Finding:
    try:
        client = await running()
    except StorageFailed:
        return Finding("Service", "can't run: see Home")
    if client is None:
        return Finding("Service", "not running; it starts when it is needed")
    async with client:
        health, server = await client.health(), await client.server()
        port = (
            f"serving at http://{server.host}:{server.port}" if server.is_on else "its public port is closed"
        )
        return Finding("Service", f"running as process {health.pid}, version {health.version}; {port}")


CHECKS: tuple[Callable[[], Finding], ...] = (
    _program,
    _system,
    _processor,
    _memory,
    _backend,
    _engine,
    _qt,
    _display,
    _home,
    _settings,
)


def _cpu_flags() -> set[str]:
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        return set()
    line = next((line for line in lines if line.lower().startswith(("flags", "features"))), "")
    return set(line.partition(":")[2].split())


def _cgroup_limit() -> int | None:
    for name in ("memory.max", "memory/memory.limit_in_bytes"):
        try:
            return int(Path("/sys/fs/cgroup", name).read_text("ascii"))
        except (OSError, ValueError):
            continue
    return None


def _backend_notes() -> dict[str, str]:
    try:
        notes = json.loads(Path(sys.prefix, BACKEND_NOTES).read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return notes if isinstance(notes, dict) else {}


def _output(command: list[str]) -> str:
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=CHILD_DEADLINE_S, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def _existing(path: Path) -> Path:
    while not path.exists():
        path = path.parent
    return path
