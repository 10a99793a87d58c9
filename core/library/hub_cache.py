"""Read a repository of the Hugging Face cache: one row for each file, from the newest revision that is whole.

A repository is a folder ``models--org--name``: ``blobs`` holds the data under their hashes, ``snapshots``
has a folder of links for each revision that was fetched, and ``refs/main`` names the newest one. (Layout:
huggingface.co/docs/huggingface_hub/guides/manage-cache)
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path

from octavo.core.library.found import Found, look_at_file, together

FOLDER = re.compile(r"models--([^/]+?)--(.+)")
"""The name of a repository's folder: publisher and model."""

_MOST_FOLDERS = 1000


def is_repository(folder: Path) -> bool:
    """Tell whether a folder is a repository of the cache."""
    return folder.name.startswith("models--") and os.path.isdir(folder / "snapshots")


def repositories(cache: Path) -> dict[Path, int]:
    """List the repositories of models in a cache, each with its number on the disk."""
    try:
        with os.scandir(cache) as entries:
            return {Path(one.path): one.inode() for one in entries if one.name.startswith("models--")}
    except OSError:
        return {}


def repository_files(folder: Path) -> Iterator[Found]:
    """Give each model file of the repository once, as the newest revision has it.

    Where a split model is not whole in the newest revision, an older one that has all of it is taken.
    Two names of the same blob are one file.
    """
    chosen: dict[object, Found] = {}
    for snapshot in _revisions(folder):
        for found in _snapshot_files(snapshot):
            key = (found.path.parent.relative_to(snapshot), found.path.name.casefold())
            if found.missing or len(found.files) > 1:
                # a set is known by its first name, whichever of its parts are there
                key = (key[0], re.sub(r"-\d{5}-of-", "-of-", key[1]))
            if key not in chosen or (not _is_whole(chosen[key]) and _is_whole(found)):
                chosen[key] = found
    blobs = set[str]()
    for found in chosen.values():
        blob = os.path.realpath(found.path)
        if blob not in blobs:
            blobs.add(blob)
            yield found


def _revisions(folder: Path) -> list[Path]:
    """List the snapshots: what ``refs/main`` names first, then the newest."""
    try:
        snapshots = [Path(entry.path) for entry in os.scandir(folder / "snapshots") if entry.is_dir()]
    except OSError:
        return []
    try:
        main = (folder / "refs" / "main").read_text("utf-8", "replace").strip()
    except OSError:
        main = ""
    return sorted(snapshots, key=lambda path: (path.name != main, -_changed(path), path.name))


def _snapshot_files(snapshot: Path) -> Iterator[Found]:
    folders = [snapshot]
    for folder in folders:
        files = []
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except OSError:
            continue
        for entry in entries:
            if entry.name.startswith("."):
                continue
            if entry.is_dir(follow_symlinks=False) and len(folders) < _MOST_FOLDERS:
                folders.append(Path(entry.path))
            elif entry.name.lower().endswith(".gguf") and (found := look_at_file(Path(entry.path), entry)):
                files.append(found)
        yield from together(files)


def _is_whole(found: Found) -> bool:
    return not found.missing and found.fault is None


def _changed(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0
