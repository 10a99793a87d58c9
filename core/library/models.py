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

import os
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from octavo.core.errors import ErrorReport, InvalidGguf, from_report
from octavo.core.gguf import Description, printable, split_name
from octavo.core.library.hub_cache import FOLDER as HUB_FOLDER
from octavo.core.library.roots import Source

LOCAL_PUBLISHER = "local"
"""Publisher of files that lie in no publisher's folder."""

_MODEL_KINDS = ("model", "embedding")


@dataclass(frozen=True, slots=True)
class Model:
    """One row of the library: a GGUF file, or the files of a split model, and what its header tells.

    ``path`` is what the engine loads: of a split model part 1, or the first part that is there; ``files`` are
    all parts that are there, and ``size_bytes`` is their sum. ``projector`` is the row of the model's image
    or audio part, if one lies beside it; its bytes are not in ``size_bytes``.

    ``fault`` says why the file can't be used and is None for a sound one; ``description`` is None when not
    even the header could be read. ``path`` may hold bytes that are no UTF-8: show ``printable(path)``.
    ``source`` says whose folder ``root`` is. ``is_offline``: the folder isn't there now (an unplugged drive),
    so that the row is what was known of it, and ``fault`` says so.
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
    source: Source = "folder"
    is_offline: bool = False

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
    # by text: taking paths apart is what a long list would spend its time on
    below = os.fspath(path).removeprefix(os.fspath(root)).strip(os.sep)
    folders = [clean_text(part) for part in below.split(os.sep)[:-1]]
    for folder in folders:
        if folder.startswith("models--") and (found := HUB_FOLDER.fullmatch(folder)):
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
    folders: dict[tuple[str, str], list[int]] = defaultdict(list)
    for index, model in enumerate(ordered):
        folders[model.publisher, model.name].append(index)
    proposed = [""] * len(ordered)
    for group in folders.values():
        for index, name in zip(group, _names_in_folder([ordered[i] for i in group]), strict=True):
            proposed[index] = name
    taken: set[str] = set()
    return [replace(model, id=_free(name, taken)) for model, name in zip(ordered, proposed, strict=True)]


def clean_text(name: str) -> str:
    """Make a file or folder name fit for an id: one line, valid UTF-8, composed (NFC)."""
    if name.isascii() and name.isprintable():
        return name
    return unicodedata.normalize("NFC", printable(name))


def file_stem(path: Path) -> str:
    """Give a file's name without ``.gguf`` and, of a part of a split model, without its number."""
    if "-of-" in path.name and (parts := split_name(path.name)):
        return clean_text(parts[0])
    return clean_text(path.name[: -len(".gguf")] if path.name.lower().endswith(".gguf") else path.name)


def _names_in_folder(group: Sequence[Model]) -> Iterator[str]:
    is_sound = [model.is_loadable for model in group]
    quants = Counter(_quant(model) for model, sound in zip(group, is_sound, strict=True) if sound)
    for model, sound in zip(group, is_sound, strict=True):
        folder = f"{model.publisher}/{model.name}"
        quant = _quant(model)
        if not sound:
            yield f"{folder}/{file_stem(model.path)}"
        elif sum(is_sound) == 1:
            yield folder
        elif quant and quants[quant] == 1:
            yield f"{folder}@{quant}"
        else:
            yield f"{folder}/{file_stem(model.path)}"


def _quant(model: Model) -> str | None:
    return model.description.quant if model.description else None


def _free(proposed: str, taken: set[str]) -> str:
    name, count = proposed, 1
    while name in taken:
        count += 1
        name = f"{proposed}~{count}"
    taken.add(name)
    return name
