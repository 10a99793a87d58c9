"""What a worker is told of its model's files."""

from pathlib import Path

import pytest

from octavo.core.config.load_config import LoadConfig, LoadMode
from octavo.core.engine.protocol import TensorPlace
from octavo.core.gguf import read_header
from octavo.core.runtime.placing import load_command, place_tensors
from tests.fixtures.gguf_builder import TensorEntry, tiny
from tests.fixtures.split_gguf import split_three


def test_every_tensor_is_told_with_its_bytes(smollm2: Path) -> None:
    command = load_command(smollm2, LoadConfig())
    header = read_header(smollm2)
    assert command.files == [str(smollm2)]
    assert [place.name for place in command.tensors] == [tensor.name for tensor in header.tensors]
    assert sum(place.stop - place.start for place in command.tensors) == header.tensor_bytes
    assert min(place.start for place in command.tensors) == header.data_offset
    assert max(place.stop for place in command.tensors) <= smollm2.stat().st_size
    assert not any(place.is_unread for place in command.tensors)  # its table is its output, too


def test_a_table_beside_an_output_is_told_to_be_unread(tmp_path: Path) -> None:
    file = tiny()
    file.tensors = [TensorEntry(name, (32,)) for name in ("token_embd.weight", "output.weight")]
    path = tmp_path / "model.gguf"
    path.write_bytes(file.build())
    _, places = place_tensors(path)
    assert [(place.name, place.is_unread) for place in places] == [
        ("token_embd.weight", True),
        ("output.weight", False),
    ]


def test_places_in_a_split_model_are_those_in_its_parts(smollm2: Path, tmp_path: Path) -> None:
    parts = split_three(smollm2, tmp_path, "split")
    files, places = place_tensors(parts[0])
    assert files == [str(part) for part in parts]
    whole, (_, alone) = smollm2.read_bytes(), place_tensors(smollm2)
    data = [part.read_bytes() for part in parts]
    assert {place.file for place in places} == {1, 2}  # the first part holds the vocabulary alone
    for one, other in zip(by_name(places), by_name(alone), strict=True):
        assert one.name == other.name
        assert data[one.file][one.start : one.stop] == whole[other.start : other.stop]


def by_name(places: list[TensorPlace]) -> list[TensorPlace]:
    return sorted(places, key=lambda place: place.name)


@pytest.mark.parametrize("mode", [LoadMode.NONE, LoadMode.MLOCK, LoadMode.DIRECT_IO])
def test_weights_in_private_memory_have_no_pages_to_look_after(smollm2: Path, mode: LoadMode) -> None:
    command = load_command(smollm2, LoadConfig(load_mode=mode))
    assert (command.files, command.tensors, command.drops_unread) == ([], [], False)


def test_a_header_that_cannot_be_read_fails_no_load(tmp_path: Path) -> None:
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"GGUF and then nothing")
    for path in (broken, tmp_path / "missing.gguf"):
        assert load_command(path, LoadConfig()).tensors == []
