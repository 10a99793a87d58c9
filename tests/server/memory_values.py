"""Made-up figures of memory, each with a value of its own, so that a mix-up shows."""

from typing import Any

from octavo.core.events import MemorySampled
from octavo.core.memory.figures import (
    Attribution,
    GivenBack,
    GroupFigures,
    InstanceMemory,
    KvFigures,
    LayerResidency,
    MemoryDetail,
    Pressure,
    ProcessFigures,
    ResidencySummary,
    SlotFigures,
    SystemFigures,
)
from octavo.core.memory.types import Components

MIB = 1 << 20
AT = 1_800_000_000.25

SYSTEM = SystemFigures(
    total_bytes=16_000 * MIB,
    available_bytes=9_000 * MIB,
    cached_bytes=4_000 * MIB,
    swap_used_bytes=3 * MIB,
    swapped_in_bytes=1 * MIB,
    swapped_out_bytes=2 * MIB,
    refault_bytes=5 * MIB,
    pressure=Pressure(some_avg10=12.5, some_avg60=6.0, full_avg10=1.5, full_avg60=0.5),
    group=GroupFigures(limit_bytes=8_000 * MIB, used_bytes=700 * MIB, cached_bytes=300 * MIB),
)
BARE_SYSTEM = SystemFigures(total_bytes=2, available_bytes=1, cached_bytes=0, swap_used_bytes=0)

PROCESS = ProcessFigures(
    pid=4242,
    private_bytes=142 * MIB,
    file_bytes=94 * MIB,
    shared_bytes=2 * MIB,
    proportional_bytes=201 * MIB,
    swap_bytes=0,
    minor_faults=12_345,
    major_faults=67,
    disk_bytes=98 * MIB,
    threads=5,
    cpu_s=3.5,
)
KV = KvFigures(
    used_cells=112,
    size_cells=4096,
    size_bytes=90 * MIB,
    committed_bytes=12 * MIB,
    slots=[
        SlotFigures(slot=0, cells=100, shared_cells=20, idle_s=None),
        SlotFigures(slot=1, cells=32, shared_cells=20, idle_s=7.0),
    ],
)
REQUEST = Attribution(
    request="r1",
    ended_at=AT,
    queue_s=0.25,
    load_s=0.5,
    disk_s=0.125,
    prefill_s=1.0,
    other_s=0.125,
    first_token_s=2.0,
    decode_s=4.0,
    prompt_tokens=1_234,
    cached_tokens=34,
    completion_tokens=80,
    prefill_disk_bytes=7 * MIB,
    decode_disk_bytes=0,
    prefill_major_faults=3,
    decode_major_faults=0,
    tokens_per_s=20.0,
    disk_bytes_per_token=0.0,
)


def memory_of(name: str, kind: type[InstanceMemory] = InstanceMemory, **changed: Any) -> Any:
    """Make an instance's memory; what is ``changed`` replaces the made-up values."""
    values: dict[str, Any] = {
        "instance": name,
        "model": name,
        "process": PROCESS,
        "kv": KV,
        "tokens_total": 1_314,
        "tokens_per_s": 20.5,
        "disk_bytes_per_s": 1024.0,
        "disk_bytes_per_token": 51.2,
        "major_faults_per_token": 0.25,
        "active": 1,
        "queued": 2,
        "residency": ResidencySummary(generation=3, at=AT, resident_bytes=93 * MIB, total_bytes=94 * MIB),
    }
    return kind(**{**values, **changed})


def detail_of(name: str, **changed: Any) -> MemoryDetail:
    """Make all that is known of an instance."""
    values: dict[str, Any] = {
        "predicted": Components(weights_mapped=94 * MIB, kv=90 * MIB, compute=30 * MIB),
        "actual": Components(weights_mapped=94 * MIB, kv=90 * MIB, compute=28 * MIB),
        "layers": [
            LayerResidency(layer=None, resident_bytes=19 * MIB, total_bytes=19 * MIB),
            LayerResidency(layer=0, resident_bytes=0, total_bytes=5 * MIB),
            LayerResidency(layer=12, resident_bytes=4_299_162, total_bytes=5 * MIB),
        ],
        "requests": [REQUEST],
        "given_back": [
            GivenBack(at=AT, kind="kv_tail", freed_bytes=78 * MIB, text="unused KV of 4,000 cells")
        ],
        "load_disk_bytes": 90 * MIB,
    }
    detail: MemoryDetail = memory_of(name, MemoryDetail, **{**values, **changed})
    return detail


def sample(*instances: InstanceMemory, system: SystemFigures = SYSTEM) -> MemorySampled:
    """Make a sample of the memory."""
    return MemorySampled(at=AT, system=system, instances=list(instances))
