"""The closed form equals llama.cpp's own allocator, byte for byte, over the zoo.

A representative part; all of the grid is ``make memory-table``.
"""

from pathlib import Path

import msgspec
import pytest

from octavo.core.config.load_config import LoadConfig, LoadMode
from octavo.core.engine.simulate import Simulated, simulate_one
from octavo.core.gguf.shards import read_model
from octavo.core.memory.estimate import estimate
from octavo.core.memory.shape import read_shape
from octavo.core.memory.weights import is_expert, is_hot, place
from tests.core.memory.zoo_checks import few, odd, rows
from tests.fixtures.zoo_models import MODELS


@pytest.mark.parametrize("name", MODELS)
def test_kv_and_recurrent_bytes_are_exact_and_the_total_is_close(name: str, tmp_path: Path) -> None:
    path = MODELS[name]().write(tmp_path)
    shape = read_shape(read_model(path))
    assert shape.confidence == "exact", shape.reasons
    checked = list(rows(name, path, shape, [*few(shape, list(MODELS).index(name)), *odd()]))
    assert checked
    for row in checked:
        assert row.simulated.is_exact
        assert row.held_difference == 0, row
        assert row.simulated.n_ctx >= (row.config.context or 0)
        assert row.forecast.weights_private == sum(row.simulated.weights.values())
        assert abs(row.forecast.output - row.simulated.output) <= 0.0051 * 1024 * 1024
    worst = max(checked, key=lambda row: row.error)
    assert worst.error <= 1, worst


@pytest.mark.parametrize(
    "name",
    ["llama3.1-8b-q4_0", "llama3.2-1b-tied", "gpt-oss-20b", "gemma4-e2b", "deepseek2-lite-mla", "jamba-mini"],
)
def test_repacked_weights_are_exact(name: str, tmp_path: Path) -> None:
    path = MODELS[name]().write(tmp_path)
    weights = read_shape(read_model(path)).weights
    fast = LoadConfig(context=512, slots=1, repack=True)
    found = simulate_one(path, fast)
    assert isinstance(found, Simulated)
    if "CPU_REPACK" not in found.weights:
        pytest.skip("this build or CPU repacks otherwise; the table is for AVX2")
    assert place(weights, fast).private == found.weights["CPU_REPACK"]
    whole = place(weights, msgspec.structs.replace(fast, load_mode=LoadMode.NONE))
    assert whole.private == sum(found.weights.values())


@pytest.mark.parametrize("name", ["qwen3-30b-a3b", "llama2-7b", "gemma3n-e4b", "jamba-mini"])
def test_the_sums_of_hot_and_expert_tensors_are_the_estimates(name: str, tmp_path: Path) -> None:
    header = read_model(MODELS[name]().write(tmp_path))
    is_tied = all(tensor.name != "output.weight" for tensor in header.tensors)
    found = estimate(header, LoadConfig())
    assert found.hot_mapped_bytes == sum(t.nbytes for t in header.tensors if is_hot(t, is_tied=is_tied))
    assert found.expert_bytes == sum(t.nbytes for t in header.tensors if is_expert(t))


def test_the_zoo_is_of_the_promised_kinds() -> None:
    assert len(MODELS) >= 24
    architectures = {make().architecture for make in MODELS.values()}
    assert len(architectures) >= 20
