"""Estimates against figures that are known from elsewhere: tables of dry runs, and the cases."""

import time
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from octavo.core.config.load_config import FlashAttention, LoadConfig, LoadMode
from octavo.core.engine.llama import DEFAULT_CONTEXT
from octavo.core.gguf import Header, read_header
from octavo.core.gguf.shards import read_model
from octavo.core.memory import kv
from octavo.core.memory.estimate import estimate
from octavo.core.memory.shape import Shape, read_shape
from tests.fixtures.gguf_builder import tiny
from tests.fixtures.zoo_models import MODELS

MIB = 1024 * 1024
GIB = 1024 * MIB


@pytest.fixture(scope="session")
def zoo(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Shape]:
    """The shapes of the models that the tables are about."""
    folder = tmp_path_factory.mktemp("zoo")
    names = ("llama2-7b", "llama2-13b-3-shards", "llama3.1-8b", "gpt-oss-20b", "qwen3-30b-a3b")
    return {name: read_shape(read_model(MODELS[name]().write(folder))) for name in names}


def _kv_mib(shape: Shape, context: int, kind: str, *, slots: int = 1, full: bool = False) -> float:
    settings = {"context": context, "kv_k": kind, "kv_v": kind, "slots": slots, "swa_full": full}
    return kv.kv_bytes(shape, msgspec.convert(settings, LoadConfig)) / MIB


@pytest.mark.parametrize(
    ("name", "context", "f16", "q8_0", "q4_0"),
    [
        ("llama2-7b", 4096, 2048, 1088, 576),
        ("llama2-7b", 8192, 4096, 2176, 1152),
        ("llama2-7b", 32768, 16384, 8704, 4608),
        ("llama2-13b-3-shards", 4096, 3200, 1700, 900),
        ("llama2-13b-3-shards", 8192, 6400, 3400, 1800),
        ("llama3.1-8b", 8192, 1024, 544, 288),
        ("llama3.1-8b", 32768, 4096, 2176, 1152),
        ("llama3.1-8b", 131072, 16384, 8704, 4608),
        ("qwen3-30b-a3b", 8192, 768, 408, 216),
        ("qwen3-30b-a3b", 32768, 3072, 1632, 864),
    ],
)
def test_kv_of_full_attention(
    zoo: dict[str, Shape], name: str, context: int, f16: int, q8_0: int, q4_0: int
) -> None:
    found = [_kv_mib(zoo[name], context, kind) for kind in ("f16", "q8_0", "q4_0")]
    assert found == [f16, q8_0, q4_0]


@pytest.mark.parametrize(
    ("context", "window", "full"), [(8192, 210, 384), (32768, 786, 1536), (131072, 3090, 6144)]
)
def test_kv_of_gpt_oss_with_one_slot(zoo: dict[str, Shape], context: int, window: int, full: int) -> None:
    shape = zoo["gpt-oss-20b"]
    assert _kv_mib(shape, context, "f16") == window
    assert _kv_mib(shape, context, "f16", full=True) == full
    assert _kv_mib(shape, 32768, "q8_0") == pytest.approx(417.56, abs=0.01)


@pytest.mark.parametrize(
    ("name", "context", "weights", "f16", "q8_0", "total_f16", "total_q8_0"),
    [
        ("llama3.1-8b", 8192, 4.58, 1.00, 0.53, 5.70, 5.22),
        ("llama3.1-8b", 32768, 4.58, 4.00, 2.12, 8.72, 6.84),
        ("llama2-7b", 8192, 3.80, 4.00, 2.12, 7.90, 6.02),
        ("llama2-7b", 32768, 3.80, 16.0, 8.50, 19.9, 12.4),
        ("llama2-13b-3-shards", 8192, 7.33, 6.25, 3.32, 13.7, 10.8),
        ("gpt-oss-20b", 8192, 11.27, 0.21, 0.11, 11.6, 11.5),
        ("gpt-oss-20b", 32768, 11.27, 0.77, 0.41, 12.2, 11.8),
        ("qwen3-30b-a3b", 8192, 17.28, 0.75, 0.40, 18.1, 17.8),
    ],
)
def test_what_fits_a_laptop(
    zoo: dict[str, Shape],
    name: str,
    context: int,
    weights: float,
    f16: float,
    q8_0: float,
    total_f16: float,
    total_q8_0: float,
) -> None:
    """Four slots, one pool, no repack; GiB, without the runtime; 2 % (another mix of the same quant)."""
    plain = LoadConfig(context=context, slots=4)
    small = msgspec.structs.replace(plain, kv_k="q8_0", kv_v="q8_0")
    for config, cache, total in ((plain, f16, total_f16), (small, q8_0, total_q8_0)):
        found = estimate(zoo[name], config)
        assert found.components.kv / GIB == pytest.approx(cache, abs=0.006)
        assert found.mapped_bytes / GIB == pytest.approx(weights, rel=0.025)
        whole = found.private_bytes + found.mapped_bytes - found.components.runtime
        assert whole / GIB == pytest.approx(total, rel=0.025, abs=0.05)


