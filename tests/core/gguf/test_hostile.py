"""Hostile headers: always a typed error that names the file and the fault, soon and in little memory."""

import random
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from octavo.core.errors import InvalidGguf, OctavoError
from octavo.core.gguf import describe, read_header
from tests.fixtures.gguf_builder import tiny
from tests.fixtures.hostile_ggufs import HOSTILE, LARGE, SOUND, UNLOADABLE, WRONG_KINDS

ALLOWED_MB = 64
ALLOWED_SECONDS = 1.0

WATCHED_READS = """
import resource, sys, time
from pathlib import Path
from octavo.core.errors import OctavoError
from octavo.core.gguf import describe, read_header

def status(name):
    line = next(line for line in open("/proc/self/status") if line.startswith(name))
    return int(line.split()[1]) * 1024

files = sorted(Path(sys.argv[1]).iterdir())
allowed = int(sys.argv[2]) << 20
base = status("VmHWM")
resource.setrlimit(resource.RLIMIT_AS, (status("VmSize") + allowed,) * 2)
for file in files:
    started = time.process_time()
    try:
        describe(read_header(file))
        outcome = "read"
    except OctavoError as error:
        outcome = error.details["fault"]
    print(file.name, outcome, time.process_time() - started, status("VmHWM") - base, sep="\\t")
"""


def watched(folder: Path) -> dict[str, tuple[str, float, int]]:
    """Read all files of ``folder`` in a child that may grow by 64 MB: outcome, CPU seconds, peak growth."""
    command = [sys.executable, "-c", WATCHED_READS, str(folder), str(ALLOWED_MB)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    rows = (line.split("\t") for line in done.stdout.splitlines())
    return {name: (outcome, float(cpu), int(peak)) for name, outcome, cpu, peak in rows}


@pytest.mark.parametrize("fault", WRONG_KINDS)
def test_b09_what_is_no_readable_gguf_is_named_for_what_it_is(fault: str, tmp_path: Path):
    path = tmp_path / "wrong.gguf"
    path.write_bytes(WRONG_KINDS[fault])
    with pytest.raises(InvalidGguf) as caught:
        read_header(path)
    assert caught.value.details["fault"] == fault
    assert caught.value.details["path"] == str(path)
    assert "wrong.gguf" in caught.value.message and caught.value.hint


def test_b09_the_words_say_what_to_expect():
    words = {
        "old_ggml": "GGJT",
        "html_page": "HTML",
        "version_1": "GGUF v1 is no longer supported",
        "newer_version": "made by a newer tool (GGUF v4)",
        "big_endian": "big-endian file",
        "empty_file": "empty",
    }
    for fault, expected in words.items():
        with pytest.raises(InvalidGguf, match=expected.replace("(", r"\(").replace(")", r"\)")):
            read_header(WRONG_KINDS[fault])


def test_b09_version_2_is_accepted():
    model = tiny()
    model.version = 2
    read_header(model.build()).check_loadable()


@pytest.mark.parametrize("case", HOSTILE)
def test_b01_a_hostile_header_is_refused_with_its_fault(case: str, tmp_path: Path):
    fault, build = HOSTILE[case]
    path = tmp_path / "hostile.gguf"
    path.write_bytes(build())
    with pytest.raises(InvalidGguf) as caught:
        read_header(path)
    assert caught.value.details["fault"] == fault
    assert "hostile.gguf" in caught.value.message
    assert isinstance(caught.value.details["offset"], int)


@pytest.mark.parametrize("case", UNLOADABLE)
def test_a_sound_header_of_an_unloadable_file_is_described_and_not_loaded(case: str):
    fault, build = UNLOADABLE[case]
    header = read_header(build(), "file.gguf")
    assert describe(header).kind
    with pytest.raises(InvalidGguf) as caught:
        header.check_loadable()
    assert caught.value.details["fault"] == fault


def test_b08_a_cut_file_is_told_by_the_bytes_it_lacks():
    whole = tiny().build()
    for missing in (1, 4_096, len(whole) // 2):
        with pytest.raises(InvalidGguf, match=f"{missing:,} of {len(whole):,} bytes") as caught:
            read_header(whole).check_loadable(len(whole) - missing)
        assert caught.value.details["missing_bytes"] == missing


def test_b01_no_hostile_header_takes_a_second_or_64_mb(tmp_path: Path):
    builders = {name: build for name, (_, build) in (HOSTILE | UNLOADABLE).items()} | LARGE
    for name, build in builders.items():
        (tmp_path / name).write_bytes(build())
    rows = watched(tmp_path)
    assert rows.keys() == builders.keys()
    assert {name: fault for name, (fault, _, _) in rows.items() if name in HOSTILE} == {
        name: fault for name, (fault, _) in HOSTILE.items()
    }
    assert {name: cpu for name, (_, cpu, _) in rows.items() if cpu > ALLOWED_SECONDS} == {}
    assert max(peak for _, _, peak in rows.values()) < ALLOWED_MB << 20


def outcome(raw: bytes) -> None:
    """Read, describe and check whatever ``raw`` is; only our own errors may come out."""
    try:
        header = read_header(raw, "fuzzed.gguf")
        describe(header)
        header.check_loadable()
    except OctavoError as error:
        assert isinstance(error, InvalidGguf)
        assert error.details["fault"] and "fuzzed.gguf" in error.message
        error.message.encode()


fuzzing = settings(max_examples=300, deadline=1_000, suppress_health_check=[HealthCheck.too_slow])
places = st.integers(0, len(tiny().header()) - 1)


@fuzzing
@given(st.lists(st.tuples(places, st.integers(0, 255)), min_size=1, max_size=8))
def test_changed_bytes_never_raise_anything_else(changes: list[tuple[int, int]]):
    raw = bytearray(SOUND)
    for place, value in changes:
        raw[place] = value
    outcome(bytes(raw))


@fuzzing
@given(places, st.sampled_from([0, 1, 1 << 31, 1 << 32, 1 << 40, 1 << 61, 1 << 62, 1 << 63, (1 << 64) - 1]))
def test_any_length_replaced_by_a_huge_one_never_raises_anything_else(place: int, length: int):
    outcome(SOUND[:place] + length.to_bytes(8, "little") + SOUND[place + 8 :])


@fuzzing
@given(places)
def test_a_header_cut_anywhere_never_raises_anything_else(place: int):
    outcome(SOUND[:place])


@fuzzing
@given(st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1), st.binary(max_size=400))
def test_random_bytes_behind_random_counts_never_raise_anything_else(tensors: int, pairs: int, rest: bytes):
    counts = tensors.to_bytes(8, "little") + pairs.to_bytes(8, "little")
    outcome(b"GGUF\3\0\0\0" + counts + rest)


@fuzzing
@given(st.randoms(use_true_random=False))
def test_stretches_moved_within_the_header_never_raise_anything_else(chance: random.Random):
    raw = bytearray(SOUND)
    end = len(tiny().header())
    start, length, target = chance.randrange(24, end), chance.randrange(1, 60), chance.randrange(24, end)
    raw[target : target + length] = raw[start : start + length]
    outcome(bytes(raw))
