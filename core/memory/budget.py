"""How much memory a load may use: what the system and the cgroup have left, less what is kept free.

Sources: /proc/meminfo (proc(5), MemAvailable), cgroup v2 memory.max, memory.high, memory.current, memory.stat
(kernel Documentation/admin-guide/cgroup-v2.rst) and v1 memory.limit_in_bytes, memory.usage_in_bytes
(cgroup-v1/memory.rst). Page cache that a cgroup is charged with counts as free, as it does in MemAvailable:
it is dropped when it is needed. All sizes are bytes.
"""

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil

from octavo.core.memory.types import Budget

GIB = 1 << 30
# a limit beyond this is how cgroup v1 says "none" (PAGE_COUNTER_MAX)
NO_LIMIT = 1 << 60


@dataclass(frozen=True, slots=True)
class Group:
    """What one memory cgroup allows and how much of that can't be given back.

    ``cached_bytes`` are file pages it is charged with besides: they are dropped when they are in the way.
    """

    limit_bytes: int
    used_bytes: int
    cached_bytes: int = 0

    @property
    def left_bytes(self) -> int:
        """What may still be taken."""
        return max(self.limit_bytes - self.used_bytes, 0)


@dataclass(frozen=True, slots=True)
class Claim:
    """A model that is loaded or being loaded: what it will need, and how much of it is taken already.

    ``mapped_bytes`` are the pages of its file that every token reads. ``may_leave``: it is idle and not
    pinned, so that a load may unload it.
    """

    private_bytes: int
    taken_bytes: int = 0
    mapped_bytes: int = 0
    may_leave: bool = False

    @property
    def promised_bytes(self) -> int:
        """What it has not touched yet but will: buffers are committed late."""
        return max(self.private_bytes - self.taken_bytes, 0)

    @property
    def held_bytes(self) -> int:
        """What comes back, or is not needed any more, when it is unloaded."""
        return max(self.private_bytes, self.taken_bytes)


def measure(
    *,
    keep_free_bytes: int,
    claims: Iterable[Claim] = (),
    most_bytes: int | None = None,
    root: Path = Path("/"),
) -> Budget:
    """Tell what a load may use now, idle models that may leave included.

    ``most_bytes`` is the person's limit for all models together. ``root`` is where ``proc`` and ``sys`` are.
    """
    claimed = list(claims)
    memory = psutil.virtual_memory()
    groups = list(memory_groups(root))
    rooms = [("system", memory.available - keep_free_bytes)]
    rooms += [("cgroup", group.left_bytes) for group in groups]
    promised = sum(claim.promised_bytes for claim in claimed)
    rooms = [(name, left - promised) for name, left in rooms]
    if most_bytes is not None:
        rooms.append(("setting", most_bytes - sum(claim.held_bytes for claim in claimed)))
    limited_by, left = min(rooms, key=lambda room: room[1])
    reclaimable = sum(claim.held_bytes for claim in claimed if claim.may_leave)
    return Budget(
        total_bytes=min([memory.total, *(group.limit_bytes for group in groups)]),
        available_bytes=min([memory.available, *(group.left_bytes for group in groups)]),
        keep_free_bytes=keep_free_bytes,
        reclaimable_bytes=reclaimable,
        promised_bytes=promised,
        mapped_in_use_bytes=sum(claim.mapped_bytes for claim in claimed if not claim.may_leave),
        budget_bytes=max(left + reclaimable, 0),
        limited_by=limited_by,  # type: ignore[arg-type]
    )


def fixed(budget_bytes: int) -> Budget:
    """Give the budget of a machine that has ``budget_bytes`` for a model, whatever this one has."""
    return Budget(
        total_bytes=budget_bytes,
        available_bytes=budget_bytes,
        keep_free_bytes=0,
        reclaimable_bytes=0,
        budget_bytes=budget_bytes,
        limited_by="setting",
    )


def memory_groups(root: Path = Path("/")) -> Iterator[Group]:
    """Give the memory cgroups of this process, its own and those above it, that have a limit."""
    if sys.platform != "linux":
        return
    for folder, is_v2 in _folders(root):
        group = _group_v2(folder) if is_v2 else _group_v1(folder)
        if group is not None and group.limit_bytes < NO_LIMIT:
            yield group


def _folders(root: Path) -> Iterator[tuple[Path, bool]]:
    """Give each folder to look at and whether it is of cgroup v2."""
    for line in _lines(root / "proc/self/cgroup"):
        _, controllers, path = line.split(":", 2)
        if not controllers:
            for mount in ("sys/fs/cgroup", "sys/fs/cgroup/unified"):
                yield from ((folder, True) for folder in _upwards(root / mount, path))
        elif "memory" in controllers.split(","):
            yield from ((folder, False) for folder in _upwards(root / "sys/fs/cgroup/memory", path))


def _upwards(mount: Path, path: str) -> Iterator[Path]:
    """Give the cgroup's folder and all above it; in a container the path may not exist, its mount does."""
    folder = mount / path.lstrip("/")
    while folder != mount and mount in folder.parents:
        if folder.is_dir():
            yield folder
        folder = folder.parent
    yield mount


def _group_v2(folder: Path) -> Group | None:
    limits = [_number(folder / name) for name in ("memory.max", "memory.high")]
    known = [limit for limit in limits if limit is not None]
    used = _number(folder / "memory.current")
    if not known or used is None:
        return None
    cached = min(_cached(folder, ""), used)
    return Group(min(known), used - cached, cached)


def _group_v1(folder: Path) -> Group | None:
    limit, used = _number(folder / "memory.limit_in_bytes"), _number(folder / "memory.usage_in_bytes")
    if limit is None or used is None:
        return None
    cached = min(_cached(folder, "total_"), used)
    return Group(limit, used - cached, cached)


def _cached(folder: Path, prefix: str) -> int:
    """Give the bytes of file pages that the cgroup is charged with, mapped ones included."""
    wanted = {f"{prefix}inactive_file", f"{prefix}active_file"}
    pairs = (line.split() for line in _lines(folder / "memory.stat"))
    return sum(int(value) for name, value in pairs if name in wanted)


def _number(path: Path) -> int | None:
    """Read a file that holds one number; ``max`` and what isn't there are None."""
    text = next(iter(_lines(path)), "")
    return int(text) if text.isdecimal() else None


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text("ascii", "replace").splitlines()
    except OSError:
        return []
