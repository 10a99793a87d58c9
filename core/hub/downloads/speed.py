"""How fast a download is and how long it will take, smoothed so that the figures can be read."""

import time
from collections import deque
from collections.abc import Callable

_WINDOW_S = 6.0
_LEAST_S = 0.5
_SHARE = 0.3


class Speed:
    """The speed of the last seconds, and the seconds left at it."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._samples: deque[tuple[float, int]] = deque()
        self.bytes_per_s = 0.0

    def note(self, done_bytes: int) -> None:
        """Take a sample; bytes that were dropped begin a new measurement."""
        now = self._clock()
        if self._samples and done_bytes < self._samples[-1][1]:
            self.stop()
        self._samples.append((now, done_bytes))
        while now - self._samples[0][0] > _WINDOW_S:
            self._samples.popleft()
        began, first = self._samples[0]
        if now - began < _LEAST_S:
            return
        measured = (done_bytes - first) / (now - began)
        self.bytes_per_s += (measured - self.bytes_per_s) * (_SHARE if self.bytes_per_s else 1.0)

    def stop(self) -> None:
        """Begin anew: nothing comes now."""
        self._samples.clear()
        self.bytes_per_s = 0.0

    def seconds_left(self, missing_bytes: int) -> float | None:
        """Give the seconds that the rest takes at this speed; None where that can't be said."""
        return missing_bytes / self.bytes_per_s if self.bytes_per_s >= 1 else None
