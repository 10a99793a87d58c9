"""Put files into the system's trash, where there is one for the disk that they are on."""

import os
import sys
from pathlib import Path

from octavo.core.errors import StorageFailed
from octavo.core.gguf import printable

_INFO_ENDING = ".trashinfo"
_LONGEST_NAME = 255


def has_trash(path: Path) -> bool:
    """Tell whether ``path`` can be put into a trash, by looking alone."""
    if sys.platform in ("win32", "darwin"):
        return True
    if len(os.fsencode(path.name)) + len(_INFO_ENDING) > _LONGEST_NAME:
        return False
    try:
        device = os.lstat(path).st_dev
        if device == os.stat(os.path.expanduser("~")).st_dev:
            return _can_be_made(_own_trash())
        return _can_be_made(_mount_point(path) / f".Trash-{os.getuid()}")
    except OSError:
        return False


def put_into_trash(path: Path) -> None:
    """Move a file to the trash; raises ``StorageFailed``, and then the file is where it was."""
    import send2trash

    try:
        send2trash.send2trash(path)
    except OSError as fault:
        raise StorageFailed(
            f"{printable(path)} can't be moved to the trash: {fault.strerror or fault}.",
            hint="octavo rm --permanently deletes it without the trash.",
            path=printable(path),
        ) from fault


def _own_trash() -> Path:
    data = os.environ.get("XDG_DATA_HOME") or os.path.expanduser("~/.local/share")
    return Path(data, "Trash")


def _can_be_made(folder: Path) -> bool:
    for place in (folder, *folder.parents):
        if place.exists():
            return place.is_dir() and os.access(place, os.W_OK)
    return False


def _mount_point(path: Path) -> Path:
    place = Path(os.path.realpath(path.parent))
    while not os.path.ismount(place):
        place = place.parent
    return place
