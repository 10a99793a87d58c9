"""The cells of a model's map, and the ranges of its layers."""

from pathlib import Path

import msgspec
import pytest

from octavo.core.errors import InvalidRequest
from octavo.core.gguf import read_model
from octavo.core.memory import layout as layout_module
from octavo.core.memory.layout import MapLayout, MapTensor, PageRange
from tests.fixtures.gguf_builder import F16, TensorEntry, tiny
from tests.fixtures.split_gguf import split_three

EXPERTS, SLICE = 8, 96 * 50 * 2


def moe(path: Path) -> Path:
    """Write a tiny model with one expert tensor in each of two layers, and one that is just named so."""
    built = tiny("qwen3moe", expert_count=EXPERTS)
    for layer in range(2):
        built.tensors += [
            TensorEntry(f"blk.{layer}.attn_norm.weight", [33]),
            TensorEntry(f"blk.{layer}.ffn_up_exps.weight", [96, 50, EXPERTS], F16),
        ]
    built.tensors.append(TensorEntry("blk.1.flat_exps.weight", [96, 50]))
    path.write_bytes(built.build())
    return path


def tensor_of(layout: MapLayout, name: str) -> MapTensor:
    """Find a tensor by name."""
    return next(tensor for tensor in layout.tensors if tensor.name == name)


def test_plain_model_has_a_cell_for_each_tensor(smollm2: Path) -> None:
    header = read_model(smollm2)
    layout = MapLayout.of(header)
    assert layout.cells == len(header.tensors) == len(layout.tensors)
    assert [tensor.first_cell for tensor in layout.tensors] == list(range(layout.cells))
    assert layout.files == [smollm2.name]
    assert layout.file_bytes == [smollm2.stat().st_size] == [layout.total_bytes]
    assert layout.layers == list(range(30))
    assert all(not tensor.experts for tensor in layout.tensors)


def test_offsets_are_those_of_the_file(smollm2: Path) -> None:
    from gguf import GGUFReader

    told = {t.name: (int(t.data_offset), int(t.n_bytes)) for t in GGUFReader(smollm2).tensors}
    assert {t.name: (t.offset, t.nbytes) for t in MapLayout.of(read_model(smollm2)).tensors} == told


def test_experts_are_cells_of_their_own(tmp_path: Path) -> None:
    layout = MapLayout.of(read_model(moe(tmp_path / "moe.gguf")))
    first, second = (tensor_of(layout, f"blk.{layer}.ffn_up_exps.weight") for layer in range(2))
    assert (first.experts, first.cells, first.nbytes) == (EXPERTS, EXPERTS, EXPERTS * SLICE)
    assert (first.first_cell, second.first_cell) == (3, 3 + EXPERTS + 1)
    assert tensor_of(layout, "blk.1.flat_exps.weight").experts == 0
    assert layout.cells == 2 + 2 * (1 + EXPERTS) + 1


def test_too_many_cells_are_not_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout_module, "MOST_CELLS", 10)
    layout = MapLayout.of(read_model(moe(tmp_path / "moe.gguf")))
    assert layout.cells == len(layout.tensors) == 7


def test_shards_are_ordered_by_file_and_offset(smollm2: Path, tmp_path: Path) -> None:
    paths = split_three(smollm2, tmp_path, "small")
    layout = MapLayout.of(read_model(paths[0]))
    assert layout.files == [path.name for path in paths]
    assert layout.file_bytes == [path.stat().st_size for path in paths]
    places = [(tensor.file, tensor.offset) for tensor in layout.tensors]
    assert places == sorted(places)
    assert {file for file, _ in places} == {1, 2}
    alone = {t.name: t.nbytes for t in MapLayout.of(read_model(smollm2)).tensors}
    assert {t.name: t.nbytes for t in layout.tensors} == alone


def test_ranges_of_layers_are_their_tensors_own_bytes_merged(smollm2: Path) -> None:
    layout = MapLayout.of(read_model(smollm2))
    ranges = layout.ranges([7])
    own = [tensor for tensor in layout.tensors if tensor.layer == 7]
    assert sum(place.stop - place.start for place in ranges) == sum(tensor.nbytes for tensor in own)
    assert len(ranges) < len(own)
    covered = {(place.start, place.stop) for place in layout.ranges([7, 8])}
    assert all(any(a <= t.offset and t.offset + t.nbytes <= b for a, b in covered) for t in own)
    assert layout.ranges([8, 7, 7]) == layout.ranges([7, 8])
    assert layout.ranges([]) == []


def test_ranges_are_not_merged_over_padding(tmp_path: Path) -> None:
    layout = MapLayout.of(read_model(moe(tmp_path / "moe.gguf")))
    norm, experts = (tensor_of(layout, f"blk.0.{name}.weight") for name in ("attn_norm", "ffn_up_exps"))
    assert layout.ranges([0]) == [
        PageRange(file=0, start=tensor.offset, stop=tensor.offset + tensor.nbytes)
        for tensor in (norm, experts)
    ]


def test_whole_is_every_file_with_its_header(smollm2: Path, tmp_path: Path) -> None:
    paths = split_three(smollm2, tmp_path, "small")
    ranges = MapLayout.of(read_model(paths[0])).ranges(None)
    assert ranges == [
        PageRange(file=file, start=0, stop=path.stat().st_size) for file, path in enumerate(paths)
    ]


def test_unknown_layers_are_refused_with_those_that_exist(smollm2: Path) -> None:
    layout = MapLayout.of(read_model(smollm2))
    with pytest.raises(
        InvalidRequest, match=r"Layers 30–31, 99 are not in this model; it has 0–29\."
    ) as refused:
        layout.ranges([3, 31, 30, 99])
    assert refused.value.details == {"layers": "0–29"}
    with pytest.raises(InvalidRequest, match="Layer -2 is not"):
        layout.ranges([-2])


def test_model_without_layers_says_so(tmp_path: Path) -> None:
    (tmp_path / "flat.gguf").write_bytes(tiny().build())
    layout = MapLayout.of(read_model(tmp_path / "flat.gguf"))
    with pytest.raises(InvalidRequest, match="it has no layers"):
        layout.ranges([0])


def test_layout_crosses_a_border_as_it_is(smollm2: Path) -> None:
    layout = MapLayout.of(read_model(smollm2))
    assert msgspec.json.decode(msgspec.json.encode(layout), type=MapLayout) == layout
