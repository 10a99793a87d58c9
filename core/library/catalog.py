"""The index of all models on disk: a header is read once and remembered by path, size and time of change."""

import difflib
import logging
import os
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from octavo.core.errors import AmbiguousModel, ErrorReport, ModelNotFound, UnreadableFile
from octavo.core.gguf import Description, printable
from octavo.core.library.models import Model, clean_text, file_stem, named_place, with_ids
from octavo.core.library.projectors import with_projectors
from octavo.core.library.scan import Found, examine, find_files, look_at

_log = logging.getLogger(__name__)
_FORMAT = 3

FRESH_S = 1.0
"""Seconds for which a listing is as good as a new look at the disk."""


class _Entry(msgspec.Struct, frozen=True, array_like=True):
    """A remembered file or split model, as ``Found``; ``path`` as the bytes that the file system uses."""

    path: bytes
    size_bytes: int
    stamp: int
    description: Description | None
    fault: ErrorReport | None


class _Index(msgspec.Struct, frozen=True):
    format: int
    entries: list[_Entry]


_Key = tuple[bytes, int, int]


class Catalog:
    """Every model below some roots, at any depth. Roots are read in place and never written.

    All methods may be called from any thread. ``cache_path`` holds the index between starts; a damaged one is
    set aside and built anew, and one that can't be written costs time, never an error.
    """

    def __init__(self, roots: Sequence[Path], cache_path: Path) -> None:
        self.roots = tuple(Path(os.path.abspath(root)) for root in roots)
        self._cache_path = cache_path
        self._lock = threading.Lock()
        self._known: dict[_Key, _Entry] | None = None
        self._models: list[Model] | None = None
        self._projectors: list[Model] = []
        self._scanned_at = 0.0

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
        """Name the roots that are not there now (an unplugged drive, a renamed folder)."""
        return [root for root in self.roots if not os.path.isdir(root)]

    def find(self, name: str, *, allow_path: bool = True) -> Model:
        """Find a model by id, by an unambiguous part of one, or (``allow_path``) by the path of a GGUF file.

        Raises ``ModelNotFound`` or ``AmbiguousModel``, both with ``candidates``. A row found may have a
        ``fault``: call ``require_sound`` on it before a load.
        """
        if not any(character.isalnum() for character in name):
            # a bare "/" would fit every id
            raise _unnamed(name)
        if allow_path and _looks_like_path(name) and (model := self._by_path(name)):
            return model
        return _chosen(name, self.models()) or _chosen(name, self.refresh()) or self._nowhere(name)

    def _nowhere(self, name: str) -> Model:
        candidates = _near(name, self.models())
        hint = f"Did you mean {candidates[0]}?" if candidates else "`octavo ls` lists the models."
        raise ModelNotFound(f"There is no model {printable(name)!r}.", hint=hint, candidates=list(candidates))

    def _by_path(self, name: str) -> Model | None:
        path = Path(os.path.abspath(os.path.expanduser(name)))
        try:
            if not path.is_file():
                return None
        except (OSError, ValueError):
            return None
        for model in self.models():
            if path in model.files:
                return model
        return _outside(path)

    def _scan(self) -> list[Model]:
        known = self._load() if self._known is None else self._known
        rows: list[Model] = []
        current: dict[_Key, _Entry] = {}
        for root in self.roots:
            for found in find_files(root):
                key, entry = _remembered(found, known)
                if key not in current:
                    current[key] = entry
                    rows.append(_row(found, entry, root))
        self._keep_missing(known, current)
        if current.keys() != known.keys() or not self._cache_path.exists():
            self._save(current)
        self._known, self._scanned_at = current, time.monotonic()
        self._models, self._projectors = with_projectors(with_ids(rows))
        return self._models

    def _keep_missing(self, known: dict[_Key, _Entry], current: dict[_Key, _Entry]) -> None:
        """Remember the files of an unplugged root, so that they needn't be read again when it is back."""
        gone = tuple(os.fsencode(root) + os.fsencode(os.sep) for root in self.missing_roots())
        current.update({key: entry for key, entry in known.items() if gone and key[0].startswith(gone)})

    def _load(self) -> dict[_Key, _Entry]:
        try:
            index = msgspec.msgpack.decode(self._cache_path.read_bytes(), type=_Index)
        except FileNotFoundError:
            return {}
        except OSError as error:
            _log.warning("the model index can't be read: %s", error)
            return {}
        except (msgspec.DecodeError, ValueError) as error:
            self._set_aside(error)
            return {}
        if index.format != _FORMAT:
            return {}
        return {(entry.path, entry.size_bytes, entry.stamp): entry for entry in index.entries}

    def _set_aside(self, error: Exception) -> None:
        aside = self._cache_path.with_name(self._cache_path.name + ".damaged")
        _log.warning("the model index is damaged (%s); it is set aside as %s", error, aside.name)
        try:
            os.replace(self._cache_path, aside)
        except OSError as failed:
            _log.warning("the damaged model index can't be moved: %s", failed)

    def _save(self, entries: dict[_Key, _Entry]) -> None:
        temporary = self._cache_path.with_name(f".{self._cache_path.name}.{os.getpid()}.part")
        try:
            self._cache_path.parent.mkdir(parents=True, exist_ok=True)
            with open(temporary, "wb") as file:
                file.write(msgspec.msgpack.encode(_Index(_FORMAT, list(entries.values()))))
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, self._cache_path)
        except OSError as error:
            _log.warning("the model index can't be saved: %s", error)
            with suppress(OSError):
                temporary.unlink()


