"""Read the header of a GGUF file: magic, version, metadata and tensor table, and say what is wrong with it.

Versions 2 and 3 are read (GGUF specification: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md).
Whatever the bytes are, reading ends within a second and a few dozen MB: counts and lengths are checked before
they are believed, and long arrays stay in the file. Every refusal is ``InvalidGguf`` with a ``fault`` slug; a
file that can't be opened is ``UnreadableFile``.
"""

import io
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from octavo.core.errors import InvalidGguf, UnreadableFile
from octavo.core.gguf.cursor import ByteSource, Cursor, printable
from octavo.core.gguf.metadata import ArraySkipped, Scalar, Value, ValueType, read_array, read_pairs
from octavo.core.gguf.signature import check_signature
from octavo.core.gguf.tensors import Tensor, padded, read_tensors

DEFAULT_ALIGNMENT = 32
"""Bytes, where ``general.alignment`` is absent."""


@dataclass(frozen=True, slots=True)
class Part:
    """One file of a model: where its tensors' data begins, how long it is, and must be when whole (bytes)."""

    name: str
    path: Path | None
    data_offset: int
    file_size: int
    complete_size: int


@dataclass(frozen=True, slots=True)
class Header:
    """What a GGUF file says about itself; sizes and places in bytes.

    ``path`` is None for a header that came from memory or over the network; ``name`` is for messages. A model
    split over several files (``shards.joined``) has ``parts``; its ``file_size`` is their sum, the rest is
    part 1's, and the data of a tensor begins at ``files[tensor.file].data_offset + tensor.offset``.
    """

    name: str
    path: Path | None
    version: int
    metadata: dict[str, Value] = field(repr=False)
    tensors: tuple[Tensor, ...] = field(repr=False)
    alignment: int
    data_offset: int
    file_size: int
    parts: tuple[Part, ...] = field(default=(), repr=False)

    def text(self, key: str) -> str | None:
        """Give the string at ``key``; None when it is absent or something else."""
        value = self.metadata.get(key)
        return value if isinstance(value, str) else None

    def integer(self, key: str) -> int | None:
        """Give the whole number at ``key``; None when it is absent or something else."""
        value = self.metadata.get(key)
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    def number(self, key: str) -> float | None:
        """Give the number at ``key``; None when it is absent or something else."""
        value = self.metadata.get(key)
        return value if isinstance(value, int | float) and not isinstance(value, bool) else None

    @property
    def architecture(self) -> str | None:
        """``general.architecture``: the prefix of the model's own keys."""
        return self.text("general.architecture") or None

    @property
    def tensor_bytes(self) -> int:
        """What the tensors take, padding between them not counted."""
        return sum(tensor.nbytes for tensor in self.tensors)

    @property
    def complete_size(self) -> int:
        """The smallest size that a whole file with this header can have; of a split model, all its files."""
        if self.parts:
            return sum(part.complete_size for part in self.parts)
        last = self.tensors[-1] if self.tensors else None
        return self.data_offset + last.offset + last.nbytes if last else self.data_offset

    @property
    def files(self) -> tuple[Part, ...]:
        """The files that the tensors lie in, by ``Tensor.file``."""
        alone = Part(self.name, self.path, self.data_offset, self.file_size, self.complete_size)
        return self.parts or (alone,)

    @property
    def shard(self) -> tuple[int, int] | None:
        """(number from 0, count) for one part of a split model, else None."""
        number, count = self.integer("split.no"), self.integer("split.count")
        return (number or 0, count) if count is not None and count > 1 else None

    @property
    def kind(self) -> str:
        """``model``, ``shard`` (a later part), ``vocabulary``, ``projector``, ``adapter`` or ``imatrix``."""
        stated = _STATED_KINDS.get(self.text("general.type") or "")
        if stated or self.architecture == "clip":
            return stated or "projector"
        if self.shard:
            return "shard" if self.shard[0] else "model"
        return "vocabulary" if not self.tensors and self._has_tokens else "model"

    @property
    def _has_tokens(self) -> bool:
        return any(key.startswith("tokenizer.") for key in self.metadata)

    def check_complete(self, file_size: int | None = None) -> None:
        """Raise ``InvalidGguf`` (``truncated_data``; details: ``missing_bytes``) for a file cut short.

        ``file_size`` (bytes) stands for a size known otherwise; of a split model each file is looked at.
        """
        for part in self.files:
            known = part.file_size if file_size is None or self.parts else file_size
            if known < part.complete_size:
                raise _cut_short(part, part.complete_size - known)

    def check_loadable(self, file_size: int | None = None) -> None:
        """Raise ``InvalidGguf`` for a file that the engine can't load as a model; ``file_size`` in bytes.

        Faults: ``truncated_data``, ``not_a_model`` (projector, adapter, importance matrix, later shard),
        ``no_tensors``, ``no_architecture``.
        """
        if self.kind in _NOT_MODELS:
            self._refuse(
                "not_a_model",
                f"is {_NOT_MODELS[self.kind]}, not a model",
                "It belongs to a model; load that one.",
            )
        if not self.tensors and not self.shard:
            self._refuse(
                "no_tensors", "holds a vocabulary or metadata only, no weights", "Get the model's own file."
            )
        self._check_architecture()
        self.check_complete(file_size)

    def _check_architecture(self) -> None:
        if not self.architecture:
            self._refuse(
                "no_architecture", "doesn't name its architecture (general.architecture)", "Get another file."
            )
        if "\ufffd" in (self.architecture or ""):
            self._refuse(
                "no_architecture", "names an architecture that is no text (not UTF-8)", "Get another file."
            )

    def _refuse(self, fault: str, message: str, hint: str) -> None:
        raise InvalidGguf(
            f"{os.path.basename(self.name)} {message}.",
            hint=hint,
            path=self.name,
            fault=fault,
            offset=self.data_offset,
        )


