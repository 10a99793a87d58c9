"""The limit on the bandwidth of all downloads together: a bucket that fills at the rate allowed."""

import threading
import time

_BURST_S = 0.1


class Pace:
    """Lets bytes through at ``bytes_per_s``; 0 is no limit. Used by all threads that receive."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._bytes_per_s = 0
        self._free_at = 0.0

    def limit(self, bytes_per_s: int) -> None:
        """Set the limit; it counts from now on."""
        with self._lock:
            self._bytes_per_s = max(bytes_per_s, 0)
            self._free_at = 0.0

    def pause_s(self, count: int) -> float:
        """Count bytes that came, and give the seconds to wait before more are read."""
        with self._lock:
            if not self._bytes_per_s:
                return 0.0
            now = time.monotonic()
            self._free_at = max(self._free_at, now - _BURST_S) + count / self._bytes_per_s
            return max(self._free_at - now, 0.0)
