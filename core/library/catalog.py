"""The index of all models on disk: a header is read once and remembered by path, size and time of change."""

import os
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Self

from octavo.core.config.paths import Home
from octavo.core.config.settings import Library
from octavo.core.errors import ErrorReport, UnreadableFile
from octavo.core.gguf import printable
from octavo.core.library.found import Found
from octavo.core.library.hub_cache import repositories
from octavo.core.library.index import Entry, Index, Key
from octavo.core.library.models import Model, with_ids
from octavo.core.library.naming import chosen, looks_like_path, not_found, unnamed
from octavo.core.library.ollama import find_ollama_files
from octavo.core.library.projector_choices import ProjectorChoices
from octavo.core.library.projectors import with_projectors
from octavo.core.library.reach import Place, Reach
from octavo.core.library.roots import Root, library_roots
from octavo.core.library.rows import offline, outside_row, row
from octavo.core.library.scan import Visited, examine, find_files

FRESH_S = 1.0
"""Seconds for which a listing is as good as a new look at the disk."""

QUIET_S = 2.0
"""Seconds without a change after which a file that was being written counts as done."""

Roots = Sequence[Path | Root] | Callable[[], Sequence[Root]]
# a file as it is remembered, where, whether that folder is away, and its path
_Seen = tuple[Entry, Root, bool, Path | None]


