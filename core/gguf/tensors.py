"""The tensor table of a GGUF header: names, shapes, types and places, checked against each other.

Source: GGUF specification, ``gguf_tensor_info_t``; the demands are those of ``gguf_init_from_reader`` in
``ggml/src/gguf.cpp``: at most 4 dimensions, a known type, whole blocks in a row, tensors back to back.
"""

import math
import struct
from dataclasses import dataclass

from octavo.core.gguf.cursor import Cursor
from octavo.core.gguf.quants import REMOVED_TENSOR_TYPES, TENSOR_TYPES, TensorType

_MOST_TENSORS = 32_768
_MOST_DIMENSIONS = 4
_LONGEST_NAME = 63
_LARGEST_INT64 = (1 << 63) - 1
_SMALLEST_ENTRY = 8 + 4 + 4 + 8


@dataclass(frozen=True, slots=True)
class Tensor:
    """One tensor: ``shape`` with the fastest dimension first, ``offset`` bytes after the data's start.

    ``file`` is the place of its file in ``Header.files``: 0 but in a model split over several.
    """

    name: str
    shape: tuple[int, ...]
    type: TensorType
    offset: int
    nbytes: int
    file: int = 0

    @property
    def elements(self) -> int:
        """Number of weights."""
        return math.prod(self.shape)


def read_tensors(cursor: Cursor, count: int, alignment: int) -> tuple[Tensor, ...]:
    """Read the table; check that the tensors lie one after the other, each at a multiple of ``alignment``."""
    _check_count(cursor, count)
    seen: set[str] = set()
    tensors = []
    end = 0
    for _ in range(count):
        tensor = _read_tensor(cursor, seen)
        _check_place(cursor, tensor, end, alignment)
        end = padded(tensor.offset + tensor.nbytes, alignment)
        tensors.append(tensor)
    return tuple(tensors)


def padded(size: int, alignment: int) -> int:
    """Round ``size`` up to a multiple of ``alignment``."""
    return -(-size // alignment) * alignment


def _check_count(cursor: Cursor, count: int) -> None:
    if count > _MOST_TENSORS:
        raise cursor.fault("too_many_tensors", f"it claims {count:,} tensors; the limit is {_MOST_TENSORS:,}")
    cursor.require(count * _SMALLEST_ENTRY, "the tensor table")


def _read_tensor(cursor: Cursor, seen: set[str]) -> Tensor:
    name = _read_name(cursor, seen)
    shape = _read_shape(cursor, name)
    kind = _read_type(cursor, name)
    if shape and shape[0] % kind.block_size:
        raise cursor.fault(
            "tensor_block",
            f"tensor {name!r} has rows of {shape[0]:,} weights, "
            f"no multiple of {kind.name}'s block of {kind.block_size}",
        )
    elements = math.prod(shape)
    if elements % kind.block_size:
        raise cursor.fault(
            "tensor_block", f"tensor {name!r} has {elements} weights, less than one block of {kind.name}"
        )
    nbytes = elements // kind.block_size * kind.block_bytes
    if nbytes > _LARGEST_INT64:
        raise cursor.fault("tensor_too_large", f"tensor {name!r} claims {nbytes:,} bytes")
    return Tensor(name, shape, kind, cursor.u64("a tensor's place"), nbytes)


def _read_name(cursor: Cursor, seen: set[str]) -> str:
    length = cursor.u64("the length of a tensor's name")
    if length > _LONGEST_NAME:
        raise cursor.fault(
            "tensor_name_too_long", f"a tensor's name claims {length:,} bytes; the limit is {_LONGEST_NAME}"
        )
    name = cursor.take(length, "a tensor's name").decode("utf-8", "replace")
    if name in seen:
        raise cursor.fault("duplicate_tensor", f"the tensor {name!r} is there twice")
    seen.add(name)
    return name


def _read_shape(cursor: Cursor, name: str) -> tuple[int, ...]:
    dimensions = cursor.u32("a tensor's dimensions")
    if dimensions > _MOST_DIMENSIONS:
        raise cursor.fault(
            "too_many_dimensions", f"tensor {name!r} has {dimensions:,} dimensions; the limit is 4"
        )
    shape: tuple[int, ...] = struct.unpack(f"<{dimensions}Q", cursor.take(8 * dimensions, "a tensor's shape"))
    # without the zeros, so that a size that wraps round is not hidden behind one
    if math.prod(size for size in shape if size) > _LARGEST_INT64:
        raise cursor.fault(
            "tensor_too_large",
            f"tensor {name!r} has the shape {list(shape)}, more weights than 64 bits can count",
        )
    return shape


def _read_type(cursor: Cursor, name: str) -> TensorType:
    code = cursor.u32("a tensor's type")
    if kind := TENSOR_TYPES.get(code):
        return kind
    if removed := REMOVED_TENSOR_TYPES.get(code):
        raise cursor.fault(
            "removed_tensor_type",
            f"tensor {name!r} has the type {removed}, which llama.cpp no longer reads",
            "Get the same model in another quantisation.",
        )
    raise cursor.fault(
        "unknown_tensor_type",
        f"tensor {name!r} has the unknown type {code}; the file may be made by a newer tool",
        "Get another quantisation of the model, or a newer Octavo.",
    )


def _check_place(cursor: Cursor, tensor: Tensor, expected: int, alignment: int) -> None:
    if tensor.offset == expected:
        return
    place = f"tensor {tensor.name!r} is placed at {tensor.offset:,}"
    if tensor.offset % alignment:
        raise cursor.fault("tensor_misaligned", f"{place}, no multiple of {alignment}")
    if tensor.offset < expected:
        raise cursor.fault(
            "tensor_overlap", f"{place}, inside the tensor before it, which ends at {expected:,}"
        )
    if tensor.offset >= cursor.file_size:
        raise cursor.fault("tensor_out_of_file", f"{place}, outside the file")
    raise cursor.fault("tensor_gap", f"{place}, leaving a gap after {expected:,}, which llama.cpp can't read")