def test_hot_parts_of_models_with_experts(zoo: dict[str, Shape]) -> None:
    hot = {name: estimate(zoo[name], LoadConfig()) for name in ("gpt-oss-20b", "qwen3-30b-a3b")}
    assert hot["gpt-oss-20b"].hot_mapped_bytes / GIB == pytest.approx(1.24, abs=0.02)
    assert hot["qwen3-30b-a3b"].hot_mapped_bytes / GIB == pytest.approx(0.76, abs=0.03)
    assert (hot["gpt-oss-20b"].expert_share, hot["qwen3-30b-a3b"].expert_share) == (4 / 32, 8 / 128)
    for found in hot.values():
        assert found.hot_mapped_bytes + found.expert_bytes < found.mapped_bytes


def test_c01_a_window_cache_is_charged_with_its_window(gemma: Path) -> None:
    """All with one slot. With four the window is four times as long: 36 and 120 MiB."""
    shape = read_shape(read_model(gemma))
    assert [_kv_mib(shape, context, "f16") for context in (4096, 32768)] == [27, 111]
    assert [_kv_mib(shape, context, "f16", full=True) for context in (4096, 32768)] == [72, 576]
    assert _kv_mib(shape, 32768, "q8_0") == pytest.approx(58.97, abs=0.005)
    assert _kv_mib(shape, 32768, "q4_0", full=True) == 162
    assert [_kv_mib(shape, context, "f16", slots=4) for context in (4096, 32768)] == [49.5, 133.5]


def test_c01_a_padded_context_and_one_beyond_training_are_both_said(gemma: Path) -> None:
    found = estimate(read_shape(read_model(gemma)), LoadConfig(context=40_000, slots=1))
    assert found.n_ctx == 40_192
    said = " ".join(found.reasons)
    assert "40,000 becomes 40,192" in said and "trained on 32,768" in said
    assert found.confidence == "exact"


