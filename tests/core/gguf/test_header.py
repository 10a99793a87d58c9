"""What the header reader tells of sound files, from whatever they are read."""

import io
import os
from pathlib import Path

import gguf
import numpy as np
import pytest

from octavo.core.errors import InvalidGguf, UnreadableFile
from octavo.core.gguf import ArraySkipped, StringSkipped, ValueType, read_header, read_skipped
from octavo.core.gguf.cursor import Cursor
from tests.fixtures.gguf_builder import (
    F16,
    GgufFile,
    TensorEntry,
    array,
    big_vocabulary,
    pair,
    strings,
    text,
    tiny,
    u32,
    u64,
)


class Ranged(io.BytesIO):
    """A remote file: few bytes a read, and a note of how many were fetched."""

    fetched = 0

    @property
    def size(self) -> int:
        return len(self.getbuffer())

    def read(self, count: int | None = -1, /) -> bytes:
        data = super().read(min(count or 0, 700))
        self.fetched += len(data)
        return data


def test_metadata_of_every_type_is_read():
    kinds = {
        "u8": (ValueType.UINT8, 255),
        "i8": (ValueType.INT8, -128),
        "u16": (ValueType.UINT16, 65_535),
        "i16": (ValueType.INT16, -32_768),
        "u32": (ValueType.UINT32, 4_294_967_295),
        "i32": (ValueType.INT32, -2_147_483_648),
        "f32": (ValueType.FLOAT32, 0.5),
        "bool": (ValueType.BOOL, True),
        "text": (ValueType.STRING, "한국어 🦙"),
        "u64": (ValueType.UINT64, 2**64 - 1),
        "i64": (ValueType.INT64, -(2**63)),
        "f64": (ValueType.FLOAT64, 0.1),
    }
    model = tiny("llama", *(pair(key, value, kind) for key, (kind, value) in kinds.items()))
    header = read_header(model.build())
    assert {key: header.metadata[key] for key in kinds} == {key: value for key, (_, value) in kinds.items()}


def test_a_bool_of_seven_is_true_as_in_llama_cpp():
    assert read_header(tiny("llama", pair("a.b", b"\7", ValueType.BOOL)).build()).metadata["a.b"] is True


def test_tensors_have_names_shapes_types_and_places():
    header = read_header(tiny().build())
    embedding, norm = header.tensors
    assert (embedding.name, embedding.shape, embedding.type.name) == ("token_embd.weight", (64, 64), "F32")
    assert (embedding.offset, embedding.nbytes, embedding.elements) == (0, 16_384, 4_096)
    assert (norm.offset, norm.nbytes) == (16_384, 256)
    assert header.data_offset % header.alignment == 0


def test_version_2_is_read_like_version_3():
    model = tiny()
    model.version = 2
    assert read_header(model.build()).version == 2


def test_another_alignment_is_kept():
    model = tiny("llama", pair("general.alignment", 64))
    model.alignment = 64
    header = read_header(model.build())
    assert (header.alignment, header.data_offset % 64) == (64, 0)
    header.check_loadable()


def test_path_bytes_and_ranges_give_the_same_header(tmp_path: Path):
    raw = big_vocabulary(3_000).build()
    path = tmp_path / "m.gguf"
    path.write_bytes(raw)
    from_path, from_bytes, ranged = read_header(path), read_header(raw), read_header(Ranged(raw), "m")
    assert from_path.metadata == from_bytes.metadata == ranged.metadata
    assert from_path.tensors == from_bytes.tensors == ranged.tensors
    assert (from_path.path, from_bytes.path) == (path, None)


def test_a_remote_reader_is_not_asked_for_the_tensors():
    model = tiny()
    model.tensors = [TensorEntry("t", [1 << 20], F16)]
    source = Ranged(model.build())
    read_header(source, "remote")
    assert source.fetched <= 1 << 20 < source.size


def test_short_arrays_are_kept_and_long_ones_stay_in_the_file(tmp_path: Path):
    numbers = array(ValueType.INT32, range(1025))
    words = [f"w{i}" for i in range(1025)]
    model = tiny(
        "llama", strings("s", ["a", "b"]), strings("long", words), pair("n", numbers, ValueType.ARRAY)
    )
    path = tmp_path / "m.gguf"
    path.write_bytes(model.build())
    metadata = read_header(path).metadata
    assert metadata["s"] == ("a", "b")
    assert isinstance(metadata["long"], ArraySkipped) and isinstance(metadata["n"], ArraySkipped)
    assert read_skipped(path, metadata["long"]) == words
    assert read_skipped(path, metadata["n"]) == list(range(1025))


def test_an_empty_array_is_empty():
    assert read_header(tiny("llama", strings("s", [])).build()).metadata["s"] == ()


def test_a_long_string_stays_in_the_file():
    long = pair("tokenizer.huggingface.json", "x" * (2 << 20))
    value = read_header(tiny("llama", long).build()).metadata["tokenizer.huggingface.json"]
    assert isinstance(value, StringSkipped) and value.length == 2 << 20


def test_strings_across_the_borders_of_blocks_are_walked():
    words = ["x" * 300_000, "", "y" * 1_500_000, "z"]
    header = read_header(tiny("llama", strings("s", words), pair("after", "here")).build())
    assert header.metadata["after"] == "here"


