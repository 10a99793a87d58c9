"""The memory and the speed of all loaded models as Prometheus reads them: text format 0.0.4.

Rules of the format: prometheus.io, "Exposition formats". Bytes and seconds are the base units; counters end
in ``_total``; what is not told has no sample, never a zero. A model's name is in the label ``name``, since
``instance`` is Prometheus' own name for the address that it read from.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, TypeVar

from octavo.core import __version__
from octavo.core.events import MemorySampled
from octavo.core.memory.figures import (
    GroupFigures,
    InstanceMemory,
    KvFigures,
    Pressure,
    ProcessFigures,
    SystemFigures,
)

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

Kind = Literal["gauge", "counter"]
Labels = dict[str, str]
Sample = tuple[Labels, float | int]
Source = TypeVar("Source")
# a family's name without "octavo_", its kind, its help, and where its value is; None: not told
Row = tuple[str, Kind, str, Callable[[Source], float | int | None]]

_PROCESS: tuple[Row[ProcessFigures], ...] = (
    ("process_private_bytes", "gauge", "Anonymous memory that must stay.", lambda p: p.private_bytes),
    ("process_file_bytes", "gauge", "Mapped pages of files; they can be dropped.", lambda p: p.file_bytes),
    ("process_shared_bytes", "gauge", "Shared memory.", lambda p: p.shared_bytes),
    (
        "process_proportional_bytes",
        "gauge",
        "Resident memory, each shared page divided by its users (PSS).",
        lambda p: p.proportional_bytes,
    ),
    ("process_swap_bytes", "gauge", "Memory that lies in the swap.", lambda p: p.swap_bytes),
    ("process_minor_faults_total", "counter", "Page faults without a disk.", lambda p: p.minor_faults),
    (
        "process_major_faults_total",
        "counter",
        "Page faults that waited for a disk.",
        lambda p: p.major_faults,
    ),
    (
        "process_disk_read_bytes_total",
        "counter",
        "Bytes read from a disk, page faults included.",
        lambda p: p.disk_bytes,
    ),
    ("process_cpu_seconds_total", "counter", "Processor time.", lambda p: p.cpu_s),
    ("process_threads", "gauge", "Threads.", lambda p: p.threads),
)

_KV: tuple[Row[KvFigures], ...] = (
    ("kv_used_cells", "gauge", "Cells of the KV cache in use, each once.", lambda kv: kv.used_cells),
    ("kv_size_cells", "gauge", "Cells of the KV cache.", lambda kv: kv.size_cells),
    ("kv_size_bytes", "gauge", "Size of the KV cache.", lambda kv: kv.size_bytes),
    ("kv_committed_bytes", "gauge", "Memory the KV cache really takes.", lambda kv: kv.committed_bytes),
)

_MODEL: tuple[Row[InstanceMemory], ...] = (
    ("slots_active", "gauge", "Requests that have a slot.", lambda one: one.active),
    ("requests_queued", "gauge", "Requests that wait for a slot.", lambda one: one.queued),
    ("tokens_total", "counter", "Tokens made since the model was loaded.", lambda one: one.tokens_total),
    ("tokens_per_second", "gauge", "Tokens made in the last second or so.", lambda one: one.tokens_per_s),
    (
        "disk_bytes_per_second",
        "gauge",
        "Bytes read from a disk in the last second or so.",
        lambda one: one.disk_bytes_per_s,
    ),
    (
        "residency_resident_bytes",
        "gauge",
        "Bytes of the model's files in the page cache, when last looked at.",
        lambda one: one.residency.resident_bytes if one.residency else None,
    ),
    (
        "residency_size_bytes",
        "gauge",
        "Bytes of the model's files.",
        lambda one: one.residency.total_bytes if one.residency else None,
    ),
    (
        "pinned_bytes",
        "gauge",
        "Bytes of the model's files that are kept in memory.",
        lambda one: one.pin.pinned_bytes if one.pin else 0,
    ),
)

_SYSTEM: tuple[Row[SystemFigures], ...] = (
    ("system_memory_bytes", "gauge", "The machine's memory.", lambda s: s.total_bytes),
    ("system_memory_available_bytes", "gauge", "Memory that programs can get.", lambda s: s.available_bytes),
    ("system_memory_cached_bytes", "gauge", "The page cache.", lambda s: s.cached_bytes),
    ("system_swap_used_bytes", "gauge", "Swap in use.", lambda s: s.swap_used_bytes),
    (
        "system_swapped_in_bytes_total",
        "counter",
        "Bytes read back from the swap.",
        lambda s: s.swapped_in_bytes,
    ),
    (
        "system_swapped_out_bytes_total",
        "counter",
        "Bytes written to the swap.",
        lambda s: s.swapped_out_bytes,
    ),
    (
        "system_refault_bytes_total",
        "counter",
        "Bytes dropped from the page cache and needed again soon.",
        lambda s: s.refault_bytes,
    ),
)

_GROUP: tuple[Row[GroupFigures], ...] = (
    ("group_memory_limit_bytes", "gauge", "The tightest memory cgroup's limit.", lambda g: g.limit_bytes),
    ("group_memory_used_bytes", "gauge", "What that cgroup is charged with.", lambda g: g.used_bytes),
    ("group_memory_cached_bytes", "gauge", "What of that can be dropped.", lambda g: g.cached_bytes),
)


@dataclass(frozen=True, slots=True)
class Family:
    """A metric: its name, kind, what it is, and its samples by their labels."""

    name: str
    kind: Kind
    help: str
    samples: list[Sample]


def exposition(families: Iterable[Family]) -> str:
    """Write metrics in the text format; one without a sample is left out."""
    return "".join(_written(family) for family in families if family.samples)


def families(sample: MemorySampled) -> Iterator[Family]:
    """Give all metrics of one sample of the memory."""
    yield Family("octavo_build_info", "gauge", "The version that runs.", [({"version": __version__}, 1)])
    models = [(_labels(one), one) for one in sample.instances]
    yield from _rows(_PROCESS, [(labels, one.process) for labels, one in models])
    yield from _rows(_KV, [(labels, one.kv) for labels, one in models])
    yield from _rows(_MODEL, models)
    yield from _rows(_SYSTEM, [({}, sample.system)])
    yield from _rows(_GROUP, [({}, sample.system.group)])
    if sample.system.pressure is not None:
        yield _pressure(sample.system.pressure)


def _rows(rows: Iterable[Row[Source]], sources: Iterable[tuple[Labels, Source | None]]) -> Iterator[Family]:
    known = [(labels, source) for labels, source in sources if source is not None]
    for name, kind, text, read in rows:
        told = [(labels, read(source)) for labels, source in known]
        samples = [(labels, value) for labels, value in told if value is not None]
        yield Family(f"octavo_{name}", kind, text, samples)


def _pressure(pressure: Pressure) -> Family:
    samples: list[Sample] = [
        ({"kind": kind, "window_seconds": str(seconds)}, getattr(pressure, f"{kind}_avg{seconds}") / 100)
        for kind in ("some", "full")
        for seconds in (10, 60)
    ]
    text = "Share of the time in which some task, or all, waited for memory."
    return Family("octavo_system_memory_pressure_ratio", "gauge", text, samples)


def _labels(one: InstanceMemory) -> Labels:
    return {"name": one.instance, "model": one.model}


def _written(family: Family) -> str:
    lines = [f"# HELP {family.name} {_escaped(family.help)}", f"# TYPE {family.name} {family.kind}"]
    lines += [f"{family.name}{_label_text(labels)} {_number(value)}" for labels, value in family.samples]
    return "\n".join(lines) + "\n"


def _number(value: float) -> str:
    if math.isfinite(value):
        return repr(value)
    return "NaN" if math.isnan(value) else f"{'+' if value > 0 else '-'}Inf"


def _label_text(labels: Labels) -> str:
    pairs = [f'{name}="{_quoted(value)}"' for name, value in labels.items()]
    return "{" + ",".join(pairs) + "}" if pairs else ""


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n")


def _quoted(text: str) -> str:
    return _escaped(text).replace('"', '\\"')
