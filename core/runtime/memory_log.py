"""What happened to the memory of one model since it was loaded: given back, pinned, used by requests."""

import logging
import time
from collections import deque
from collections.abc import Sequence

from octavo.core.config.load_config import LoadConfig, LoadMode
from octavo.core.engine.protocol import GaveBack
from octavo.core.events import ActionTaken, MemoryGivenBack, PinChanged, Publish
from octavo.core.memory.figures import Attribution, GivenBack, Pin
from octavo.core.memory.types import Components

KEPT_GIVEN_BACK = 100
KEPT_REQUESTS = 20

_log = logging.getLogger(__name__)


class MemoryLog:
    """Newest events of an instance's memory, oldest first; each is also told to the service."""

    def __init__(self, instance: str, model: str, mapped_bytes: int, publish: Publish) -> None:
        self.mapped_bytes = mapped_bytes
        self._instance = instance
        self._model = model
        self._publish = publish
        self.given_back: deque[GivenBack] = deque(maxlen=KEPT_GIVEN_BACK)
        self.requests: deque[Attribution] = deque(maxlen=KEPT_REQUESTS)
        self.pin: Pin | None = None
        self.actual: Components | None = None

    def note_given_back(self, report: GaveBack) -> None:
        """Keep and tell what a worker gave back to the system."""
        given = GivenBack(at=time.time(), kind=report.kind, freed_bytes=report.freed_bytes, text=report.text)
        said = f"{self._instance} gave back {report.text}"
        self.given_back.append(given)
        _log.info("%s", said)
        self._publish(MemoryGivenBack(instance=self._instance, model=self._model, given=given))
        self._publish(ActionTaken(text=f"{said}."))

    def note_lock(self, config: LoadConfig, log: Sequence[str]) -> None:
        """Note that a load locked all weights, if its mode says so and the system let it."""
        locks = config.load_mode is LoadMode.MMAP_MLOCK
        if locks and not any("failed to mlock" in line for line in log):
            mapped = self.mapped_bytes
            self.change_pin(Pin(kind="mlock", pinned_bytes=mapped, reason="locked by its load mode"))

    def change_pin(self, pin: Pin | None) -> None:
        """Note which pages are kept in memory from now on, and tell it when that is news."""
        if pin != self.pin:
            self.pin = pin
            self._publish(PinChanged(instance=self._instance, model=self._model, pin=pin))
