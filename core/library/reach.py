"""Ask whether a folder is there, without waiting for a drive that doesn't answer."""

import os
import stat
import threading
import time
from pathlib import Path

PATIENCE_S = 2.0
"""Seconds after which a folder that gives no answer counts as not there."""

Place = tuple[int, int]
"""What a folder is on the disk: the number of its drive, and its own."""


class Reach:
    """Looks at folders that may be on a network drive which is gone: asking one can take for ever.

    A question that isn't answered goes on in the background, so that a dead drive holds one thread, not one
    for each look, and is waited for once. May be used from any thread.
    """

    def __init__(self, patience_s: float = PATIENCE_S) -> None:
        self._patience_s = patience_s
        self._asked: dict[Path, _Question] = {}
        self._lock = threading.Lock()

    def place(self, folder: Path) -> Place | None:
        """Tell what a folder is on the disk; None: there is no such folder, or no answer."""
        with self._lock:
            question = self._asked.get(folder)
            if question is None:
                question = self._asked[folder] = _Question(folder)
        # who asks meanwhile waits for the same answer, and no longer than the first
        age_s = time.monotonic() - question.asked_at
        if not question.answered.wait(max(self._patience_s - age_s, 0.0)):
            return None
        with self._lock:
            self._asked.pop(folder, None)
        return question.place


class _Question:
    def __init__(self, folder: Path) -> None:
        self.asked_at = time.monotonic()
        self.answered = threading.Event()
        self.place: Place | None = None
        threading.Thread(target=self._ask, args=(folder,), name="folder probe", daemon=True).start()

    def _ask(self, folder: Path) -> None:
        try:
            status = os.stat(folder)
            if stat.S_ISDIR(status.st_mode):
                self.place = (status.st_dev, status.st_ino)
        except (OSError, ValueError):
            self.place = None
        finally:
            self.answered.set()