def test_c11_the_compute_buffer_knows_vocabulary_and_micro_batch(gemma: Path) -> None:
    """Logits of a whole micro-batch would take 514.5 and 64.3 MiB; ours are asked for one token per slot."""
    shape = read_shape(read_model(gemma))
    found = {
        size: estimate(shape, LoadConfig(context=4096, slots=1, micro_batch=size)).components
        for size in (512, 64)
    }
    assert shape.vocabulary * 512 * 4 == 512 * MIB
    assert found[512].compute < 32 * MIB and found[64].compute < 8 * MIB
    assert found[512].output == found[64].output == shape.vocabulary * 4
    many = estimate(shape, LoadConfig(context=4096, slots=512 // 2, batch=512)).components
    assert many.compute >= many.output == shape.vocabulary * 4 * 256


def test_an_estimate_takes_less_than_a_millisecond(zoo: dict[str, Shape]) -> None:
    shape, config = zoo["gpt-oss-20b"], LoadConfig(context=32768)
    best = min(_timed(shape, config) for _ in range(50))
    assert best < 0.001


def _timed(shape: Shape, config: LoadConfig) -> float:
    started = time.perf_counter()
    estimate(shape, config)
    return time.perf_counter() - started


def test_an_unknown_architecture_is_counted_and_called_approximate(tmp_path: Path) -> None:
    found = estimate(
        _header(tmp_path, "newthing", attention__head_count=4, attention__head_count_kv=2), LoadConfig()
    )
    assert found.confidence == "approximate" and "newthing" in found.reasons[0]
    # 2 layers, 2 heads of 16, K and V, f16; the trained context of 2,048
    assert found.components.kv == 2 * 2 * 2 * 16 * 2 * 2048


@pytest.mark.parametrize(
    "fields",
    [{}, {"block_count": 0}, {"attention__head_count": 0}, {"embedding_length": 0}, {"block_count": 2**31}],
)
@pytest.mark.parametrize(
    "architecture", ["llama", "gemma3", "mamba", "jamba", "qwen3next", "nothing", "gemma4"]
)
def test_whatever_the_header_says_there_is_an_answer(
    tmp_path: Path, architecture: str, fields: dict[str, int]
) -> None:
    found = estimate(_header(tmp_path, architecture, **fields), LoadConfig())
    assert found.private_bytes > 0 and found.mapped_bytes >= found.hot_mapped_bytes >= 0


def test_parts_that_were_not_read_are_counted_by_file_size(tmp_path: Path) -> None:
    model = MODELS["llama2-13b-3-shards"]()
    model.write(tmp_path)
    size = sum(path.stat().st_size for path in model.files)
    first = estimate(read_header(model.files[0]), LoadConfig(), file_bytes=size)
    whole = estimate(read_model(model.files[0]), LoadConfig())
    assert first.confidence == "approximate" and whole.confidence == "exact"
    assert first.mapped_bytes == pytest.approx(whole.mapped_bytes, rel=0.001)


def test_load_modes_place_the_weights(zoo: dict[str, Shape]) -> None:
    shape = zoo["llama3.1-8b"]
    total = shape.weights.total
    placed = {mode: estimate(shape, LoadConfig(load_mode=mode)).components for mode in LoadMode}
    assert (placed[LoadMode.MMAP].weights_mapped, placed[LoadMode.MMAP].weights_private) == (total, 0)
    for mode in set(LoadMode) - {LoadMode.MMAP}:
        assert (placed[mode].weights_mapped, placed[mode].weights_private) == (0, total)
    fast = estimate(shape, LoadConfig(repack=True)).components
    assert 0 < fast.weights_private < total and fast.weights_mapped + fast.weights_private == total


def test_a_tied_table_is_hot_and_an_untied_one_is_not(zoo: dict[str, Shape], gemma: Path) -> None:
    tied, untied = (
        estimate(shape, LoadConfig()) for shape in (read_shape(read_model(gemma)), zoo["llama2-7b"])
    )
    assert tied.hot_mapped_bytes == tied.mapped_bytes
    assert untied.mapped_bytes - untied.hot_mapped_bytes == 32000 * 4096 * 144 // 256


def test_without_flash_attention_scores_are_counted(zoo: dict[str, Shape]) -> None:
    """LLaMA-2-7B, micro-batch 512: dry runs gave 320, 584 and 2,168 MiB (one slot)."""
    off = LoadConfig(slots=1, flash_attention=FlashAttention.OFF)
    for context, mib in ((4096, 320), (8192, 584), (32768, 2168)):
        found = estimate(zoo["llama2-7b"], msgspec.structs.replace(off, context=context)).components.compute
        assert found / MIB == pytest.approx(mib, abs=16, rel=0.02)


def test_a_projector_is_added(zoo: dict[str, Shape]) -> None:
    shape = zoo["llama2-7b"]
    plain, seeing = (estimate(shape, LoadConfig(), mmproj_bytes=size) for size in (0, 600 * MIB))
    assert seeing.private_bytes - plain.private_bytes == 600 * MIB


def test_the_default_context_is_the_engines() -> None:
    assert kv.DEFAULT_CONTEXT == DEFAULT_CONTEXT


def test_gpu_layers_are_said_to_be_counted_in_main_memory(zoo: dict[str, Shape]) -> None:
    found = estimate(replace(zoo["llama2-7b"]), LoadConfig(gpu_layers=10))
    assert found.confidence == "close" and "GPU" in found.reasons[0]


def _header(folder: Path, architecture: str, **fields: int) -> Header:
    path = folder / "m.gguf"
    path.write_bytes(tiny(architecture, **fields).build())
    return read_header(path)
