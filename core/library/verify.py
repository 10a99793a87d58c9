"""Read a model whole and tell whether it is still what it should be, by SHA-256."""

import hashlib
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from octavo.core.errors import Cancelled, ErrorReport, UnreadableFile, from_report
from octavo.core.gguf import printable
from octavo.core.library.checksums import FIRST, Checksums, Known
from octavo.core.library.models import Model

Outcome = Literal["sound", "remembered", "damaged", "changed", "unreadable"]

Progress = Callable[[int, int], None]
"""Called with bytes read and bytes in all."""

Cancel = Callable[[], bool]
"""True once it is called off."""

_BLOCK = 4 << 20


class VerifiedFile(msgspec.Struct, frozen=True, kw_only=True):
    """What came of one file.

    ``sound``: it has the ``expected_sha256``, which ``source`` names (a publisher, or ``first``: as computed
    here before). ``remembered``: none was known, and this one is from now on. ``damaged``: it is another
    than the published one, or another than before although nobody wrote the file. ``changed``: it is not
    what was first seen here, but was written since. ``unreadable``: ``error`` says why.
    """

    path: str
    size_bytes: int
    outcome: Outcome
    sha256: str | None = None
    expected_sha256: str | None = None
    source: str | None = None
    error: ErrorReport | None = None


def verify(
    model: Model,
    checksums: Checksums,
    progress: Progress = lambda done, total: None,
    cancelled: Cancel = lambda: False,
    *,
    accept: bool = False,
) -> list[VerifiedFile]:
    """Read all files of ``model``, its projector included, and compare; ``accept`` takes a change as right.

    Raises ``Cancelled``, and ``FolderNotFound`` for a model whose drive is away.
    """
    if model.is_offline and model.fault:
        raise from_report(model.fault)
    files = files_of(model)
    total, done = sum(_size(path) for path in files), 0
    results = []
    for path in files:
        begun = done

        def counted(read: int, begun: int = begun) -> None:
            progress(begun + read, total)

        results.append(_verified(path, checksums, counted, cancelled, accept))
        done += results[-1].size_bytes
    return results


def files_of(model: Model) -> list[Path]:
    """List the files that make up a model: all its parts, and its projector's."""
    own = list(model.files or (model.path,))
    return own + (list(model.projector.files) if model.projector else [])


def is_sound(results: Sequence[VerifiedFile]) -> bool:
    """Tell whether nothing is wrong with any of the files."""
    return all(result.outcome in ("sound", "remembered") for result in results)


def _verified(
    path: Path, checksums: Checksums, progress: Callable[[int], None], cancelled: Cancel, accept: bool
) -> VerifiedFile:
    try:
        status = os.stat(path)
        digest = _digest(path, progress, cancelled)
    except OSError as fault:
        error = UnreadableFile(f"{printable(path)} can't be read: {fault.strerror}.", path=printable(path))
        return VerifiedFile(path=printable(path), size_bytes=0, outcome="unreadable", error=error.report())
    known = checksums.known(path)
    outcome = _outcome(digest, status, known)
    if outcome == "remembered" or (accept and outcome == "changed"):
        checksums.note(path, digest, FIRST)
        outcome = "remembered"
    return VerifiedFile(
        path=printable(path),
        size_bytes=status.st_size,
        outcome=outcome,
        sha256=digest,
        expected_sha256=known.sha256 if known else None,
        source=known.source if known else None,
    )


def _outcome(digest: str, status: os.stat_result, known: Known | None) -> Outcome:
    if known is None:
        return "remembered"
    if known.sha256 == digest:
        return "sound"
    untouched = (known.size_bytes, known.modified_ns) == (status.st_size, status.st_mtime_ns)
    return "damaged" if known.is_published or untouched else "changed"


def _digest(path: Path, progress: Callable[[int], None], cancelled: Cancel) -> str:
    digest, done = hashlib.sha256(), 0
    with open(path, "rb", buffering=0) as file:
        while block := file.read(_BLOCK):
            if cancelled():
                raise Cancelled("The check was called off; nothing was changed.")
            digest.update(block)
            done += len(block)
            progress(done)
    return digest.hexdigest()


def _size(path: Path) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0
