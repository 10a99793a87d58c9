"""Bring one model into the library, with all its parts and its projector, whole or not at all.

``plan_import`` looks and decides, changing nothing (a dry run is a plan that is not run); ``run_import``
carries a plan out. A target is never overwritten, a source never lost: ``staging`` tells how.
"""

import errno
import filecmp
import os
from collections.abc import Callable, Sequence
from pathlib import Path

from octavo.core.gguf import Description
from octavo.core.library.folders import existing
from octavo.core.library.models import file_stem, named_place
from octavo.core.library.owners import owner_of
from octavo.core.library.places import (
    folder_below,
    is_below,
    proposed_file_name,
    proposed_place,
    split_place,
    taken_by,
    target_exists,
)
from octavo.core.library.plans import (
    ImportMode,
    ImportPlan,
    PlannedFile,
    ProposeFromHub,
    check_removable,
    check_same_disk,
    check_unchanged,
    is_removable,
    wait_until_quiet,
)
from octavo.core.library.space import check_space, filled_up
from octavo.core.library.staging import Staged, publish, staging_folder
from octavo.core.library.transfer import (
    Cancel,
    Progress,
    copy_into,
    explained,
    link_into,
    link_or_copy_into,
    move_into,
    stop_if,
    symlink_into,
)
from octavo.core.library.units import Unit, pairs_by_itself, unit_of

__all__ = ["ImportMode", "ImportPlan", "PlannedFile", "plan_import", "run_import"]


def plan_import(
    source: Path,
    root: Path,
    publisher_model: str | None = None,
    mode: ImportMode | None = None,
    *,
    with_projector: bool = True,
    projector: Path | None = None,
    propose_from_hub: ProposeFromHub | None = None,
    beside_bytes: int = 0,
) -> ImportPlan:
    """Decide how the model of ``source`` gets into the library at ``root``, and refuse what can't work.

    Without a ``mode`` the files are moved, unless one lies in another program's folder or cache: then they
    are hard-linked or, across disks, copied. ``projector`` is taken instead of the folder's.
    ``propose_from_hub`` is asked for the place of a file by its name where nothing better says it.
    What lies in the library already stays where it is, unless ``publisher_model`` names its place.
    ``beside_bytes`` are needed on the disk for other plans. Changes nothing. Raises ``UnreadableFile``,
    ``InvalidGguf``, ``InvalidRequest`` (names, mode, projector), ``TargetExists`` and ``StorageFailed`` (no
    room, a source that can't be moved).
    """
    source, root = _absolute(source), _absolute(root)
    chosen = _absolute(projector) if projector else None
    unit = unit_of(source, with_projector=with_projector, projector=chosen)
    if publisher_model:
        plan = _planned(unit, root, *split_place(publisher_model), mode)
    elif (there := _in_library(unit.parts[0], root)) is not None:
        plan = _kept(unit, root, there, mode)
    else:
        place = proposed_place(unit.parts[0], unit.description, propose_from_hub)
        plan = _planned(unit, root, *place, mode)
    left = [file for file in plan.files if not file.present]
    check_same_disk(left)
    check_removable(left)
    if plan.needed_bytes:
        check_space(plan.target.parent, plan.needed_bytes + beside_bytes)
    wait_until_quiet(left)
    return plan


def run_import(plan: ImportPlan, progress: Progress | None = None, cancelled: Cancel | None = None) -> Path:
    """Carry out ``plan`` and give the model's new path.

    ``progress`` is called with (bytes done, bytes in all); ``cancelled`` is asked between blocks. Raises
    ``TargetExists``, ``StorageFailed``, ``UnreadableFile`` and ``Cancelled``; after any of them the target's
    folder is as it was.
    """
    files = [file for file in plan.files if not file.present]
    check_unchanged(files)
    files = [file for file in files if not _is_same_file(file.source, file.target)]
    if not files:
        return plan.target
    folder = plan.target.parent
    if needed := sum(file.size_bytes for file in files if file.copies_bytes):
        check_space(folder, needed)
    asked = cancelled or _never
    with staging_folder(plan.root, folder) as hidden:
        staged = _made(files, hidden, progress or _silent, asked)
        check_unchanged(files)
        stop_if(asked)
        publish(plan.root, hidden, staged)
    return plan.target


def remove_shared(plans: Sequence[ImportPlan]) -> None:
    """Remove the projectors that stayed for other models, now that ``plans`` moved all of their folder."""
    if any(plan.mode is not ImportMode.MOVE or plan.present for plan in plans):
        return
    for plan in plans:
        for file in plan.files:
            # one that was in its place from the start has no second name to remove
            if os.path.realpath(file.source) == os.path.realpath(file.target):
                continue
            if file.mode is ImportMode.HARD_LINK and _is_same_file(file.source, file.target):
                with explained(file.source):
                    file.source.unlink(missing_ok=True)


