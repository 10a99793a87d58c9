"""``octavo quants``: the table of block layouts, and a model's size in each."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.server.test_cli import octavo


def table(*arguments: str) -> dict[str, Any]:
    done = octavo("quants", *arguments, "--json")
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def by_name(found: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {kind["name"]: kind for kind in found["types"]}


def test_every_type_is_listed_with_its_exact_bits(octavo_home: Path) -> None:
    found = table()
    kinds = by_name(found)
    assert len(kinds) == 35 and found["model"] is None and "embedding" in found["rule"]
    exact = {
        "Q2_K": 2.625,
        "Q3_K": 3.4375,
        "Q4_K": 4.5,
        "Q5_K": 5.5,
        "Q6_K": 6.5625,
        "MXFP4": 4.25,
        "IQ2_XXS": 2.0625,
    }
    assert {name: kinds[name]["bits_per_weight"] for name in exact} == exact
    assert (kinds["Q4_K"]["sub_blocks"], kinds["Q4_K"]["sub_block_weights"]) == (8, 32)
    assert (kinds["Q6_K"]["sub_blocks"], kinds["Q6_K"]["sub_block_weights"]) == (16, 16)
    for kind in kinds.values():
        assert sum(field["bytes"] for field in kind["fields"]) == kind["block_bytes"]
        assert kind["block_bytes"] * 8 / kind["block_weights"] == kind["bits_per_weight"]
        assert kind["model_bytes"] is None


def test_a_models_size_in_each_type(octavo_home: Path, smollm2: Path) -> None:
    found = table(str(smollm2))
    kinds = by_name(found)
    assert found["model_bytes"] == kinds["Q4_1"]["model_bytes"] == smollm2.stat().st_size
    sizes = [kinds[name]["model_bytes"] for name in ("F32", "F16", "Q8_0", "Q5_1", "Q4_1", "Q4_0")]
    assert sizes == sorted(sizes, reverse=True)
    assert kinds["Q8_K"]["model_bytes"] is None and not kinds["Q8_K"]["for_weights"]


def test_people_get_a_table_and_the_rule(octavo_home: Path, smollm2: Path) -> None:
    done = octavo("quants")
    lines = done.stdout.splitlines()
    assert done.returncode == 0 and len(lines) == 36 and lines[0].split()[:3] == ["TYPE", "BITS", "BLOCK"]
    assert any(line.startswith("Q4_K ") and "8 × 32" in line for line in lines)
    sized = octavo("quants", str(smollm2))
    assert "98 MB" in sized.stdout and "embedding" in sized.stderr


@pytest.mark.parametrize("cut", [0, 10])
def test_what_is_no_whole_model_is_refused(
    cut: int, octavo_home: Path, smollm2: Path, tmp_path: Path
) -> None:
    path = tmp_path / "cut.gguf"
    if cut:
        shutil.copyfile(smollm2, path)
        path.write_bytes(path.read_bytes()[:-cut])
    done = octavo("quants", str(path), "--json")
    assert done.returncode == 1
    assert json.loads(done.stdout)["error"]["code"] == ("invalid_gguf" if cut else "model_not_found")