class Catalog:
    """Every model below some roots, at any depth. Roots are read in place and never written.

    All methods may be called from any thread. ``roots`` may be asked for anew at each look. ``cache_path``
    holds the index between starts; a damaged one is set aside and built anew, and one that can't be written
    costs time, never an error. ``choices`` is the file of the projectors that a person chose.
    """

    def __init__(self, roots: Roots, cache_path: Path, choices: Path | None = None) -> None:
        self._named = roots
        self.roots = _as_roots(roots)
        self.choices = ProjectorChoices(choices or cache_path.with_name("projectors.json"))
        self._index = Index(cache_path)
        self._reach = Reach()
        self._lock = threading.Lock()
        self._known: dict[Key, Entry] | None = None
        self._seen: list[_Seen] = []
        self._chosen: dict[Path, Path | None] = {}
        self._models: list[Model] | None = None
        self._projectors: list[Model] = []
        self._missing: list[Path] = []
        self._linked: list[Path] = []
        self._scanned_at = 0.0
        self._generation = 0

    @classmethod
    def of_home(cls, home: Home, chosen: Callable[[], Library]) -> Self:
        """Open the library of a home; ``chosen`` tells at each look what the settings say by then."""
        cache = home.cache / "catalog.msgpack"
        return cls(lambda: library_roots(home, chosen()), cache, home.root / "projectors.json")

    @property
    def generation(self) -> int:
        """A number that changes whenever the rows do."""
        return self._generation

    @property
    def is_settling(self) -> bool:
        """Whether a file is being written just now, so that another look soon will tell more."""
        with self._lock:
            return any(_is_growing(entry) for entry, *_rest in self._seen)

    def models(self) -> list[Model]:
        """Give all rows, unreadable ones included, as of the last ``refresh``; the first call makes one."""
        with self._lock:
            return list(self._scan() if self._models is None else self._models)

    def refresh(self) -> list[Model]:
        """Look at the disk again; only files that are new or changed are opened."""
        with self._lock:
            return list(self._scan())

    def fresh(self) -> list[Model]:
        """Give all rows as the disk is now; a look that is no older than ``FRESH_S`` is good enough."""
        with self._lock:
            is_old = time.monotonic() - self._scanned_at > FRESH_S
            return list(self._scan() if self._models is None or is_old else self._models)

    def projectors(self) -> list[Model]:
        """Give the image and audio parts of models, which have no row; ``Model.projector`` says whose."""
        self.models()
        with self._lock:
            return list(self._projectors)

    def missing_roots(self) -> list[Path]:
        """Name the roots that were not there at the last look (an unplugged drive, a renamed folder)."""
        self.models()
        with self._lock:
            return list(self._missing)

    def folders(self) -> dict[Path, Place | None]:
        """Give the folders that are looked at, linked ones included, and what each is; None: not there."""
        self.models()
        with self._lock:
            self._take_roots()
            asked = [*(root.path for root in self.roots if root.source != "hugging_face"), *self._linked]
            caches = [root.path for root in self.roots if root.source == "hugging_face"]
        places = {path: self._reach.place(path) for path in asked}
        for cache in caches:
            # data sets lie there too, and a watcher walks through all that it is given
            if place := self._reach.place(cache):
                places |= {path: (place[0], number) for path, number in repositories(cache).items()}
        return places

    def find(self, name: str, *, allow_path: bool = True) -> Model:
        """Find a model by id, by an unambiguous part of one, or (``allow_path``) by the path of a GGUF file.

        Raises ``ModelNotFound`` or ``AmbiguousModel``, both with ``candidates``. A row found may have a
        ``fault``: call ``require_sound`` on it before a load.
        """
        if not any(character.isalnum() for character in name):
            # a bare "/" would fit every id
            raise unnamed(name)
        if allow_path and looks_like_path(name) and (model := self._by_path(name)):
            return model
        found = chosen(name, self.models()) or chosen(name, self.refresh())
        if found is None:
            raise not_found(name, self.models())
        return found

    def _by_path(self, name: str) -> Model | None:
        path = Path(os.path.abspath(os.path.expanduser(name)))
        for model in self.models():
            if path in model.files:
                return model
        try:
            return outside_row(path) if path.is_file() else None
        except (OSError, ValueError):
            return None

    def _scan(self) -> list[Model]:
        known = self._index.load() if self._known is None else self._known
        self._take_roots()
        devices = dict(self._index.devices)
        seen, current = self._look(known)
        if _lasting(current) != _lasting(known) or devices != self._index.devices or not self._index.exists():
            self._index.save({entry.key: entry for entry in current.values() if not _is_growing(entry)})
        chosen = self.choices.all()
        self._known, self._scanned_at = current, time.monotonic()
        if self._models is None or seen != self._seen or chosen != self._chosen:
            self._models, self._projectors = self._rows(seen, chosen)
            self._generation += 1
        self._seen, self._chosen = seen, chosen
        return self._models

    def _take_roots(self) -> None:
        roots = _as_roots(self._named)
        if roots != self.roots:
            self.roots = roots

    def _look(self, known: dict[Key, Entry]) -> tuple[list[_Seen], dict[Key, Entry]]:
        seen, current = list[_Seen](), dict[Key, Entry]()
        visited: Visited = set()
        self._missing, self._linked = [], []
        earlier = {entry.path: entry for entry in known.values()} if self._known is not None else {}
        for root in self.roots:
            place = self._reach.place(root.path)
            device = place[0] if place else None
            found = [] if place is None else list(self._find(root, visited))
            for one in found:
                entry = _remembered(one, known, earlier)
                if entry.key not in current:
                    current[entry.key] = entry
                    seen.append((entry, root, False, one.path))
            if not found:
                seen += self._away(root, device, known, current)
            if device is not None and found:
                self._index.devices[os.fsencode(root.path)] = device
        return seen, current

    def _find(self, root: Root, visited: Visited) -> list[Found]:
        if root.source == "ollama":
            return list(find_ollama_files(root.path))
        return list(find_files(root.path, visited, self._linked))

    def _away(
        self, root: Root, device: int | None, known: dict[Key, Entry], current: dict[Key, Entry]
    ) -> list[_Seen]:
        """Keep what is known of a root that isn't there: its rows, and so that no header is read again."""
        name = os.fsencode(root.path)
        if device is not None and self._index.devices.get(name) in (None, device):
            return []  # it is there, and empty; an empty folder of another drive is where one was mounted
        below = name + os.fsencode(os.sep)
        kept = [e for key, e in known.items() if e.path.startswith(below) and key not in current]
        current.update({entry.key: entry for entry in kept})
        if kept or root.source == "folder":
            self._missing.append(root.path)
        return [(entry, root, True, None) for entry in kept]

    def _rows(self, seen: list[_Seen], chosen: dict[Path, Path | None]) -> tuple[list[Model], list[Model]]:
        away = {os.fsdecode(entry.path) for entry, _root, is_away, _path in seen if is_away}
        rows = with_ids(row(entry, root, path) for entry, root, _away, path in seen)
        named = {**_named_by_manifest(seen), **chosen}
        models, projectors = with_projectors(rows, _as_rows(named, rows))
        # a name, and what goes with what, stay as they were while the drive is away
        return [offline(model) if str(model.path) in away else model for model in models], projectors


