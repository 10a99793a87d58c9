"""What the library knows of one model on disk, and the name that people and clients call it by.

An id is ``publisher/model``, taken from the folders that the file lies in:

* ``<root>/publisher/model/file.gguf`` → ``publisher/model``; deeper folders join the model's part;
* ``<root>/model/file.gguf`` → ``local/model``; ``<root>/file.gguf`` → ``local/file``;
* in a Hub cache, ``models--org--repo/snapshots/…/file.gguf`` → ``org/repo``.

Where a folder holds several models, each gets ``@QUANT``, or ``/file-stem`` where that doesn't tell them
apart. What is no model (a projector, a broken file) is always called ``publisher/model/file-stem``, so that
it never changes the name of a model beside it. What would still be equal gets ``~2``, ``~3`` … in the order
of the paths.
"""

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from octavo.core.errors import ErrorReport, InvalidGguf, from_report
from octavo.core.gguf import Description, printable, split_name

LOCAL_PUBLISHER = "local"
"""Publisher of files that lie in no publisher's folder."""

_MODEL_KINDS = ("model", "embedding")
_HUB_FOLDER = re.compile(r"models--([^/]+?)--(.+)")


@dataclass(frozen=True, slots=True)
class Model:
    """One row of the library: a GGUF file, or the files of a split model, and what its header tells.

    ``path`` is what the engine loads: of a split model part 1, or the first part that is there; ``files`` are
    all parts that are there, and ``size_bytes`` is their sum. ``projector`` is the row of the model's image
    or audio part, if one lies beside it; its bytes are not in ``size_bytes``.

    ``fault`` says why the file can't be used and is None for a sound one; ``description`` is None when not
    even the header could be read. ``path`` may hold bytes that are no UTF-8: show ``printable(path)``.
    """

    id: str
    path: Path
    root: Path
    publisher: str
    name: str
    size_bytes: int
    modified_ns: int
    description: Description | None = None
    fault: ErrorReport | None = None
    files: tuple[Path, ...] = ()
    projector: "Model | None" = None

    @property
    def kind(self) -> str:
        """The description's kind, or ``unreadable``."""
        return self.description.kind if self.description else "unreadable"

    @property
    def is_loadable(self) -> bool:
        """Whether the engine can be asked to load it."""
        return self.fault is None and self.kind in _MODEL_KINDS

    @property
    def sees_images(self) -> bool:
        """Whether images can be put to it: it has a projector that reads them."""
        facts = self.projector.description if self.projector else None
        return facts is not None and facts.capabilities.vision

    def require_sound(self) -> None:
        """Raise the error that the scan found in the file, or ``InvalidGguf`` for what is no model."""
        if self.fault:
            raise from_report(self.fault)
        if not self.is_loadable:
            raise InvalidGguf(
                f"{printable(self.path.name)} is no model by itself, but a part of one ({self.kind}).",
                hint="Load the model that it belongs to.",
                path=printable(self.path),
                fault="not_a_model",
            )


def named_place(path: Path, root: Path) -> tuple[str, str]:
    """Tell (publisher, model) from where ``path`` lies below ``root``."""
    folders = [clean_text(part) for part in path.relative_to(root).parts[:-1]]
    for folder in folders:
        if found := _HUB_FOLDER.fullmatch(folder):
            return found[1], found[2]
    match folders:
        case []:
            return LOCAL_PUBLISHER, file_stem(path)
        case [model]:
            return LOCAL_PUBLISHER, model
        case [publisher, *rest]:
            return publisher, "/".join(rest)
    raise AssertionError(folders)


def with_ids(models: Iterable[Model]) -> list[Model]:
    """Give each model its id; the same files always get the same ids."""
    ordered = sorted(models, key=lambda model: (str(model.root), str(model.path)))
    folders: dict[tuple[str, str], list[Model]] = defaultdict(list)
    for model in ordered:
        folders[model.publisher, model.name].append(model)
    proposed = {m.path: name for group in folders.values() for m, name in _names_in_folder(group)}
    return _unequal([replace(model, id=proposed[model.path]) for model in ordered])


def clean_text(name: str) -> str:
    """Make a file or folder name fit for an id: one line, valid UTF-8, composed (NFC)."""
    return unicodedata.normalize("NFC", printable(name))


def file_stem(path: Path) -> str:
    """Give a file's name without ``.gguf`` and, of a part of a split model, without its number."""
    if parts := split_name(path.name):
        return clean_text(parts[0])
    return clean_text(path.name[: -len(".gguf")] if path.name.lower().endswith(".gguf") else path.name)


def _names_in_folder(group: Sequence[Model]) -> Iterable[tuple[Model, str]]:
    loadable = [model for model in group if model.is_loadable]
    quants = Counter(_quant(model) for model in loadable)
    for model in group:
        folder = f"{model.publisher}/{model.name}"
        quant = _quant(model)
        if not model.is_loadable:
            yield model, f"{folder}/{file_stem(model.path)}"
        elif len(loadable) == 1:
            yield model, folder
        elif quant and quants[quant] == 1:
            yield model, f"{folder}@{quant}"
        else:
            yield model, f"{folder}/{file_stem(model.path)}"


def _quant(model: Model) -> str | None:
    return model.description.quant if model.description else None


def _unequal(models: list[Model]) -> list[Model]:
    taken: set[str] = set()
    return [replace(model, id=_free(model.id, taken)) for model in models]


def _free(proposed: str, taken: set[str]) -> str:
    name, count = proposed, 1
    while name in taken:
        count += 1
        name = f"{proposed}~{count}"
    taken.add(name)
    return name
