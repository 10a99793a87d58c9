"""The ledger: what loads took, kept, and what it changes in later estimates: little, and said."""

from pathlib import Path

import msgspec

from octavo.core.memory.ledger import FILE_NAME, Entry, Ledger, actual_rows, compare
from octavo.core.memory.rule import rule_of_thumb
from octavo.core.memory.types import Components, Estimate
from tests.core.memory.values import MB, estimated

MIB = 1 << 20
LOG = [
    "info: load_tensors:   CPU_Mapped model buffer size =   235.16 MiB",
    "info: load_tensors:   CPU_REPACK model buffer size =    10.00 MiB",
    "info: llama_context:        CPU  output buffer size =     4.00 MiB",
    "info: llama_kv_cache:        CPU KV buffer size =    12.00 MiB",
    "info: llama_kv_cache: size =   12.00 MiB (  4096 cells,   3 layers,  4/1 seqs), K (f16):    6.00 MiB",
    "info: llama_kv_cache:        CPU KV buffer size =    37.50 MiB",
    "info: llama_memory_recurrent:        CPU RS buffer size =     1.50 MiB",
    "info: sched_reserve:        CPU compute buffer size =    24.27 MiB",
]


def entry(estimate: Estimate, **off: int) -> Entry:
    """Make an entry of a load whose rows were off by so many bytes."""
    predicted = estimate.components
    actual = msgspec.structs.replace(
        predicted, **{name: getattr(predicted, name) + by for name, by in off.items()}
    )
    return Entry(
        model=estimate.model, at=1.0, n_ctx=1000, predicted=predicted, actual=actual, anonymous_bytes=1
    )


def test_buffers_are_read_from_the_log() -> None:
    assert actual_rows(LOG) == {
        "kv": round(49.5 * MIB),
        "recurrent": round(1.5 * MIB),
        "compute": round(24.27 * MIB),
        "output": 4 * MIB,
        "weights_mapped": round(235.16 * MIB),
        "weights_private": 10 * MIB,
    }


def test_a_load_is_compared_part_by_part() -> None:
    found = compare(estimated(), LOG, 111 * MIB)
    assert found.actual.kv == round(49.5 * MIB)
    assert found.actual.weights_mapped == found.predicted.weights_mapped
    assert found.actual.runtime == (111 - 10) * MIB - round(51 * MIB)


def test_where_private_memory_is_not_told_the_runtime_part_is_as_predicted() -> None:
    found = compare(estimated(), LOG, 0)
    assert found.actual.runtime == found.predicted.runtime
    assert found.actual.kv == round(49.5 * MIB)


def test_it_is_kept(tmp_path: Path) -> None:
    Ledger(tmp_path).note(entry(estimated(), kv=5))
    last = Ledger(tmp_path).last("acme/made-up")
    assert last is not None and last.actual.kv - last.predicted.kv == 5
    assert Ledger(tmp_path).last("acme/other") is None


def test_a_damaged_file_is_begun_anew(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).write_bytes(b"\xc1")
    ledger = Ledger(tmp_path)
    assert ledger.last("acme/made-up") is None
    ledger.note(entry(estimated()))
    assert Ledger(tmp_path).last("acme/made-up") is not None


def test_an_exact_row_is_never_corrected_the_runtime_part_is_and_says_so(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    ledger.note(entry(estimated(), kv=9 * MB, compute=9 * MB, runtime=30 * MIB))
    found = ledger.corrected(estimated())
    assert found.components == msgspec.structs.replace(
        estimated().components, runtime=estimated().components.runtime + 30 * MIB
    )
    assert found.private_bytes == found.components.private_bytes
    assert any("runtime" in reason and "+30 MiB" in reason for reason in found.reasons)


def test_another_model_learns_the_runtime_part_only(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    ledger.note(entry(estimated(), kv=9 * MB, runtime=30 * MIB))
    other = msgspec.structs.replace(estimated(confidence="approximate"), model="acme/other")
    found = ledger.corrected(other)
    assert found.components.kv == other.components.kv
    assert "other models" in found.reasons[-1]


def test_rows_of_an_approximate_estimate_are_scaled(tmp_path: Path) -> None:
    ledger, rough = Ledger(tmp_path), estimated(confidence="approximate")
    ledger.note(entry(rough, kv=rough.components.kv))
    found = ledger.corrected(rough)
    assert found.components.kv == 2 * rough.components.kv
    assert found.components.compute == rough.components.compute
    assert "kv corrected" in found.reasons[-1]


def test_the_runtime_part_is_never_lowered(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    ledger.note(entry(estimated(), runtime=-30 * MIB))
    assert ledger.corrected(estimated()) == estimated()


def test_the_rule_of_thumb_is_told_with_its_error(gemma: Path) -> None:
    from octavo.core.config.load_config import LoadConfig
    from octavo.core.gguf import describe, read_header
    from octavo.core.memory.estimate import estimate

    header = read_header(gemma)
    found = estimate(header, LoadConfig(context=32768))
    rule = rule_of_thumb(describe(header), found)
    # 18 layers × 640 wide × 2 bytes × K and V, as if all its 4 heads had a cache over the whole context
    assert rule.kv_bytes == 2 * 18 * 640 * 2 * 32768
    assert rule.error > 2
    assert rule.total_bytes == rule.weights_bytes + rule.kv_bytes + rule.system_bytes
    assert isinstance(Components(kv=1).private_bytes, int)
