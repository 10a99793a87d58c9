"""What is observed while models run: plain values, each defined in docs/memory.md.

Sizes are bytes, times seconds; counters run since the process or the system began. None is "not told here",
never "nothing".
"""

from typing import Literal

import msgspec

from octavo.core.memory.types import Components

PinKind = Literal["mlock", "touch"]
GivenBackKind = Literal["kv_tail", "weight_sources", "unread_tensors"]


class Pressure(msgspec.Struct, frozen=True, kw_only=True):
    """Pressure stall information of memory, in percent of the time (kernel Documentation/accounting/psi.rst).

    ``some``: at least one task waited for memory; ``full``: all did.
    """

    some_avg10: float
    some_avg60: float
    full_avg10: float
    full_avg60: float


class GroupFigures(msgspec.Struct, frozen=True, kw_only=True):
    """The memory cgroup that leaves the least room; ``cached_bytes`` of ``used_bytes`` can be dropped."""

    limit_bytes: int
    used_bytes: int
    cached_bytes: int


class SystemFigures(msgspec.Struct, frozen=True, kw_only=True):
    """The machine's memory.

    ``refault_bytes`` were dropped from the page cache and needed again soon: the sign of thrashing.
    """

    total_bytes: int
    available_bytes: int
    cached_bytes: int
    swap_used_bytes: int
    swapped_in_bytes: int | None = None
    swapped_out_bytes: int | None = None
    refault_bytes: int | None = None
    pressure: Pressure | None = None
    group: GroupFigures | None = None


class ProcessFigures(msgspec.Struct, frozen=True, kw_only=True):
    """One process's memory and work.

    ``private_bytes`` must stay (anonymous), ``file_bytes`` are mapped and can be dropped, ``shared_bytes``
    are shared memory; they add up to the resident set. ``proportional_bytes`` (PSS) costs more to ask and is
    up to 2 s old. ``disk_bytes`` were read from a disk, page faults included.
    """

    pid: int
    private_bytes: int
    file_bytes: int
    shared_bytes: int
    proportional_bytes: int | None = None
    swap_bytes: int | None = None
    minor_faults: int | None = None
    major_faults: int | None = None
    disk_bytes: int | None = None
    threads: int
    cpu_s: float

    @property
    def resident_bytes(self) -> int:
        """The resident set (RSS)."""
        return self.private_bytes + self.file_bytes + self.shared_bytes


class SlotFigures(msgspec.Struct, frozen=True, kw_only=True):
    """KV cells of one slot: ``cells`` in all, ``shared_cells`` of them also used by another slot.

    An idle slot's cells are what the prefix cache holds; ``idle_s`` is None while it answers.
    """

    slot: int
    cells: int
    shared_cells: int
    idle_s: float | None = None


class KvFigures(msgspec.Struct, frozen=True, kw_only=True):
    """The KV cache: cells in use (each once), and the bytes that memory was really given for.

    ``committed_bytes`` is ``size_bytes`` less what was given back and not touched again.
    """

    used_cells: int
    size_cells: int
    size_bytes: int
    committed_bytes: int
    slots: list[SlotFigures] = []


class Attribution(msgspec.Struct, frozen=True, kw_only=True):
    """Where a request's time and disk bytes went; the first five times add up to ``first_token_s``.

    ``disk_s``: the engine stood still for the disk while the prompt was read; ``prefill_s``: the rest of
    reading it. ``other_s``: template, transport. Bytes of a step that several requests shared are split
    among them by their tokens.
    """

    request: str
    ended_at: float
    queue_s: float
    load_s: float
    disk_s: float
    prefill_s: float
    other_s: float
    first_token_s: float
    decode_s: float
    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int
    prefill_disk_bytes: int | None
    decode_disk_bytes: int | None
    prefill_major_faults: int | None
    decode_major_faults: int | None
    tokens_per_s: float
    disk_bytes_per_token: float | None


class GivenBack(msgspec.Struct, frozen=True, kw_only=True):
    """Memory that was given back to the system, and when (seconds since the epoch)."""

    at: float
    kind: GivenBackKind
    freed_bytes: int
    text: str


class Pin(msgspec.Struct, frozen=True, kw_only=True):
    """Pages that are kept in memory: locked (``mlock``), or touched again and again (``touch``).

    ``layers`` None is the whole model; ``reason`` says why it is no lock.
    """

    kind: PinKind
    pinned_bytes: int
    layers: list[int] | None = None
    reason: str = ""


class ResidencySummary(msgspec.Struct, frozen=True, kw_only=True):
    """How much of a model's files the page cache holds; ``reason`` says why it is not known."""

    generation: int
    at: float
    resident_bytes: int | None
    total_bytes: int
    reason: str = ""


class InstanceMemory(msgspec.Struct, frozen=True, kw_only=True):
    """One loaded model as it is now; rates are of the last second or so, ``tokens_total`` since its load.

    ``fault`` says why it is ``crashed``.
    """

    instance: str
    model: str
    process: ProcessFigures | None
    kv: KvFigures | None
    tokens_total: int
    tokens_per_s: float
    disk_bytes_per_s: float | None
    disk_bytes_per_token: float | None
    major_faults_per_token: float | None
    active: int
    queued: int
    residency: ResidencySummary | None = None
    pin: Pin | None = None
    state: str = "ready"
    fault: str = ""


class LayerResidency(msgspec.Struct, frozen=True, kw_only=True):
    """How much of one layer's tensors the page cache holds; ``layer`` None: what belongs to no layer."""

    layer: int | None
    resident_bytes: int | None
    total_bytes: int


class MemoryDetail(InstanceMemory, frozen=True, kw_only=True):
    """All that is known of one loaded model's memory.

    ``predicted`` and ``actual`` are the components at load; ``requests`` the newest ones, ``given_back`` what
    went back to the system, oldest first; ``load_disk_bytes`` were read from a disk by the load.
    ``page_control`` says why its pages can't be warmed, dropped or pinned here; empty when they can.
    """

    predicted: Components | None = None
    actual: Components | None = None
    layers: list[LayerResidency] = []
    requests: list[Attribution] = []
    given_back: list[GivenBack] = []
    load_disk_bytes: int | None = None
    page_control: str = ""


class PagesMoved(msgspec.Struct, frozen=True, kw_only=True):
    """What a warm-up or a drop did: whole pages asked for, and the files' resident bytes before and after."""

    instance: str
    page_bytes: int
    resident_before_bytes: int | None
    resident_after_bytes: int | None
    seconds: float