def _cut_short(part: Part, missing: int) -> InvalidGguf:
    return InvalidGguf(
        f"{os.path.basename(part.name)} is incomplete: {missing:,} of {part.complete_size:,} bytes "
        "are missing.",
        hint="The download or copy did not finish. Resume it or do it again.",
        path=part.name,
        fault="truncated_data",
        missing_bytes=missing,
        offset=part.complete_size - missing,
    )


_STATED_KINDS = {"mmproj": "projector", "adapter": "adapter", "imatrix": "imatrix"}
_NOT_MODELS = {
    "projector": "a projector (mmproj)",
    "adapter": "an adapter (LoRA)",
    "imatrix": "an importance matrix",
    "shard": "a later part of a split model",
}


def read_header(source: Path | str | bytes | ByteSource, name: str = "") -> Header:
    """Read a header from a file, from bytes or from anything that can seek and read ranges.

    ``name`` stands for the source in messages. Raises ``InvalidGguf`` and ``UnreadableFile``.
    """
    if isinstance(source, Path | str):
        with open_source(source) as opened:
            return _parse(Cursor(opened, printable(source)), Path(source))
    if isinstance(source, bytes):
        source = BytesSource(source)
    return _parse(Cursor(source, name or "GGUF"), None)


def read_skipped(source: Path | str, skipped: ArraySkipped) -> list[Scalar]:
    """Read an array that ``read_header`` left in the file, all of it into memory."""
    with open_source(source) as opened:
        return list(read_array(opened, skipped, printable(source)))


class BytesSource(io.BytesIO):
    """Bytes in memory as a source."""

    @property
    def size(self) -> int:
        """Length in bytes."""
        return len(self.getbuffer())


class FileSource:
    """An open file as a source; it doesn't buffer, since ``Cursor`` does."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._offset = 0
        self.size = os.fstat(descriptor).st_size

    def seek(self, offset: int) -> None:
        """Make ``offset`` the next byte to be read."""
        self._offset = offset

    def read(self, count: int) -> bytes:
        """Give at most ``count`` bytes."""
        os.lseek(self._descriptor, self._offset, os.SEEK_SET)
        data = os.read(self._descriptor, count)
        self._offset += len(data)
        return data


@contextmanager
def open_source(path: Path | str) -> Iterator[FileSource]:
    """Open a regular file for reading; pipes and devices are refused without waiting for them."""
    try:
        # without O_NONBLOCK, opening a FIFO that nobody writes to would wait for ever
        flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
        descriptor = os.open(path, flags)
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from error
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise UnreadableFile(f"{printable(path)} is not a regular file.", path=printable(path))
        yield FileSource(descriptor)
    finally:
        os.close(descriptor)


def _unreadable(path: Path | str, error: Exception) -> UnreadableFile:
    reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
    return UnreadableFile(f"{printable(path)} can't be opened: {reason}.", path=printable(path))


def _parse(cursor: Cursor, path: Path | None) -> Header:
    version = check_signature(cursor)
    tensor_count, pair_count = cursor.u64("the tensor count"), cursor.u64("the metadata count")
    metadata, types = read_pairs(cursor, pair_count)
    alignment = _alignment(cursor, metadata, types)
    tensors = read_tensors(cursor, tensor_count, alignment)
    data_offset = padded(cursor.offset, alignment) if tensors else cursor.offset
    return Header(cursor.name, path, version, metadata, tensors, alignment, data_offset, cursor.file_size)


def _alignment(cursor: Cursor, metadata: dict[str, Value], types: dict[str, ValueType]) -> int:
    value = metadata.get("general.alignment", DEFAULT_ALIGNMENT)
    if types.get("general.alignment", ValueType.UINT32) is not ValueType.UINT32 or not isinstance(value, int):
        raise cursor.fault("bad_alignment", "general.alignment is no unsigned 32-bit number")
    if value < 8 or value & (value - 1):
        raise cursor.fault(
            "bad_alignment", f"general.alignment is {value}; it must be a power of two from 8 on"
        )
    return value
