"""What a loaded model does not need is given back: copied weights' pages, unread tensors, unused KV."""

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from octavo.core.engine import madvise
from octavo.core.engine.kv_tail import NOT_FOLLOWED, NOT_WANTED, KvTail, may_follow
from octavo.core.engine.maps import FileMaps, inward, regions
from octavo.core.engine.pages import drop
from octavo.core.engine.protocol import GaveBack, Load, TensorPlace
from octavo.core.engine.tensors import Tensors
from octavo.core.memory.figures import GivenBackKind
from octavo.core.memory.layout import PageRange
from octavo.core.memory.probe import process

if TYPE_CHECKING:
    from octavo.core.engine.llama import Context, Model

MIB = 1 << 20

Tell = Callable[[GaveBack], None]


@dataclass(frozen=True, slots=True)
class Unneeded:
    """Tensors that decodes don't read from the file: ``copied`` ones live elsewhere, ``unread`` nowhere."""

    copied: list[TensorPlace]
    unread: list[TensorPlace]


def find_unneeded(places: Iterable[TensorPlace], tensors: Tensors, maps: FileMaps) -> Unneeded:
    """Sort out the tensors of the file by where llama.cpp reads them."""
    copied, unread = [], []
    for place in places:
        address = tensors.address(place.name)
        if address is None or (place.is_unread and maps.holds(address)):
            unread.append(place)
        elif not maps.holds(address):
            copied.append(place)
    return Unneeded(copied, unread)


class Elastic:
    """The memory that one loaded model could do without; used by the engine thread.

    Make it before the first decode.
    """

    def __init__(self, load: Load, model: "Model", context: "Context", tell: Tell) -> None:
        self._drops_unread = load.drops_unread
        self._tell = tell
        found = regions()
        self.maps = FileMaps(load.files or [load.path], found)
        tensors = _tensors(context)
        self._unneeded = find_unneeded(load.tensors, tensors, self.maps) if tensors else Unneeded([], [])
        rows = tensors.kv(range(model.layers)) if tensors else []
        follows = may_follow(rows, has_state=model.has_state, sliding_window=model.sliding_window)
        refusal = NOT_WANTED if not load.config.elastic else "" if follows else NOT_FOLLOWED
        self._is_wanted = load.config.elastic
        self._tail = KvTail(rows, context.pools, found, refusal=refusal)

    @property
    def kv_bytes(self) -> int:
        """Size of the KV cache."""
        return self._tail.size_bytes

    @property
    def committed_kv_bytes(self) -> int:
        """Bytes of it that memory was given for."""
        return self._tail.committed_bytes

    def give_back_pages(self) -> None:
        """After a load: pages of the file that were only needed to load, and those that are hardly read."""
        if not self._is_wanted:
            return
        copied, unread = self._unneeded.copied, self._unneeded.unread
        self._give_back("weight_sources", "weights that were copied", copied, is_final=True)
        self._give_back("unread_tensors", "tensors that are hardly read", unread, is_final=self._drops_unread)

    def give_back_cells(self) -> None:
        """Give back unused KV; worth a call whenever the cache may hold less than before."""
        freed = self._tail.give_back()
        if freed:
            self._tell(GaveBack("kv_tail", freed, f"{_mib(freed)} of unused KV"))

    def _give_back(
        self, kind: GivenBackKind, what: str, places: Sequence[TensorPlace], *, is_final: bool
    ) -> None:
        """Take pages out of this process's map; finally also out of the page cache."""
        before, ranges = _mapped_bytes(), self._ranges(places)
        for pages in ranges:
            for address, length in self.maps.spans(pages):
                madvise.advise(address, length, madvise.DONTNEED)
                if kind == "unread_tensors":  # a row is needed, not what the kernel would read ahead
                    madvise.advise(address, length, madvise.RANDOM)
            if is_final:
                drop(self.maps, pages)
        # a large folio leaves the map as a whole, and the pages beside come back at their next use
        freed = min(before - _mapped_bytes(), sum(pages.stop - pages.start for pages in ranges))
        if freed >= MIB:
            self._tell(GaveBack(kind, freed, f"{_mib(freed)} of {what}"))

    def _ranges(self, places: Iterable[TensorPlace]) -> list[PageRange]:
        """Give the whole pages of these tensors; neighbours share the page between them."""
        merged: list[PageRange] = []
        for place in sorted(places, key=lambda place: (place.file, place.start)):
            last = merged[-1] if merged else None
            if last and last.file == place.file and place.start - last.stop < madvise.PAGE:
                merged[-1] = PageRange(file=last.file, start=last.start, stop=place.stop)
            else:
                merged.append(PageRange(file=place.file, start=place.start, stop=place.stop))
        whole = [inward(pages, self.maps.size(pages.file)) for pages in merged]
        return [pages for pages in whole if pages.start < pages.stop]


def _tensors(context: "Context") -> Tensors | None:
    try:
        return Tensors(context.handle, context.micro_batch, context.slots)
    except LookupError:
        return None


def _mapped_bytes() -> int:
    sampled = process(os.getpid())
    return sampled.file_bytes if sampled else 0


def _mib(count: int) -> str:
    return f"{count / MIB:.0f} MiB"
