"""The key-value part of a GGUF header, read within a fixed budget of memory.

Source: GGUF specification, ``gguf_metadata_value_type``; what is refused is what ``ggml/src/gguf.cpp``
refuses, nested arrays included. Long arrays (a vocabulary) and long strings are remembered by place only.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum

from octavo.core.gguf.cursor import HEADER_LIMIT, ByteSource, Cursor

LONGEST_KEPT_ARRAY = 1024
"""Items; per-layer arrays are shorter, vocabularies are longer."""

LONGEST_KEPT_STRING = 1 << 20
"""Bytes; chat templates are shorter, an embedded ``tokenizer.json`` is longer."""

_MOST_PAIRS = 16_384
_LONGEST_KEY = 65_535
_KEPT_BUDGET = 16 << 20
# the largest vocabulary known (262,144 tokens) comes with 514,000 merges
_STRINGS_BUDGET = 2 << 20
_SMALLEST_PAIR = 8 + 1 + 4 + 1


class ValueType(IntEnum):
    """The type codes of metadata values."""

    UINT8 = 0
    INT8 = 1
    UINT16 = 2
    INT16 = 3
    UINT32 = 4
    INT32 = 5
    FLOAT32 = 6
    BOOL = 7
    STRING = 8
    ARRAY = 9
    UINT64 = 10
    INT64 = 11
    FLOAT64 = 12


_LETTERS = {
    ValueType.UINT8: "B",
    ValueType.INT8: "b",
    ValueType.UINT16: "H",
    ValueType.INT16: "h",
    ValueType.UINT32: "I",
    ValueType.INT32: "i",
    ValueType.FLOAT32: "f",
    # any byte but 0 is true, as in gguf.cpp
    ValueType.BOOL: "?",
    ValueType.UINT64: "Q",
    ValueType.INT64: "q",
    ValueType.FLOAT64: "d",
}
_SIZES = {kind: struct.calcsize(f"<{letter}") for kind, letter in _LETTERS.items()}


@dataclass(frozen=True, slots=True)
class ArraySkipped:
    """An array that was left in the file: ``count`` items, the first at ``offset`` bytes from its start."""

    element_type: ValueType
    count: int
    offset: int


@dataclass(frozen=True, slots=True)
class StringSkipped:
    """A string that was left in the file: ``length`` bytes at ``offset``."""

    length: int
    offset: int


Scalar = int | float | bool | str
Value = Scalar | tuple[Scalar, ...] | ArraySkipped | StringSkipped


def read_pairs(cursor: Cursor, count: int) -> tuple[dict[str, Value], dict[str, ValueType]]:
    """Read ``count`` pairs: the values, and the type code of each (an array's is ``ARRAY``)."""
    _check_count(cursor, count)
    reader = _PairReader(cursor)
    for _ in range(count):
        reader.read()
    return reader.values, reader.types


def read_array(source: ByteSource, skipped: ArraySkipped, name: str = "GGUF") -> Iterator[Scalar]:
    """Give the items of an array that the header left in the file, for instance ``tokenizer.ggml.tokens``."""
    cursor = Cursor(source, name)
    cursor.jump(skipped.offset)
    if skipped.element_type is ValueType.STRING:
        return (cursor.text("an array's string") for _ in range(skipped.count))
    return _numbers(cursor, skipped.element_type, skipped.count)


def _numbers(cursor: Cursor, kind: ValueType, count: int) -> Iterator[Scalar]:
    while count:
        batch = min(count, 65_536)
        yield from struct.unpack(f"<{batch}{_LETTERS[kind]}", cursor.take(batch * _SIZES[kind], "an array"))
        count -= batch


def _check_count(cursor: Cursor, count: int) -> None:
    if count > _MOST_PAIRS:
        raise cursor.fault(
            "too_many_pairs", f"it claims {count:,} metadata entries; the limit is {_MOST_PAIRS:,}"
        )
    cursor.require(count * _SMALLEST_PAIR, "the metadata")


class _PairReader:
    """Reads pair after pair, keeping what they take in memory under a budget."""

    def __init__(self, cursor: Cursor) -> None:
        self.values: dict[str, Value] = {}
        self.types: dict[str, ValueType] = {}
        self._cursor = cursor
        self._kept = 0
        self._walked = 0

    def read(self) -> None:
        key = self._key()
        kind = self._type(key)
        self.types[key] = kind
        self.values[key] = self._value(key, kind)

    def _key(self) -> str:
        length = self._cursor.u64("the length of a key")
        if length == 0:
            raise self._cursor.fault("empty_key", "a metadata key is empty")
        if length > _LONGEST_KEY:
            raise self._cursor.fault(
                "key_too_long", f"a metadata key claims {length:,} bytes; the limit is {_LONGEST_KEY:,}"
            )
        if not self._keep(4 * length):
            raise self._cursor.fault("metadata_too_large", "its metadata keys take too much memory")
        key = self._cursor.take(length, "a key").decode("utf-8", "replace")
        if key in self.values:
            raise self._cursor.fault("duplicate_key", f"the metadata key {key[:80]!r} is there twice")
        return key

    def _type(self, key: str) -> ValueType:
        code = self._cursor.u32(key)
        if code > max(ValueType):
            raise self._cursor.fault(
                "unknown_value_type", f"the metadata key {key[:80]!r} has the unknown type {code}"
            )
        return ValueType(code)

    def _value(self, key: str, kind: ValueType) -> Value:
        match kind:
            case ValueType.STRING:
                return self._string(key)
            case ValueType.ARRAY:
                return self._array(key)
            case _:
                return self._scalars(kind, 1, key)[0]

    def _string(self, key: str) -> str | StringSkipped:
        length = self._cursor.u64(key)
        self._cursor.require(length, key)
        if length <= LONGEST_KEPT_STRING and self._keep(4 * length):
            return self._cursor.take(length, key).decode("utf-8", "replace")
        place = self._cursor.offset
        self._cursor.skip(length, key)
        return StringSkipped(length, place)

    def _array(self, key: str) -> tuple[Scalar, ...] | ArraySkipped:
        kind = self._type(key)
        count = self._cursor.u64(key)
        if kind is ValueType.ARRAY:
            raise self._cursor.fault(
                "nested_array", f"{key[:80]!r} is an array of arrays, which llama.cpp can't read"
            )
        # a string takes at least the 8 bytes of its length
        size = count * _SIZES.get(kind, 8)
        if size > HEADER_LIMIT:
            raise self._cursor.fault(
                "array_too_long", f"{key[:80]!r} claims {count:,} items, more than a header can hold"
            )
        self._cursor.require(size, key)
        return self._strings(key, count) if kind is ValueType.STRING else self._packed(key, kind, count)

    def _packed(self, key: str, kind: ValueType, count: int) -> tuple[Scalar, ...] | ArraySkipped:
        if count <= LONGEST_KEPT_ARRAY and self._keep(64 * count):
            return self._scalars(kind, count, key)
        skipped = ArraySkipped(kind, count, self._cursor.offset)
        self._cursor.skip(count * _SIZES[kind], key)
        return skipped

    def _strings(self, key: str, count: int) -> tuple[str, ...] | ArraySkipped:
        self._walked += count
        if self._walked > _STRINGS_BUDGET:
            raise self._cursor.fault(
                "array_too_long", f"its arrays hold more than {_STRINGS_BUDGET:,} strings, at {key[:80]!r}"
            )
        start = self._cursor.offset
        self._cursor.skip_strings(count, key)
        length = self._cursor.offset - start
        if (
            count > LONGEST_KEPT_ARRAY
            or length > LONGEST_KEPT_STRING
            or not self._keep(64 * count + 4 * length)
        ):
            return ArraySkipped(ValueType.STRING, count, start)
        end = self._cursor.offset
        self._cursor.jump(start)
        return tuple(self._cursor.text(key) for _ in range(count)) if self._cursor.offset < end else ()

    def _scalars(self, kind: ValueType, count: int, key: str) -> tuple[Scalar, ...]:
        packed = self._cursor.take(count * _SIZES[kind], key)
        return struct.unpack(f"<{count}{_LETTERS[kind]}", packed)

    def _keep(self, size: int) -> bool:
        """Charge ``size`` bytes (as Python objects take them) to the budget; false when it is spent."""
        if self._kept + size > _KEPT_BUDGET:
            return False
        self._kept += size
        return True
