"""What Prometheus reads, read back strictly by the rules of its text format."""

from pathlib import Path

import pytest

from octavo.core.memory.figures import Pin, ResidencySummary
from octavo.server.auth import Keys
from octavo.server.metrics import CONTENT_TYPE, Family, exposition, families
from octavo.server.public import PortOptions
from tests.fakes import MODEL
from tests.server.exposition import Read, read_exposition
from tests.server.memory_values import AT, BARE_SYSTEM, MIB, memory_of, sample
from tests.server.support import in_loop, served


def read(*instances: object, **more: object) -> dict[str, Read]:
    return read_exposition(exposition(families(sample(*instances, **more))))  # type: ignore[arg-type]


def test_every_figure_is_there_in_base_units() -> None:
    found = read(memory_of("acme/one"))
    values = {
        "process_private_bytes": 142 * MIB,
        "process_file_bytes": 94 * MIB,
        "process_shared_bytes": 2 * MIB,
        "process_proportional_bytes": 201 * MIB,
        "process_swap_bytes": 0,
        "process_minor_faults_total": 12_345,
        "process_major_faults_total": 67,
        "process_disk_read_bytes_total": 98 * MIB,
        "process_cpu_seconds_total": 3.5,
        "kv_used_cells": 112,
        "kv_size_cells": 4096,
        "kv_committed_bytes": 12 * MIB,
        "slots_active": 1,
        "requests_queued": 2,
        "tokens_total": 1_314,
        "tokens_per_second": 20.5,
        "residency_resident_bytes": 93 * MIB,
        "residency_size_bytes": 94 * MIB,
        "system_memory_bytes": 16_000 * MIB,
        "system_memory_available_bytes": 9_000 * MIB,
        "system_memory_cached_bytes": 4_000 * MIB,
        "system_swap_used_bytes": 3 * MIB,
        "system_swapped_in_bytes_total": 1 * MIB,
        "system_swapped_out_bytes_total": 2 * MIB,
        "system_refault_bytes_total": 5 * MIB,
        "group_memory_limit_bytes": 8_000 * MIB,
    }
    assert {name: found[f"octavo_{name}"].only() for name in values} == values
    pressure = found["octavo_system_memory_pressure_ratio"]
    assert pressure.of(kind="some", window_seconds="10") == 0.125
    assert pressure.of(kind="full", window_seconds="60") == 0.005


def test_names_follow_the_conventions() -> None:
    for name, family in read(memory_of("acme/one")).items():
        assert name.startswith("octavo_") and family.help.endswith(".")
        assert (family.kind == "counter") == name.endswith("_total"), name


def test_what_is_not_told_has_no_sample() -> None:
    unseen = ResidencySummary(generation=1, at=AT, resident_bytes=None, total_bytes=5, reason="no right")
    gone = memory_of("acme/gone", process=None, kv=None, residency=None)
    found = read(memory_of("acme/one", residency=unseen), gone, system=BARE_SYSTEM)
    assert found["octavo_process_private_bytes"].only() == 142 * MIB
    assert found["octavo_residency_size_bytes"].only() == 5
    absent = ("residency_resident_bytes", "system_refault_bytes_total", "system_memory_pressure_ratio")
    assert not {f"octavo_{name}" for name in absent} & set(found)
    assert found["octavo_slots_active"].of(name="acme/gone") == 1


def test_any_name_survives() -> None:
    strange = ['a"b', "a\\b", "a\\nb", "line\nbreak", "모델 🫩", "{x=1} 2", ""]
    found = read(*(memory_of(name, model="m") for name in strange))["octavo_slots_active"]
    assert {dict(labels)["name"] for labels in found.samples} == set(strange)
    pinned = memory_of("p", pin=Pin(kind="touch", pinned_bytes=9))
    assert read(pinned)["octavo_pinned_bytes"].only() == 9
    text = exposition([Family("x", "gauge", "back\\slash and\nline", [({}, float("inf"))])])
    assert read_exposition(text)["x"].only() == float("inf")


@pytest.mark.parametrize(
    "text",
    [
        "octavo_x 1",
        "# HELP x y\n# TYPE x gauge\nx 1",
        "# HELP x y\n# TYPE x gauge\nx one\n",
        '# HELP x y\n# TYPE x gauge\nx{a="1} 1\n',
        '# HELP x y\n# TYPE x gauge\nx{a="1"} 1\nx{a="1"} 2\n',
        "# HELP x y\n# TYPE x gauge\nz 1\n",
    ],
)
def test_the_reader_is_strict(text: str) -> None:
    with pytest.raises((AssertionError, StopIteration)):
        read_exposition(text)


@in_loop
async def test_both_doors_serve_it_and_keys_are_asked_for(octavo_home: Path) -> None:
    async with served(octavo_home, PortOptions("127.0.0.1", 0, keys=Keys(["one"]))) as at:
        await at.client.load(MODEL)
        assert (await at.public.get("/metrics")).status_code == 401
        for answer in (
            await at.public.get("/metrics", headers={"Authorization": "Bearer one"}),
            await at.control.get("/metrics"),
        ):
            assert answer.status_code == 200 and answer.headers["content-type"] == CONTENT_TYPE
            found = read_exposition(answer.text)
            assert found["octavo_build_info"].only() == 1
            assert found["octavo_system_memory_bytes"].only() > 0
            assert found["octavo_slots_active"].of(name=MODEL, model=MODEL) == 1
