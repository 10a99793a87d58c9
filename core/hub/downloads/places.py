"""Where the files of a download go, and what they are called until they are whole.

Folders of the repository are kept, so that ``old/model.gguf`` and ``new/model.gguf`` are two files. Only a
projector goes beside the model that it comes with, because that is where it is looked for.
"""

import hashlib
from pathlib import Path, PurePosixPath

from octavo.core.errors import InvalidRequest
from octavo.core.gguf import printable
from octavo.core.hub.names import is_safe_name, safe_path
from octavo.core.hub.types import DownloadWish

PART_ENDING = ".download"
_LONGEST_NAME = 250


def targets(models: Path, wish: DownloadWish) -> list[Path]:
    """Give the place of each file of a wish, in order; raises ``InvalidRequest`` for an unsafe name."""
    for name in (wish.publisher, wish.model):
        if not is_safe_name(name):
            raise InvalidRequest(f"{printable(name)!r} can't be a folder's name.", param="repo")
    paths = [_checked(file.path) for file in wish.files]
    folders = {path.parent for path in paths if not _is_projector(path)}
    beside = folders.pop() if len(folders) == 1 else None
    folder = models / wish.publisher / wish.model
    placed = [beside / path.name if beside is not None and _is_projector(path) else path for path in paths]
    if len({str(path).casefold() for path in placed}) < len(placed):
        placed = paths
    if not placed or len({str(path).casefold() for path in placed}) < len(placed):
        raise InvalidRequest("The wish names no file, or one file twice.", param="files")
    return [folder / path for path in placed]


def identity(wish: DownloadWish) -> str:
    """Give the id of what is wished for: it is made from the places, so that each has one writer."""
    places = [str(path) for path in targets(Path(), wish)]
    return hashlib.blake2b("\n".join(sorted(places)).encode(), digest_size=6).hexdigest()


def part_of(target: Path) -> Path:
    """Give the hidden name that a file has until its whole set is there; no scan looks at it."""
    name = f".{target.name}{PART_ENDING}"
    if len(name.encode()) > _LONGEST_NAME:
        name = f".{hashlib.blake2b(target.name.encode(), digest_size=12).hexdigest()}{PART_ENDING}"
    return target.with_name(name)


def _checked(path: str) -> PurePosixPath:
    safe = safe_path(path)
    if safe is None:
        raise InvalidRequest(
            f"The repository names a file {printable(path[:120])!r}, which is not safe to write.",
            hint="Nothing was downloaded. Tell its publisher.",
            param="files",
        )
    return safe


def _is_projector(path: PurePosixPath) -> bool:
    return "mmproj" in path.name.lower()
