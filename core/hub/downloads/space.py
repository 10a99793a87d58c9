"""Room on the disk: looked for before anything is fetched, and kept for everything else."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from octavo.core.errors import StorageFailed
from octavo.core.gguf import printable

_MOST_RESERVED = 1 << 30
_RESERVED_SHARE = 50


def require_room(folder: Path, needed_bytes: int) -> None:
    """Raise ``StorageFailed`` where less than that, and a reserve of 2 % (at most 1 GiB), is free."""
    usage = shutil.disk_usage(folder)
    reserve = min(_MOST_RESERVED, usage.total // _RESERVED_SHARE)
    if needed_bytes and needed_bytes + reserve > usage.free:
        lacking = needed_bytes + reserve - usage.free
        raise StorageFailed(
            f"There is not enough room on the disk of {printable(folder)}: {_size(needed_bytes)} are needed "
            f"and {_size(usage.free)} are free, of which {_size(reserve)} are kept for everything else.",
            hint=f"Free {_size(lacking)}, then resume the download.",
            path=printable(folder),
            needed_bytes=needed_bytes,
            free_bytes=usage.free,
        )


@contextmanager
def storage_faults(path: Path) -> Iterator[None]:
    """Turn what the system says of a disk into ``StorageFailed``."""
    try:
        yield
    except OSError as fault:
        raise StorageFailed(
            f"{printable(path.name)} can't be written: {fault.strerror or fault}.",
            hint="Free some space or look at the disk, then resume the download.",
            path=printable(path),
        ) from fault


def reserve_blocks(file: int, size: int) -> None:
    """Give a file its full length and, where the system can, its blocks: a disk can't fill up under it."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file, 0, size)
    elif os.fstat(file).st_size < size:
        os.truncate(file, size)


def _size(count: int) -> str:
    return f"{count / 1e9:.2f} GB" if count >= 1e9 else f"{count / 1e6:.1f} MB"
