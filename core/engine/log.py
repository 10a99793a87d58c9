"""llama.cpp's log lines, captured."""

import ctypes
from collections import deque
from collections.abc import Callable
from typing import Any

# ggml.h, enum ggml_log_level; a line of level "continued" belongs to the one before
LEVELS = {1: "debug", 2: "info", 3: "warning", 4: "error"}
CONTINUED = 5
KEPT_LINES = 400


class EngineLog:
    """Collects whole lines, remembers the last ones, and hands each on."""

    def __init__(self, bindings: Any, on_line: Callable[[str, str], None] | None = None) -> None:
        self.lines: deque[tuple[str, str]] = deque(maxlen=KEPT_LINES)
        self._on_line = on_line
        self._level = "info"
        self._rest = ""
        self._callback = bindings.llama_log_callback(self._receive)  # kept: llama.cpp calls it for ever
        bindings.llama_log_set(self._callback, ctypes.c_void_p(0))

    def cause(self) -> str:
        """Give the first error line, without the function's name; later ones only say that it failed."""
        first = next((text for level, text in self.lines if level == "error"), "it gave no reason")
        return (first.partition(": ")[2] or first).rstrip(".")

    def has(self, words: str) -> bool:
        """Tell whether a line holds these words."""
        return any(words in text for _, text in self.lines)

    def tail(self, count: int = 12) -> list[str]:
        """Give the newest lines."""
        return [text for _, text in list(self.lines)[-count:]]

    def _receive(self, level: int, text: bytes, _: object) -> None:
        if level != CONTINUED:
            self._level = LEVELS.get(level, "info")
        self._rest += text.decode("utf-8", "replace")
        *whole, self._rest = self._rest.split("\n")
        for line in whole:
            self._keep(line.rstrip())

    def _keep(self, line: str) -> None:
        if not line or self._level == "debug" or set(line) == {"."}:  # the load is told as a share
            return
        self.lines.append((self._level, line))
        if self._on_line is not None:
            self._on_line(self._level, line)