def test_text_that_is_no_utf8_is_shown_with_marks():
    header = read_header(GgufFile([pair("general.name", b"caf\xe9")]).build())
    assert header.text("general.name") == "caf\ufffd"


def test_typed_access_ignores_values_of_another_type():
    header = read_header(
        tiny("llama", pair("a", "text"), pair("b", 1), pair("c", True), pair("d", 0.5)).build()
    )
    assert (header.integer("a"), header.integer("b"), header.integer("c")) == (None, 1, None)
    assert (header.text("b"), header.number("d"), header.number("c")) == (None, 0.5, None)


def test_bytes_after_the_last_tensor_are_harmless():
    read_header(tiny().build() + b"\xee" * 1000).check_loadable()


def test_the_padding_after_the_last_tensor_may_be_missing():
    model = tiny()
    model.tensors = [TensorEntry("t", [3])]
    raw = model.build()
    read_header(raw[:-20]).check_loadable()
    with pytest.raises(InvalidGguf):
        read_header(raw[:-21]).check_loadable()


def test_a_tensor_without_weights_takes_no_bytes():
    model = tiny()
    model.tensors = [TensorEntry("t", [0, 64], data=b"")]
    assert read_header(model.build()).tensors[0].nbytes == 0


def test_a_pipe_and_a_folder_are_refused_without_waiting(tmp_path: Path):
    os.mkfifo(tmp_path / "pipe.gguf")
    for path in (tmp_path / "pipe.gguf", tmp_path, Path("/dev/zero")):
        with pytest.raises(UnreadableFile, match="regular file"):
            read_header(path)


def test_a_missing_file_is_named(tmp_path: Path):
    with pytest.raises(UnreadableFile, match=r"nothing\.gguf"):
        read_header(tmp_path / "nothing.gguf")


def test_a_name_that_is_no_text_is_named_in_valid_utf8(tmp_path: Path):
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9\n.gguf"))
    path.write_bytes(b"")
    with pytest.raises(InvalidGguf) as caught:
        read_header(path)
    caught.value.message.encode()
    assert "\n" not in caught.value.message


def test_a_file_that_shrinks_while_it_is_read_is_truncated():
    class Shrinking(Ranged):
        @property
        def size(self) -> int:
            return super().size + 10_000

    raw = tiny("llama").header()[:100]
    with pytest.raises(InvalidGguf) as caught:
        read_header(Shrinking(raw), "m")
    assert caught.value.details["fault"] == "truncated_header"


def test_262144_tokens_are_passed_without_building_their_strings(monkeypatch: pytest.MonkeyPatch):
    raw = big_vocabulary(262_144).build()
    taken: list[int] = []
    take = Cursor.take
    monkeypatch.setattr(Cursor, "take", lambda self, n, what: (taken.append(n), take(self, n, what))[1])
    header = read_header(raw)
    tokens = header.metadata["tokenizer.ggml.tokens"]
    assert isinstance(tokens, ArraySkipped) and tokens.count == 262_144
    assert header.text("tokenizer.chat_template") == "{{ messages }}"
    assert len(taken) < 100


def test_b01_the_header_of_gemma_is_read_without_its_vocabulary(gemma: Path, monkeypatch: pytest.MonkeyPatch):
    calls: list[str] = []
    take = Cursor.take
    monkeypatch.setattr(Cursor, "take", lambda self, n, what: (calls.append(what), take(self, n, what))[1])
    header = read_header(gemma)
    skipped = header.metadata["tokenizer.ggml.tokens"]
    assert isinstance(skipped, ArraySkipped) and skipped.count == 262_144
    assert len(calls) < 2_500
    monkeypatch.undo()
    tokens = read_skipped(gemma, skipped)
    assert (tokens[1], tokens[105], tokens[106]) == ("<eos>", "<start_of_turn>", "<end_of_turn>")
    header.check_loadable()


def test_a_file_of_the_gguf_package_is_read_as_it_was_written(tmp_path: Path):
    path = tmp_path / "theirs.gguf"
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_block_count(3)
    writer.add_array("a.floats", [0.5, 1.5])
    writer.add_token_list(["a", "한"])
    writer.add_tensor("x", np.arange(12, dtype=np.float32).reshape(3, 4))
    writer.add_tensor("y", np.zeros((2, 18), np.uint8), raw_dtype=gguf.GGMLQuantizationType.Q4_0)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    header = read_header(path)
    assert (header.architecture, header.integer("llama.block_count")) == ("llama", 3)
    assert header.metadata["a.floats"] == (0.5, 1.5)
    assert header.metadata["tokenizer.ggml.tokens"] == ("a", "한")
    assert [(t.name, t.shape, t.type.name, t.nbytes) for t in header.tensors] == [
        ("x", (4, 3), "F32", 48),
        ("y", (32, 2), "Q4_0", 36),
    ]
    data = path.read_bytes()[header.data_offset :]
    assert np.frombuffer(data[:48], np.float32).tolist() == list(range(12))


def test_a_raw_entry_is_read_as_the_specification_draws_it():
    raw = b"GGUF" + u32(3) + u64(0) + u64(1) + text("a") + u32(ValueType.UINT32) + u32(7)
    header = read_header(raw)
    assert (header.metadata, header.tensors, header.data_offset) == ({"a": 7}, (), len(raw))
