"""Every field of ``LoadConfig`` reaches llama.cpp: read back from getters, log, or the C structure."""

import asyncio
import ctypes
import re
from pathlib import Path

import msgspec
import pytest

from octavo.core.config.load_config import FlashAttention, LoadConfig, LoadMode, Overflow
from octavo.core.engine import llama
from tests.core.engine.real_engine import real_engine

# fields that steer the service or the scheduler, not llama.cpp; shown elsewhere
OURS = {
    "mixed_step": "test_scheduler.py",
    "ttl_s": "test_runtime_real.py",
    "overflow": "a later issue: chats",
    "elastic": "test_elastic.py",
}

Effective = dict[str, str | int | float | bool]


def load_and_read(model: Path, folder: Path, **config: object) -> tuple[Effective, str]:
    """Load once; give what the worker read back and llama.cpp's log."""

    async def load() -> tuple[Effective, str]:
        async with real_engine(model, folder, **config) as engine:
            return engine.ready().effective, "\n".join(engine.log_lines())

    return asyncio.run(load())


@pytest.fixture(scope="module")
def changed(gemma: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Effective, str]:
    """Everything unlike the default that this build can show, in one load."""
    return load_and_read(
        gemma,
        tmp_path_factory.mktemp("changed"),
        context=4096,
        slots=3,
        kv_unified=False,
        batch=384,
        micro_batch=96,
        kv_k="q8_0",
        kv_v="q5_1",
        swa_full=True,
        load_mode=LoadMode.NONE,
        repack=True,
        rope_base=12345.0,
        rope_scale=0.5,
    )


@pytest.fixture(scope="module")
def plain(gemma: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Effective, str]:
    """The defaults."""
    return load_and_read(gemma, tmp_path_factory.mktemp("plain"), flash_attention=FlashAttention.OFF)


# field → (what the changed load shows, what the plain one shows), as patterns in the log
IN_LOG = {
    "context": (r"n_ctx_seq += 1536", r"n_ctx_seq += 2048"),  # 4096 / 3, padded to 256
    "slots": (r"n_seq_max += 3", r"n_seq_max += 4"),
    "kv_unified": (r"kv_unified += false", r"kv_unified += true"),
    "batch": (r"n_batch += 384", r"n_batch += 512"),
    "micro_batch": (r"n_ubatch += 96", r"n_ubatch += 512"),
    "kv_k": (r"K \(q8_0\)", r"K \(f16\)"),
    "kv_v": (r"V \(q5_1\)", r"V \(f16\)"),
    "flash_attention": (r"flash_attn += enabled", r"flash_attn += disabled"),
    "swa_full": (r"using full-size SWA cache", r"creating +SWA KV cache"),
    "load_mode": (r"load_mode = none", r"load_mode = mmap"),
    "repack": (r"CPU_REPACK model buffer", r"CPU_Mapped model buffer"),
    "rope_base": (r"freq_base += 12345", r"freq_base += 1000000"),
    "rope_scale": (r"freq_scale += 0.5", r"freq_scale += 1\b"),
}


@pytest.mark.parametrize("field", IN_LOG)
def test_a_field_shows_in_the_engine(
    field: str, changed: tuple[Effective, str], plain: tuple[Effective, str]
) -> None:
    in_changed, in_plain = IN_LOG[field]
    assert re.search(in_changed, changed[1])
    assert re.search(in_plain, plain[1])
    assert not re.search(in_changed, plain[1])


def test_getters_agree(changed: tuple[Effective, str]) -> None:
    effective = changed[0]
    wanted = {
        "slots": 3,
        "batch": 384,
        "micro_batch": 96,
        "threads": 1,
        "threads_batch": 1,
        "context_per_request": 1536,
    }
    assert {name: effective[name] for name in wanted} == wanted


def test_threads_reach_the_engine(smollm2: Path, tmp_path: Path) -> None:
    effective, _ = load_and_read(smollm2, tmp_path, threads=3)
    assert (effective["threads"], effective["threads_batch"]) == (3, 3)


def test_what_only_other_builds_show_is_in_the_structure() -> None:
    config = LoadConfig(gpu_layers=7, tensor_split=(0.25, 0.75), cpu_moe_layers=2)
    parameters, kept = llama.model_parameters(config)
    assert parameters.n_gpu_layers == 7
    assert parameters.tensor_split[0] == 0.25
    rows = ctypes.cast(parameters.tensor_buft_overrides, ctypes.POINTER(llama._BufferOverride))
    assert [rows[index].pattern for index in range(3)] == [
        rb"blk\.0\.ffn_(up|down|gate_up|gate)_(ch|)exps",
        rb"blk\.1\.ffn_(up|down|gate_up|gate)_(ch|)exps",
        None,
    ]
    assert rows[0].buffer_type is not None
    assert len(kept) == 2


@pytest.mark.parametrize(("mode", "number"), [(mode, llama.LOAD_MODES[mode]) for mode in LoadMode])
def test_load_modes_have_llama_cpps_numbers(mode: LoadMode, number: int) -> None:
    name = {"mmap_mlock": "MMAP_MLOCK", "direct_io": "DIRECT_IO"}.get(mode.value, mode.value.upper())
    assert getattr(llama.C, f"LLAMA_LOAD_MODE_{name}") == number
    assert llama.model_parameters(LoadConfig(load_mode=mode))[0].load_mode == number


@pytest.mark.parametrize("name", llama.KV_TYPES)
def test_cache_types_have_ggmls_numbers(name: str) -> None:
    type_name = llama.C._lib.ggml_type_name
    type_name.restype = ctypes.c_char_p
    assert type_name(llama.KV_TYPES[name]).decode() == name


def test_no_field_is_forgotten() -> None:
    shown = {*IN_LOG, "threads", "gpu_layers", "tensor_split", "cpu_moe_layers", *OURS}
    assert shown == set(LoadConfig.__struct_fields__)
    assert msgspec.to_builtins(LoadConfig(overflow=Overflow.STOP))["overflow"] == "stop"
