"""Models split over several files: read as one from any part, and what is wrong is named before a load."""

import dataclasses
from pathlib import Path

import pytest

from octavo.core.errors import InvalidGguf, UnreadableFile
from octavo.core.gguf import describe, joined, member_names, members, read_header, read_model, split_name
from tests.fixtures.gguf_builder import GgufFile, TensorEntry, tiny
from tests.fixtures.split_gguf import marks, part_name, split_three


def parts(count: int = 3, tensors: int | None = None) -> list[bytes]:
    """Make the parts of a tiny model: the first has its metadata only, each other one tensor."""
    stated = count - 1 if tensors is None else tensors
    first = tiny("gemma3", *marks(0, count, stated))
    first.tensors = []
    others = [
        GgufFile(
            marks(number, count, stated), [TensorEntry(f"blk.{number}.ffn_up.weight", [64, 64 * number])]
        )
        for number in range(1, count)
    ]
    return [first.build(), *(other.build() for other in others)]


def write(folder: Path, files: list[bytes], stem: str = "tiny") -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / part_name(stem, number, len(files)) for number in range(1, len(files) + 1)]
    for path, data in zip(paths, files, strict=True):
        path.write_bytes(data)
    return paths


def fault(path: Path) -> InvalidGguf:
    with pytest.raises(InvalidGguf) as caught:
        read_model(path)
    return caught.value


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("Tiny_26B.BF16-00002-of-00003.gguf", ("Tiny_26B.BF16", 2, 3)),
        ("a-00001-of-00001.gguf", None),
        ("a-00004-of-00003.gguf", None),
        ("a-00000-of-00003.gguf", None),
        ("a-1-of-3.gguf", None),
        ("a-00001-of-00003.gguf.part", None),
        ("-00001-of-00003.gguf", None),
    ],
)
def test_a_parts_name_is_taken_apart(name: str, parts: tuple[str, int, int] | None):
    assert split_name(name) == parts


def test_all_names_are_told_from_any():
    names = ("x-00001-of-00003.gguf", "x-00002-of-00003.gguf", "x-00003-of-00003.gguf")
    assert all(member_names(name) == names for name in names)
    assert member_names("x.gguf") == ("x.gguf",)


def test_b06_any_part_reads_the_whole(tmp_path: Path):
    paths = write(tmp_path, parts())
    views = [read_model(path) for path in paths]
    assert views[0] == views[1] == views[2]
    whole = views[1]
    assert [part.path for part in whole.files] == paths == list(members(paths[2]))
    assert [(tensor.name, tensor.file) for tensor in whole.tensors] == [
        ("blk.1.ffn_up.weight", 1),
        ("blk.2.ffn_up.weight", 2),
    ]
    assert whole.file_size == sum(path.stat().st_size for path in paths) >= whole.complete_size
    assert (whole.kind, whole.architecture) == ("model", "gemma3")
    assert describe(whole).parameters == 64 * 64 * 3


def test_the_data_of_a_tensor_lies_where_the_view_says(tmp_path: Path):
    files = parts(2)
    files[1] = GgufFile(marks(1, 2, 1), [TensorEntry("t", [8], data=b"octavo!!" * 4)]).build()
    header = read_model(write(tmp_path, files)[0])
    (tensor,) = header.tensors
    part = header.files[tensor.file]
    assert part.path is not None
    data = part.path.read_bytes()[part.data_offset + tensor.offset :][: tensor.nbytes]
    assert data == b"octavo!!" * 4


def test_a_file_of_its_own_is_its_own_only_part(smollm2: Path):
    header = read_model(smollm2)
    assert header == read_header(smollm2) and not header.parts
    (part,) = header.files
    assert (part.path, part.data_offset, part.file_size) == (smollm2, header.data_offset, header.file_size)


def test_b06_what_is_missing_is_named(tmp_path: Path):
    paths = write(tmp_path, parts())
    paths[1].rename(paths[1].with_name(paths[1].name + ".part"))
    error = fault(paths[2])
    assert error.details["fault"] == "missing_shard" and error.details["missing"] == [paths[1].name]
    assert paths[1].name in error.message and "3 files" in error.message


def test_many_missing_parts_are_counted(tmp_path: Path):
    paths = write(tmp_path, parts(9))
    for path in paths[1:8]:
        path.unlink()
    assert "and 4 more are missing" in fault(paths[0]).message


def test_a_part_cut_short_is_named(tmp_path: Path):
    paths = write(tmp_path, parts())
    paths[1].write_bytes(paths[1].read_bytes()[:-10])
    error = fault(paths[0])
    assert (error.details["fault"], error.details["missing_bytes"]) == ("truncated_data", 10)
    assert paths[1].name in error.message


def test_b06_bytes_after_one_part_dont_make_up_for_another(tmp_path: Path):
    paths = write(tmp_path, parts())
    paths[1].write_bytes(paths[1].read_bytes()[:-10])
    paths[2].write_bytes(paths[2].read_bytes() + bytes(100))
    assert fault(paths[0]).details["fault"] == "truncated_data"


def test_parts_in_each_others_place_are_refused(tmp_path: Path):
    one, two, three = parts()
    error = fault(write(tmp_path, [one, three, two])[0])
    assert error.details["fault"] == "shard_mismatch" and "part 3 of 3" in error.message


def test_a_whole_model_among_parts_is_refused(tmp_path: Path):
    paths = write(tmp_path, parts())
    paths[2].write_bytes(tiny().build())
    assert "a whole model" in fault(paths[0]).message


def test_a_first_part_of_another_name_is_refused(tmp_path: Path):
    (tmp_path / "renamed.gguf").write_bytes(parts()[0])
    error = fault(tmp_path / "renamed.gguf")
    assert error.details["fault"] == "shard_mismatch" and "00001-of-00003" in error.hint


def test_a_whole_model_may_be_named_like_a_part(tmp_path: Path):
    path = tmp_path / part_name("x", 1, 3)
    path.write_bytes(tiny().build())
    assert read_model(path).path == path


def test_fewer_tensors_than_stated_are_refused(tmp_path: Path):
    assert "5 tensors" in fault(write(tmp_path, parts(tensors=5))[0]).message


def test_a_tensor_in_two_parts_is_refused(tmp_path: Path):
    files = parts()
    files[2] = GgufFile(marks(2, 3, 2), [TensorEntry("blk.1.ffn_up.weight", [64])]).build()
    assert fault(write(tmp_path, files)[0]).details["fault"] == "duplicate_tensor"


def test_parts_read_from_elsewhere_are_joined_too():
    whole = joined([read_header(data, f"part {number}") for number, data in enumerate(parts())])
    assert [part.name for part in whole.files] == ["part 0", "part 1", "part 2"]


def test_nothing_at_all_is_unreadable(tmp_path: Path):
    with pytest.raises(UnreadableFile):
        read_model(tmp_path / "x.gguf")
    assert fault(tmp_path / part_name("x", 2, 2)).details["fault"] == "missing_shard"


def test_a_real_model_in_three_parts_is_the_same_model(gemma: Path, tmp_path: Path):
    one, whole = read_model(gemma), read_model(split_three(gemma, tmp_path, "g")[1])
    alike = [dataclasses.replace(tensor, file=0, offset=0) for tensor in whole.tensors]
    assert alike == [dataclasses.replace(tensor, offset=0) for tensor in one.tensors]
    split, alone = describe(whole), describe(one)
    assert (split.parameters, split.tensor_bytes, split.vocab_size, split.quant) == (
        alone.parameters,
        alone.tensor_bytes,
        alone.vocab_size,
        alone.quant,
    )
