"""Make the library's rows of what a scan found or remembers."""

import os
from dataclasses import replace
from pathlib import Path

from octavo.core.errors import ErrorReport, FolderNotFound
from octavo.core.gguf import printable
from octavo.core.library.found import look_at
from octavo.core.library.index import Entry
from octavo.core.library.models import Model, file_stem, named_place
from octavo.core.library.roots import Root
from octavo.core.library.scan import examine


def row(entry: Entry, root: Root, path: Path | None = None) -> Model:
    """Make the row of a file below ``root``, whose ``path`` may be at hand; it has no id yet."""
    path = path or Path(os.fsdecode(entry.path))
    publisher, name = entry.place or named_place(path, root.path)
    return Model(
        id="",
        path=path,
        root=root.path,
        publisher=publisher,
        name=name,
        size_bytes=entry.size_bytes,
        modified_ns=entry.modified_ns,
        description=entry.description,
        fault=entry.fault,
        files=tuple(Path(os.fsdecode(name)) for name in entry.files) or (path,),
        source=root.source,
    )


def outside_row(path: Path) -> Model | None:
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


def offline(model: Model) -> Model:
    """Mark a row whose folder isn't there."""
    return replace(model, is_offline=True, fault=_away(model))


def _away(model: Model) -> ErrorReport:
    folder = printable(model.root)
    return FolderNotFound(
        f"The folder {folder} that holds {model.id} is not found.",
        hint="Connect its drive, or give it its old name back; the model is here again then.",
        path=printable(model.path),
        folder=folder,
    ).report()