def _remembered(found: Found, known: dict[_Key, _Entry]) -> tuple[_Key, _Entry]:
    key = (os.fsencode(found.path), found.size_bytes, found.stamp)
    entry = known.get(key)
    # a file that couldn't be opened may be readable now (rights, a drive that is back), unlike a bad header
    if entry is None or (entry.fault and entry.fault.code == UnreadableFile.code):
        entry = _Entry(*key, *examine(found))
    return key, entry


def _row(found: Found, entry: _Entry, root: Path) -> Model:
    publisher, name = named_place(found.path, root)
    return Model(
        id="",
        path=found.path,
        root=root,
        publisher=publisher,
        name=name,
        size_bytes=found.size_bytes,
        modified_ns=found.modified_ns,
        description=entry.description,
        fault=entry.fault,
        files=found.files,
    )


def _outside(path: Path) -> Model | None:
    """Make a row for a file, or a split model, that lies in no root; its id is its path."""
    found = look_at(path)
    if found is None:
        return None
    description, fault = examine(found)
    return Model(
        id=printable(found.path),
        path=found.path,
        root=path.parent,
        publisher="",
        name=file_stem(path),
        size_bytes=found.size_bytes,
        modified_ns=found.modified_ns,
        description=description,
        fault=fault,
        files=found.files,
    )


def _unnamed(name: str) -> ModelNotFound:
    said = f"There is no model {printable(name)!r}." if name.strip() else "No model was named."
    return ModelNotFound(said, hint="`octavo ls` lists the models.", candidates=[])


def _looks_like_path(name: str) -> bool:
    return os.sep in name or "/" in name or name.lower().endswith(".gguf")


def _folded(text: str) -> str:
    return clean_text(text).casefold()


def _chosen(name: str, models: list[Model]) -> Model | None:
    """Pick the one model that ``name`` means, trying the strictest reading first."""
    wanted = _folded(name)
    readings: tuple[Callable[[Model], bool], ...] = (
        lambda model: model.id == name,
        lambda model: _folded(model.id) == wanted,
        lambda model: wanted in _parts(model),
        lambda model: wanted in _folded(model.id),
    )
    for reading in readings:
        matches = [model for model in models if reading(model)]
        if matches := [model for model in matches if model.is_loadable] or matches:
            return _only(name, matches)
    return None


def _parts(model: Model) -> set[str]:
    """What a person may call the model: ``model``, ``model@QUANT``, the file with and without its ending."""
    short = _folded(model.id).removeprefix(_folded(model.publisher) + "/")
    return {
        short,
        *short.split("/"),
        short.partition("@")[0],
        _folded(file_stem(model.path)),
        *(_folded(path.name) for path in model.files),
        *(_folded(path.stem) for path in model.files),
    }


def _only(name: str, matches: list[Model]) -> Model:
    if len(matches) == 1:
        return matches[0]
    ids = [model.id for model in matches]
    listed = ", ".join(ids[:8]) + (" …" if len(ids) > 8 else "")
    raise AmbiguousModel(
        f"{printable(name)!r} fits {len(ids)} models: {listed}.",
        hint="Give more of the id.",
        candidates=list(ids),
    )


def _near(name: str, models: list[Model], most: int = 5) -> list[str]:
    """Name the models whose id, or a part of it, is spelled most like ``name``, the nearest first."""
    wanted = _folded(name)

    def likeness(model: Model) -> float:
        spellings = {_folded(model.id), *_parts(model)}
        return max(difflib.SequenceMatcher(None, wanted, spelling).ratio() for spelling in spellings)

    scored = sorted(((likeness(model), model.id) for model in models if model.is_loadable), reverse=True)
    return [name for score, name in scored[:most] if score >= 0.5]