def _planned(unit: Unit, root: Path, publisher: str, model: str, asked: ImportMode | None) -> ImportPlan:
    folder = folder_below(root, publisher, model)
    mode, reason = (asked, "as asked") if asked else _default(unit, folder)
    names = [proposed_file_name(part, model, unit.description) for part in unit.parts]
    files = [
        _file(part, folder / name, mode, asked is not None)
        for part, name in zip(unit.parts, names, strict=True)
    ]
    if unit.projector and unit.projector_description:
        name = _projector_name(unit.projector, unit.projector_description, unit.description, names[0], model)
        # another model needs it where it is
        stays = unit.is_shared and mode is ImportMode.MOVE
        its_mode = ImportMode.HARD_LINK if stays else mode
        files.append(_file(unit.projector, folder / name, its_mode, asked is not None and not stays))
    if all(file.present for file in files):
        reason = "nothing to do"
    return ImportPlan(tuple(files), root, mode, publisher, model, reason, unit.description)


def _in_library(source: Path, root: Path) -> Path | None:
    """Give the path at which the library has ``source`` itself, or the file that it links to."""
    for path in (source, Path(os.path.realpath(source))):
        if is_below(path, root):
            return root / Path(os.path.realpath(path.parent)).relative_to(os.path.realpath(root)) / path.name
    return None


def _kept(unit: Unit, root: Path, there: Path, asked: ImportMode | None) -> ImportPlan:
    """Plan nothing for a model that is in the library; a projector named from elsewhere goes beside it."""
    publisher, model = named_place(there, root)
    mode = asked or ImportMode.MOVE
    files = [_file(part, part, mode, asked is not None) for part in unit.parts]
    reason = "nothing to do"
    if unit.projector and unit.projector_description:
        target = unit.projector
        if _in_library(target, root) is None:
            facts = unit.projector_description
            name = _projector_name(target, facts, unit.description, there.name, file_stem(there))
            target, reason = there.parent / name, "beside its model"
        files.append(_file(unit.projector, target, mode, asked is not None))
    return ImportPlan(tuple(files), root, mode, publisher, model, reason, unit.description)


def _default(unit: Unit, folder: Path) -> tuple[ImportMode, str]:
    owner = next((owner for file in unit.files if (owner := owner_of(file))), None)
    if owner is None:
        if all(is_removable(file) for file in unit.files):
            return ImportMode.MOVE, "the default"
        return ImportMode.COPY, "its folder can't be written, so that it stays there"
    if all(_device(file) == _device(folder) for file in unit.files):
        return ImportMode.HARD_LINK, f"it belongs to {owner}; a hard link takes no room and leaves it there"
    return ImportMode.COPY, f"it belongs to {owner}, on another disk"


def _projector_name(
    projector: Path, facts: Description, model_facts: Description, model_file: str, model: str
) -> str:
    """Keep the projector's name, unless the library would not find it for the model by that."""
    name = proposed_file_name(projector, f"mmproj-{model}", facts)
    if pairs_by_itself(Path(model_file), model_facts, Path(name), facts):
        return name
    # by the same name but for mmproj and quants they belong together
    return f"mmproj-{file_stem(Path(model_file))}.gguf"


def _file(source: Path, target: Path, mode: ImportMode, asked: bool) -> PlannedFile:
    taken = taken_by(target)
    if taken is not None and not _is_same_file(source, taken):
        raise target_exists(taken)
    status = source.stat()
    same_disk = _device(source) == _device(target.parent)
    moves_bytes = mode is ImportMode.MOVE and not source.is_symlink() and not same_disk
    links_bytes = mode is ImportMode.HARD_LINK and not same_disk
    return PlannedFile(
        source=source,
        target=taken or target,
        size_bytes=status.st_size,
        modified_ns=status.st_mtime_ns,
        mode=mode,
        asked=asked,
        copies_bytes=taken is None and (mode is ImportMode.COPY or moves_bytes or links_bytes),
        crosses_disks=not same_disk,
        present=taken is not None,
    )


def _made(files: Sequence[PlannedFile], folder: Path, progress: Progress, cancelled: Cancel) -> list[Staged]:
    """Make all files in the hidden ``folder``."""
    total, done = sum(file.size_bytes for file in files), 0
    made = []
    for number, file in enumerate(files):

        def tell(count: int, _size: int, before: int = done) -> None:
            progress(before + count, total)

        stop_if(cancelled)
        staged = folder / f"{number:05d}"
        with explained(file.target):
            try:
                _maker(file)(file.source, staged, tell, cancelled)
            except OSError as error:
                if error.errno in (errno.ENOSPC, errno.EDQUOT):
                    raise filled_up(file.target.parent, total) from error
                raise
        done += file.size_bytes
        made.append(Staged(staged, file.target, file.source, file.mode is ImportMode.MOVE))
    return made


def _maker(file: PlannedFile) -> Callable[[Path, Path, Progress, Cancel], None]:
    return {
        ImportMode.MOVE: move_into,
        ImportMode.COPY: copy_into,
        ImportMode.HARD_LINK: link_into if file.asked else link_or_copy_into,
        ImportMode.SYMLINK: symlink_into,
    }[file.mode]


def _is_same_file(source: Path, there: Path) -> bool:
    """Tell whether both are one file, or two with the same bytes."""
    try:
        return os.path.samefile(source, there) or filecmp.cmp(source, there, shallow=False)
    except OSError:
        return False


def _absolute(path: Path) -> Path:
    return Path(os.path.abspath(os.path.expanduser(path)))


def _device(path: Path) -> int:
    """Tell which disk ``path``, or the nearest folder above it that exists, is on; links are followed."""
    return existing(path).stat().st_dev


def _silent(done: int, total: int) -> None:
    """Report nothing."""


def _never() -> bool:
    return False
