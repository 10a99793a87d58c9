"""Start the service, detached from the terminal and the window that need it."""

import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

from octavo.core.config.paths import Home
from octavo.core.errors import ServiceUnavailable, StorageFailed

# the service's exit code when another one holds the lock: no failure for who wants any service
ALREADY_RUNNING = 3
LAST_WORDS_BYTES = 2000
LEAST_FREE_BYTES = 64 << 10


class StartedService:
    """The process of a service that was just started; it may lose the race to another one."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._log = home.logs / "service.out"
        self._process = _spawn(home, self._log)
        # reaps the child, so that a service that dies before its starter leaves no zombie
        threading.Thread(target=self._process.wait, name="service-reaper", daemon=True).start()

    def check(self) -> None:
        """Raise ``ServiceUnavailable`` with its last words when the service failed to start."""
        code = self._process.poll()
        if code in (None, ALREADY_RUNNING):
            return
        if shutil.disk_usage(self._home.root).free < LEAST_FREE_BYTES:
            raise StorageFailed(
                f"The service can't start: the disk of {self._home.root} is full.",
                hint="Free some space.",
                path=str(self._home.root),
            )
        raise ServiceUnavailable(
            f"The service ended at once (exit code {code}): {_last_words(self._log)}",
            hint=f"See {self._log.parent}.",
        )


def command() -> list[str]:
    """Give the command line of the service; a frozen app starts its sibling program ``octavo``."""
    if getattr(sys, "frozen", False):
        suffix = ".exe" if sys.platform == "win32" else ""
        return [str(Path(sys.executable).with_name(f"octavo{suffix}")), "serve-hidden"]
    return [sys.executable, "-P", "-m", "octavo.server.service"]


def _spawn(home: Home, log: Path) -> "subprocess.Popen[bytes]":
    home.prepare()
    with log.open("ab") as output:
        return subprocess.Popen(
            command(),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd=home.root,
            env={**os.environ, "OCTAVO_HOME": str(home.root), "PYTHONPATH": _absolute_pythonpath()},
            start_new_session=True,
        )


def _absolute_pythonpath() -> str:
    parts = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    return os.pathsep.join(os.path.abspath(part) for part in parts if part)


def _last_words(log: Path) -> str:
    try:
        lines = log.read_bytes()[-LAST_WORDS_BYTES:].decode("utf-8", "replace").strip().splitlines()
    except OSError:
        return "it left no log"
    return lines[-1] if lines else "it said nothing"
