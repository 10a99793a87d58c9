"""Make folders so that they can be unmade."""

import os
from collections.abc import Sequence
from pathlib import Path

from octavo.core.errors import StorageFailed
from octavo.core.gguf import printable


def missing_above(folder: Path) -> list[Path]:
    """Give ``folder`` and those above it that are not there, the innermost first."""
    missing = []
    while not os.path.exists(folder) and folder != folder.parent:
        missing.append(folder)
        folder = folder.parent
    return missing


def make_folders(folder: Path) -> list[Path]:
    """Make ``folder`` and those above it; give the new ones, innermost first; raises ``StorageFailed``."""
    missing = missing_above(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        remove_empty(missing)
        name = printable(folder)
        raise StorageFailed(f"The folder {name} can't be made: {error.strerror}.", path=name) from error
    return missing


def remove_empty(folders: Sequence[Path]) -> None:
    """Remove those that are empty."""
    for folder in folders:
        try:
            folder.rmdir()
        except FileNotFoundError:
            # never made, or removed by an import that was killed while it went back
            continue
        except OSError:
            # it isn't empty: then it stays, and so do those above it
            return


def existing(path: Path) -> Path:
    """Give ``path``, or the nearest folder above it that is there; links are followed."""
    while not os.path.exists(path) and path != path.parent:
        path = path.parent
    return path
