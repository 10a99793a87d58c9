"""Delete a model: what will go is said in full first, and other programs' files are never touched."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec

from octavo.core.errors import ForeignFile, InvalidRequest, StorageFailed, from_report
from octavo.core.gguf import printable
from octavo.core.library.models import Model
from octavo.core.library.owners import owner_of
from octavo.core.library.roots import PROGRAMS, Root
from octavo.core.library.trash import has_trash, put_into_trash

Kind = Literal["model", "projector"]

_HOW = {
    "LM Studio": "Delete it in LM Studio.",
    "the Hugging Face cache": "Delete it with the hub's own tool: hf cache rm.",
    "Ollama": "Delete it with Ollama: ollama rm NAME.",
}


class RemovedFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file that goes, or is gone. Of a link only the link goes; ``other_names`` of a file keep its data."""

    path: str
    size_bytes: int
    kind: Kind = "model"
    is_link: bool = False
    target: str | None = None
    other_names: int = 0


class Removal(msgspec.Struct, frozen=True, kw_only=True):
    """What a deletion does, or with ``dry_run`` would do.

    ``freed_bytes`` is what the disk has more after it, once the trash is emptied; ``folders`` are those of
    ours that are empty then; ``notes`` say what stays, and why.
    """

    model: str
    dry_run: bool
    to_trash: bool
    freed_bytes: int
    files: list[RemovedFile]
    folders: list[str]
    notes: list[str]


@dataclass(frozen=True, slots=True)
class RemovalPlan:
    """A deletion that was thought through and not done yet."""

    paths: tuple[Path, ...]
    folders: tuple[Path, ...]
    told: Removal


def plan_removal(
    model: Model, models: Sequence[Model], roots: Sequence[Root], *, permanently: bool = False
) -> RemovalPlan:
    """Say what deleting ``model`` means; changes nothing. ``models`` are all, to see what else is in use.

    Raises ``ForeignFile`` for another program's file, ``FolderNotFound`` for one whose drive is away, and
    ``InvalidRequest`` for a file outside the library.
    """
    _check(model, roots)
    projector, notes = _projector_to_go(model, models, roots)
    paths = (*model.files, *(projector.files if projector else ()))
    files = [_file(path, "projector" if path not in model.files else "model") for path in paths]
    folders = _emptied(paths, model.root) if model.source == "octavo" else ()
    to_trash = not permanently and all(has_trash(path) for path in paths if not path.is_symlink())
    notes += [note for file in files if (note := _stays(file))]
    if not to_trash and not permanently and not all(file.is_link for file in files):
        notes.append("There is no trash for this disk: the files are deleted for good.")
    told = Removal(
        model=model.id,
        dry_run=True,
        to_trash=to_trash,
        freed_bytes=sum(file.size_bytes for file in files if not file.is_link and not file.other_names),
        files=files,
        folders=[printable(folder) for folder in folders],
        notes=notes,
    )
    return RemovalPlan(paths, folders, told)


def run_removal(plan: RemovalPlan) -> Removal:
    """Delete what the plan says; raises ``StorageFailed``, which names what is gone already."""
    gone: list[str] = []
    for path in plan.paths:
        try:
            _remove(path, plan.told.to_trash)
        except FileNotFoundError:
            continue  # somebody else was faster
        except OSError as fault:
            raise _stopped(path, gone, fault.strerror or str(fault), "Check the folder's rights.") from fault
        except StorageFailed as fault:
            raise _stopped(path, gone, fault.message, fault.hint) from fault
        gone.append(printable(path.name))
    for folder in plan.folders:
        try:
            folder.rmdir()
        except OSError:
            break  # something new is in it
    return msgspec.structs.replace(plan.told, dry_run=False)


def _remove(path: Path, to_trash: bool) -> None:
    # a trash would follow a link, and of a link nothing is lost
    if to_trash and not path.is_symlink():
        put_into_trash(path)
    else:
        path.unlink()


def _check(model: Model, roots: Sequence[Root]) -> None:
    if model.is_offline and model.fault:
        raise from_report(model.fault)
    owner = PROGRAMS.get(model.source) or next(
        (name for path in model.files if (name := _owner(path, roots))), None
    )
    if owner:
        raise ForeignFile(
            f"{model.id} belongs to {owner}; Octavo only reads it there.",
            hint=_HOW.get(owner, f"Delete it in {owner}."),
            path=printable(model.path),
            owner=owner,
        )
    if not any(model.root == root.path and root.is_ours for root in roots):
        raise InvalidRequest(
            f"{model.id} isn't in the library.", hint="Delete the file by other means.", param="model"
        )


def _owner(path: Path, roots: Sequence[Root]) -> str | None:
    """Name the program whose folder a name really lies in; what it links to may lie anywhere."""
    folder = Path(os.path.realpath(path.parent))
    for root in roots:
        if not root.is_ours and folder.is_relative_to(os.path.realpath(root.path)):
            return PROGRAMS[root.source]
    ours = [Path(os.path.realpath(root.path)) for root in roots if root.source == "octavo"]
    return None if any(folder.is_relative_to(own) for own in ours) else owner_of(path.parent)


def _projector_to_go(
    model: Model, models: Sequence[Model], roots: Sequence[Root]
) -> tuple[Model | None, list[str]]:
    projector = model.projector
    if projector is None:
        return None, []
    name = printable(projector.path)
    users = [o.id for o in models if o.id != model.id and o.projector and o.projector.path == projector.path]
    if users:
        return None, [f"The projector {name} stays: {', '.join(users)} uses it."]
    if projector.root != model.root or any(_owner(path, roots) for path in projector.files):
        return None, [f"The projector {name} stays: it lies elsewhere."]
    return projector, []


def _file(path: Path, kind: Kind) -> RemovedFile:
    status = os.lstat(path)
    is_link = path.is_symlink()
    return RemovedFile(
        path=printable(path),
        size_bytes=0 if is_link else status.st_size,
        kind=kind,
        is_link=is_link,
        target=printable(os.path.realpath(path)) if is_link else None,
        other_names=0 if is_link else status.st_nlink - 1,
    )


def _stays(file: RemovedFile) -> str:
    if file.is_link:
        return f"{file.path} is a link: {file.target} stays."
    if file.other_names:
        names = "another name" if file.other_names == 1 else f"{file.other_names} other names"
        return f"{file.path} has {names} on this disk, which keep the data: no space is freed."
    return ""


def _emptied(paths: Sequence[Path], root: Path) -> tuple[Path, ...]:
    """List the folders below ``root`` in which nothing is left, the innermost first."""
    going = set(paths)
    found: list[Path] = []
    for folder in sorted({path.parent for path in paths}, key=lambda path: -len(path.parts)):
        while folder != root and folder.is_relative_to(root) and not folder.is_symlink():
            if any(entry not in going for entry in folder.iterdir()):
                break
            going.add(folder)
            if folder not in found:
                found.append(folder)
            folder = folder.parent
    return tuple(found)


def _stopped(path: Path, gone: list[str], reason: str, hint: str) -> StorageFailed:
    before = f" Deleted before that: {', '.join(gone)}." if gone else ""
    return StorageFailed(
        f"{printable(path)} could not be deleted: {reason.rstrip('.')}.{before}",
        hint=hint,
        path=printable(path),
    )
