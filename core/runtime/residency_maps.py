"""Which pages of a loaded model's files are in memory, looked at now and then, and kept for ten minutes."""

import asyncio
import logging
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from octavo.core.errors import InvalidGguf, NoPageControl, SnapshotNotKept, UnreadableFile
from octavo.core.gguf import read_model
from octavo.core.memory.figures import LayerResidency, ResidencySummary
from octavo.core.memory.layout import MapLayout
from octavo.core.memory.weights import MAPPING_MODES
from octavo.core.runtime.instance import Instance
from octavo.core.runtime.placing import identities

if TYPE_CHECKING:  # numpy is for who looks at a map
    from octavo.core.memory.residency import Scanner, Snapshot
    from octavo.core.memory.ring import Ring

FRESH_S = 1.0
PRIVATE = "its weights were read into private memory"

_log = logging.getLogger(__name__)


class ResidencyMap:
    """The map of one instance; its file's header is read when somebody first asks."""

    def __init__(self, instance: Instance) -> None:
        self._instance = instance
        self._looking: _Looking | None = None
        self._layout: MapLayout | None = None
        self._scanned_at = 0.0
        self._is_closed = False
        self._is_fault_told = False
        self._identities: list[tuple[int, int]] = []
        self._unseen = ""
        self._turn = asyncio.Lock()

    @property
    def is_mapped(self) -> bool:
        """Whether the weights are read through the page cache; else the map would tell nothing."""
        return self._instance.resolved.config.load_mode in MAPPING_MODES

    @property
    def rest_s(self) -> float:
        """Seconds to leave between two looks, so that they cost little."""
        return self._looking.scanner.rest_s if self._looking else FRESH_S

    def require_mapped(self) -> None:
        """Raise ``NoPageControl`` for a model whose weights are private memory."""
        if not self.is_mapped:
            name = self._instance.name
            raise NoPageControl(
                f"The weights of {name} were read into private memory: no pages of its file are used.",
                hint="Load it with load_mode mmap.",
                model=self._instance.model.id,
            )

    async def layout(self) -> MapLayout:
        """Give where the tensors lie. Raises what reading the header raises."""
        async with self._turn:
            if self._layout is None:
                self._layout = await asyncio.to_thread(lambda: MapLayout.of(read_model(self._path)))
            return self._layout

    async def look(self, max_age_s: float) -> None:
        """See that the newest snapshot is less than ``max_age_s`` old, where there is something to see."""
        if not self.is_mapped:
            self._unseen = PRIVATE
            return
        try:
            await self.newest(max_age_s)
            self._unseen = ""
        except (InvalidGguf, UnreadableFile, NoPageControl) as fault:  # it went away, or was changed
            self._unseen = fault.message
            if not self._is_fault_told:
                _log.warning("what is in memory of %s can't be seen: %s", self._instance.name, fault)
            self._is_fault_told = True

    async def newest(self, max_age_s: float = FRESH_S) -> "Snapshot":
        """Give the newest snapshot, made now unless one is less than ``max_age_s`` old."""
        self.require_mapped()
        async with self._turn:
            if self._looking is not None and self._identities != self._instance.file_identities:
                self._looking.scanner.close()  # it was loaded anew, maybe from another file
                self._looking = None
            looking = self._looking
            if looking is None:
                self._identities = self._instance.file_identities
                looking = await asyncio.to_thread(_begin, self._path, self._identities)
                if self._is_closed:
                    looking.scanner.close()
                    return looking.newest
                self._looking, self._layout = looking, looking.layout
            elif time.monotonic() - self._scanned_at < max_age_s:
                return looking.newest
            else:
                looking.newest = await asyncio.to_thread(looking.scanner.scan)
            looking.ring.add(looking.newest)
            self._scanned_at = time.monotonic()
            return looking.newest

    def kept(self, generation: int) -> "Snapshot":
        """Give a snapshot of the last ten minutes. Raises ``SnapshotNotKept``."""
        found = self._looking.ring.at(generation) if self._looking else None
        if found is None:
            raise SnapshotNotKept(
                f"Snapshot {generation} of {self._instance.name} is not kept: they are for ten minutes.",
                hint="Ask without a generation for the newest.",
                generation=generation,
            )
        return found

    def history(self) -> list[tuple[int, float]]:
        """Give (generation, seconds since the epoch) of all that are kept, oldest first."""
        return self._looking.ring.generations() if self._looking else []

    def summary(self) -> ResidencySummary | None:
        """Give the newest snapshot in short, or why there is none; None when nobody has looked yet."""
        if self._looking is not None:
            return self._looking.newest.summary()
        if not self._unseen:
            return None
        return ResidencySummary(
            generation=0,
            at=time.time(),
            resident_bytes=None,
            total_bytes=self._instance.model.size_bytes,
            reason=self._unseen,
        )

    def by_layer(self) -> list[LayerResidency]:
        """Give the newest snapshot by layer, what belongs to none first; empty when nobody looked."""
        if self._looking is None or self._layout is None:
            return []
        return self._looking.newest.by_layer(self._layout)

    def close(self) -> None:
        """Let go of the files and of all snapshots."""
        self._is_closed = True
        if self._looking is not None:
            self._looking.scanner.close()
            self._looking = None

    @property
    def _path(self) -> Path:
        return Path(self._instance.model.path)


@dataclass(slots=True)
class _Looking:
    """What it takes to look at a model's pages."""

    layout: MapLayout
    scanner: "Scanner"
    ring: "Ring"
    newest: "Snapshot"


def _begin(path: Path, loaded: list[tuple[int, int]]) -> _Looking:
    """Read where the tensors lie and look for the first time; blocks.

    Raises ``NoPageControl`` unless the files are those that were ``loaded``.
    """
    from octavo.core.memory.residency import Scanner
    from octavo.core.memory.ring import Ring

    header = read_model(path)
    layout = MapLayout.of(header)
    paths = [part.path for part in header.files if part.path is not None]
    scanner = Scanner(layout, paths)
    if identities([str(part) for part in paths]) != loaded:
        scanner.close()
        raise NoPageControl(
            f"{path.name} was replaced since it was loaded: the model's own pages can't be seen.",
            hint="Load the model anew.",
        )
    return _Looking(layout, scanner, Ring(), scanner.scan())
