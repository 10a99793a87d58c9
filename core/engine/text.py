"""From token bytes to text that may be shown: whole characters only, stop strings never leaked."""

import codecs
from collections.abc import Sequence


class Characters:
    """Bytes in, whole characters out; what can't be UTF-8 becomes U+FFFD, an unfinished character waits.

    When a reply is cut in the middle of a character, the bytes that still wait are nobody's text and are
    dropped.
    """

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def feed(self, data: bytes) -> str:
        """Give the characters that ``data`` completes."""
        return self._decoder.decode(data)


class StopStrings:
    """Holds back text that may be the start of a stop string, and ends at the first whole one."""

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = [stop for stop in stops if stop]
        self._longest = max(map(len, self._stops), default=0)
        self._held = ""
        self.met: str | None = None

    def feed(self, text: str) -> str:
        """Give the text that is surely no part of a stop string; sets ``met`` when one is complete."""
        if not self._stops:
            return text
        self._held += text
        found = min(
            ((at, stop) for stop in self._stops if (at := self._held.find(stop)) >= 0),
            key=lambda hit: (hit[0], -len(hit[1])),
            default=None,
        )
        if found is not None:
            at, self.met = found
            shown, self._held = self._held[:at], ""
            return shown
        keep = self._possible_start()
        shown, self._held = self._held[: len(self._held) - keep], self._held[len(self._held) - keep :]
        return shown

    def end(self) -> str:
        """Give what was held back, when the text ended without a stop string."""
        rest, self._held = self._held, ""
        return rest

    def _possible_start(self) -> int:
        """Count the last characters that could begin a stop string."""
        for length in range(min(self._longest - 1, len(self._held)), 0, -1):
            tail = self._held[-length:]
            if any(stop.startswith(tail) for stop in self._stops):
                return length
        return 0
