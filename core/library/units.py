"""What is imported as one: a model with all its parts and its projector, given any of its files.

Which projector belongs to a model is decided as in the library (see ``projectors``), from the headers of all
GGUF files in the source's folder.
"""

import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from octavo.core.errors import ErrorReport, InvalidRequest, UnreadableFile
from octavo.core.gguf import Description, Header, describe, members, printable, read_header
from octavo.core.gguf.shards import check_present, is_whole_alone, joined
from octavo.core.library.models import Model, file_stem
from octavo.core.library.places import is_below
from octavo.core.library.projectors import with_projectors
from octavo.core.library.scan import Found, Visited, examine, find_files, look_at


@dataclass(frozen=True, slots=True)
class Unit:
    """A model's files, in order, as the engine needs them, and what goes with them.

    ``is_shared``: another model of the folder has the same projector, so that it must stay there too.
    """

    parts: tuple[Path, ...]
    description: Description
    projector: Path | None = None
    projector_description: Description | None = None
    is_shared: bool = False

    @property
    def files(self) -> tuple[Path, ...]:
        """All files, the projector last."""
        return (*self.parts, self.projector) if self.projector else self.parts


def unit_of(source: Path, *, with_projector: bool = True, projector: Path | None = None) -> Unit:
    """Find and check all that belongs to the model that ``source`` is, or is a part of.

    ``projector`` names another one than the folder's. Raises ``UnreadableFile``, ``InvalidGguf`` and
    ``InvalidRequest`` (a folder; a file that is no projector).
    """
    parts, description = _checked(source)
    if description.kind != "model" and projector is None:
        return Unit(parts, description)
    if projector is not None:
        return Unit(parts, description, projector, _checked_projector(projector))
    return _paired(parts, description) if with_projector else Unit(parts, description)


def sources_below(folder: Path) -> tuple[list[Path], list[Path], int]:
    """Give one file of each unit below ``folder``, and the projectors that go with none of them.

    A projector that belongs to a model beside it comes with that model. Linked folders that lead elsewhere
    are not gone into; last comes how many those are. Raises ``UnreadableFile`` where there is no GGUF file
    at all.
    """
    outside, left_out = _linked_elsewhere(folder)
    inside = (found for found in find_files(folder, outside) if is_below(found.path, folder))
    rows, projectors = with_projectors(_row(found) for found in inside)
    taken = {model.projector.path for model in rows if model.projector}
    alone = [model.path for model in projectors if model.path not in taken]
    if not rows and not projectors:
        hint = "Linked folders that lead elsewhere are left out: name what they lead to." if left_out else ""
        message = f"There is no .gguf file in {printable(folder)}."
        raise UnreadableFile(message, hint=hint, path=printable(folder))
    return sorted(model.path for model in rows), sorted(alone), left_out


def _linked_elsewhere(folder: Path) -> tuple[Visited, int]:
    """Find where linked folders below ``folder`` lead out of it, and how many such links there are."""
    outside, count = Visited(), 0
    for above, names, _ in os.walk(folder):
        for path in (Path(above, name) for name in names):
            if path.is_symlink() and not is_below(path / "x", folder):
                count += 1
                # one that was removed meanwhile leads nowhere
                with suppress(FileNotFoundError):
                    status = path.stat()
                    outside.add((status.st_dev, status.st_ino))
    return outside, count


def pairs_by_itself(
    model: Path, description: Description, projector: Path, projector_description: Description
) -> bool:
    """Tell whether the library will find the projector for the model, once both have these names."""
    (row,), _ = with_projectors(
        [_facts(model, description), _facts(projector, projector_description)],
    )
    return row.projector is not None


def _checked(source: Path) -> tuple[tuple[Path, ...], Description]:
    if os.path.isdir(source):
        raise InvalidRequest(f"{printable(source)} is a folder.", hint="Name the .gguf file in it.")
    if not os.path.lexists(source):
        raise UnreadableFile(
            f"There is no file {printable(source)}.",
            hint="Check its name and the folder that it lies in.",
            path=printable(source),
        )
    parts = members(source)
    if len(parts) > 1 and is_whole_alone(source):
        parts = (source,)
    check_present(parts)
    header = joined([read_header(part) for part in parts])
    _check(header)
    return parts, describe(header)


def _check(header: Header) -> None:
    # what goes with a model (projector, adapter, later shard) may be brought in too, though not loaded alone
    if header.kind in ("model", "vocabulary"):
        header.check_loadable()
    header.check_complete()


def _checked_projector(path: Path) -> Description:
    header = read_header(path)
    header.check_complete()
    description = describe(header)
    if description.kind != "projector":
        raise InvalidRequest(
            f"{printable(path)} is no projector, but a {description.kind}.",
            hint="Name a file that is the image or audio part of a model (mmproj).",
            param="projector",
        )
    return description


def _paired(parts: tuple[Path, ...], description: Description) -> Unit:
    rows, _ = with_projectors(_rows_beside(parts[0]))
    mine = next((row for row in rows if row.path == parts[0]), None)
    if mine is None or mine.projector is None:
        return Unit(parts, description)
    path = mine.projector.path
    others = (row for row in rows if row.projector and row.path != parts[0])
    is_shared = any(row.projector and row.projector.path == path for row in others)
    return Unit(parts, description, path, mine.projector.description, is_shared)


def _rows_beside(path: Path) -> Iterable[Model]:
    """Look at each model of the folder once; a folder with nothing else in it is not looked at."""
    seen = set(members(path))
    if (found := look_at(path)) is not None:
        yield _row(found)
    for name in sorted(os.listdir(path.parent)):
        other = path.parent / name
        if other in seen or name.startswith(".") or not name.lower().endswith(".gguf"):
            continue
        if (found := look_at(other)) is not None:
            seen.update(found.files)
            yield _row(found)


def _row(found: Found) -> Model:
    description, fault = examine(found)
    return _facts(found.path, description, found.size_bytes, fault, found.files)


def _facts(
    path: Path,
    description: Description | None,
    size_bytes: int = 0,
    fault: ErrorReport | None = None,
    files: tuple[Path, ...] = (),
) -> Model:
    return Model(
        id=printable(path),
        path=path,
        root=path.parent,
        publisher="",
        name=file_stem(path),
        size_bytes=size_bytes,
        modified_ns=0,
        description=description,
        fault=fault,
        files=files,
    )