def _as_roots(named: Roots) -> tuple[Root, ...]:
    roots = named() if callable(named) else named
    return tuple(root if isinstance(root, Root) else Root(Path(os.path.abspath(root))) for root in roots)


def _remembered(found: Found, known: dict[Key, Entry], earlier: dict[bytes, Entry]) -> Entry:
    key = (os.fsencode(found.path), found.size_bytes, found.stamp)
    entry = known.get(key)
    # a file that couldn't be opened may be readable now (rights, a drive that is back), unlike a bad header
    if entry is None or (entry.fault and entry.fault.code == UnreadableFile.code):
        entry = _entry(key, found, earlier.get(key[0]))
    elif (entry.place, entry.projector) != (found.place, _bytes(found.projector)):
        entry = _entry(key, found, None)
    return entry


def _entry(key: Key, found: Found, before: Entry | None) -> Entry:
    description, fault = examine(found)
    if before is not None and fault is None and _is_being_written(found, before):
        fault = _growing(found)
    return Entry(
        *key,
        description,
        fault,
        found.modified_ns,
        [os.fsencode(path) for path in found.files] if len(found.files) > 1 else [],
        found.place,
        _bytes(found.projector),
    )


def _is_being_written(found: Found, before: Entry) -> bool:
    """Tell whether a file of full length changed a moment ago: its room was taken before its data came."""
    is_new = found.modified_ns > time.time_ns() - int(QUIET_S * 1e9)
    is_other = before.stamp != found.stamp or _is_growing(before)
    return is_new and is_other and before.size_bytes == found.size_bytes


def _growing(found: Found) -> ErrorReport:
    return UnreadableFile(
        f"{printable(found.path.name)} is being written just now.",
        hint="It is offered as soon as it is left alone.",
        path=printable(found.path),
        is_growing=True,
    ).report()


def _is_growing(entry: Entry) -> bool:
    return entry.fault is not None and "is_growing" in entry.fault.details


def _lasting(entries: dict[Key, Entry]) -> set[Key]:
    return {key for key, entry in entries.items() if not _is_growing(entry)}


def _named_by_manifest(seen: list[_Seen]) -> dict[Path, Path | None]:
    """Give the projectors of models whose own program says what goes with what."""
    return {
        Path(os.fsdecode(entry.path)): Path(os.fsdecode(entry.projector)) if entry.projector else None
        for entry, *_rest in seen
        if entry.place is not None
    }


def _as_rows(named: dict[Path, Path | None], rows: list[Model]) -> dict[Path, Model | None]:
    if not named:
        return {}
    wanted = {path for path in named.values() if path is not None}
    there = {model.path: model for model in rows if model.path in wanted}
    return {
        model: None if path is None else there.get(path) or _read_outside(path)
        for model, path in named.items()
    }


def _read_outside(path: Path) -> Model | None:
    try:
        found = outside_row(path)
    except (OSError, ValueError):
        return None
    return found if found is not None and found.fault is None else None


def _bytes(path: Path | None) -> bytes | None:
    return None if path is None else os.fsencode(path)
