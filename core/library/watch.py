"""Notice by itself when models come or go: one watcher of all folders, on a thread of its own."""

import logging
import os
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import watchfiles

from octavo.core.library.catalog import QUIET_S, Catalog
from octavo.core.library.reach import Place

TICK_S = 0.8
"""Seconds after which the folders themselves are looked for: one may be new, gone, or back."""

DEBOUNCE_S = 0.3
"""Seconds for which changes are gathered before the disk is looked at."""

BLIND_S = 10.0
"""Seconds between looks where the system can't watch (its limit is reached)."""

# a look takes at most this share of the time: a file that is copied in changes all the while
_SHARE = 0.2
_PASSED_OVER = (".part", ".partial", ".incomplete", ".crdownload", ".download", ".tmp", ".lock")

_log = logging.getLogger(__name__)


class Watch:
    """Refreshes a catalog when its folders change, and calls ``changed`` (from its thread) when rows did."""

    def __init__(self, catalog: Catalog, changed: Callable[[], None]) -> None:
        self._catalog = catalog
        self._changed = changed
        self._told = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="library watch", daemon=True)

    def start(self) -> None:
        """Begin to watch."""
        self._thread.start()

    def close(self, deadline_s: float = 2.0) -> None:
        """Stop; a thread that waits for a dead drive is left to itself after the deadline."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(deadline_s)

    def _run(self) -> None:
        self._catalog.models()
        self._told = self._catalog.generation
        while not self._stop.is_set():
            folders = self._catalog.folders()
            try:
                self._look()
                self._follow(folders)
            except (OSError, RuntimeError) as error:
                _log.warning(
                    "the model folders can't be watched (%s); they are looked at now and then", error
                )
                self._stop.wait(BLIND_S)

    def _follow(self, folders: dict[Path, Place | None]) -> None:
        """Look whenever something changes, until the folders themselves do."""
        there = _outermost(path for path, place in folders.items() if place is not None)
        if not there:
            self._stop.wait(TICK_S)
            return
        is_first, away = True, self._catalog.missing_roots()
        for changes in watchfiles.watch(
            *there,
            watch_filter=_concerns,
            debounce=int(DEBOUNCE_S * 1000),
            rust_timeout=int(TICK_S * 1000),
            yield_on_timeout=True,
            stop_event=self._stop,
            raise_interrupt=False,
            ignore_permission_denied=True,
        ):
            # what came between the last look and the beginning of the watch was not seen
            if changes or is_first:
                self._look()
                is_first = False
            elif self._catalog.is_settling:
                self._stop.wait(QUIET_S / 2)
                self._look()
            # one that went and is back meanwhile looks as before, but its rows don't
            if self._catalog.folders() != folders or self._catalog.missing_roots() != away:
                return

    def _look(self) -> None:
        began = time.monotonic()
        self._catalog.refresh()
        if self._catalog.generation != self._told:
            self._told = self._catalog.generation
            self._changed()
        self._stop.wait(min(BLIND_S, (time.monotonic() - began) * (1 / _SHARE - 1)))


def _outermost(folders: Iterable[Path]) -> list[Path]:
    """Leave out what lies below another: it is watched with that one."""
    found: list[Path] = []
    for folder in sorted({Path(os.path.realpath(path)) for path in folders}):
        if not any(folder.is_relative_to(above) for above in found):
            found.append(folder)
    return found


def _concerns(change: watchfiles.Change, path: str) -> bool:
    name = os.path.basename(path)
    if name.startswith(".") or name.lower().endswith(_PASSED_OVER) or "-partial" in name:
        return False
    # folders and blobs have no ending that says what they are
    return change != watchfiles.Change.modified or name.lower().endswith(".gguf") or "." not in name
