"""Rates of the last second, from counters that a worker tells."""

from collections import deque
from dataclasses import dataclass

from octavo.core.engine.protocol import Figures

WINDOW_S = 1.0


@dataclass(frozen=True, slots=True)
class Rates:
    """What decoding did per second and per token that was made; None: not told here, or no token made."""

    tokens_per_s: float = 0.0
    disk_bytes_per_s: float | None = None
    disk_bytes_per_token: float | None = None
    major_faults_per_token: float | None = None


class Meter:
    """The counters of one instance over the last second; a worker that was started anew begins anew."""

    def __init__(self) -> None:
        self._points: deque[tuple[float, Figures]] = deque()
        self._pid: int | None = None

    def after(self, at: float, pid: int | None, figures: Figures | None) -> Rates:
        """Note what process ``pid`` had counted at ``at`` (seconds of any one clock); give the rates."""
        if pid != self._pid:
            self._points.clear()
            self._pid = pid
        if pid is None or figures is None:
            return Rates()
        self._points.append((at, figures))
        # the first point is the youngest that is a whole window old
        while len(self._points) > 1 and self._points[1][0] <= at - WINDOW_S:
            self._points.popleft()
        began, before = self._points[0]
        return _rates(before, figures, at - began)


def _rates(before: Figures, now: Figures, seconds: float) -> Rates:
    tokens = now.tokens_total - before.tokens_total
    disk = _more(before.disk_bytes_total, now.disk_bytes_total)
    faults = _more(before.major_faults_total, now.major_faults_total)
    return Rates(
        tokens_per_s=_share(tokens, seconds) or 0.0,
        disk_bytes_per_s=None if disk is None else _share(disk, seconds) or 0.0,
        disk_bytes_per_token=_share(disk, tokens),
        major_faults_per_token=_share(faults, tokens),
    )


def _more(before: int | None, now: int | None) -> int | None:
    return None if before is None or now is None else now - before


def _share(amount: int | None, of: float) -> float | None:
    return None if amount is None or of <= 0 else amount / of
