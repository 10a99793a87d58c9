"""The table of tensor types against the engine's own."""

import ctypes
from pathlib import Path

import pytest

from octavo.core.gguf import FILE_TYPES, TENSOR_TYPES
from octavo.core.gguf.quants import REMOVED_TENSOR_TYPES


@pytest.fixture(scope="module")
def ggml() -> ctypes.CDLL:
    """ggml as llama-cpp-python ships it."""
    import llama_cpp

    folder = Path(llama_cpp.__file__).parent / "lib"
    library = ctypes.CDLL(str(next(path for path in folder.iterdir() if "ggml-base" in path.name)))
    library.ggml_type_size.restype = ctypes.c_size_t
    library.ggml_blck_size.restype = ctypes.c_int64
    library.ggml_type_name.restype = ctypes.c_char_p
    return library


def test_names_and_sizes_are_those_of_the_engine(ggml: ctypes.CDLL):
    for code, kind in TENSOR_TYPES.items():
        assert ggml.ggml_type_size(code) == kind.block_bytes, kind
        assert ggml.ggml_blck_size(code) == kind.block_size, kind
        assert ggml.ggml_type_name(code).decode().upper() == kind.name


def test_every_code_is_known_or_known_to_be_removed():
    known = TENSOR_TYPES.keys() | REMOVED_TENSOR_TYPES.keys()
    assert known == set(range(max(TENSOR_TYPES) + 1))


def test_bits_per_weight_count_the_scales():
    by_name = {kind.name: kind.bits_per_weight for kind in TENSOR_TYPES.values()}
    assert (by_name["F16"], by_name["Q4_0"], by_name["Q8_0"], by_name["Q4_K"]) == (16.0, 4.5, 8.5, 4.5)


def test_file_types_are_those_of_the_gguf_package():
    import gguf

    theirs = {
        int(kind): kind.name.removeprefix("MOSTLY_").removeprefix("ALL_") for kind in gguf.LlamaFileType
    }
    del theirs[1024]
    assert {code: FILE_TYPES[code] for code in theirs} == theirs
