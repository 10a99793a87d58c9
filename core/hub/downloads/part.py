"""A file while it is being downloaded: all its blocks, and behind them a journal of what is durable.

The journal has two slots that are written in turn, each with a number and a checksum, so that one is always
sound. A checkpoint first brings the data to the disk and only then writes the ranges: what a journal names is
there, also after a power cut. Being one file, part and journal can't be separated or mixed up.
"""

import os
import struct
import threading
import zlib
from pathlib import Path
from typing import Self

import msgspec

from octavo.core.hub.downloads.locks import try_lock
from octavo.core.hub.downloads.ranges import Ranges
from octavo.core.hub.downloads.space import reserve_blocks

SLOT_BYTES = 16 * 1024
_MAGIC = b"octavo1\n"
_HEAD = struct.Struct("<8sQII")  # magic, number of the entry, length of the body, the CRC-32 of both
_MOST_SPANS = 400


class Entry(msgspec.Struct, kw_only=True):
    """What the journal says; ``spans`` are durable. ``etag`` is of the origin that sent the bytes."""

    size: int
    spans: list[tuple[int, int]] = []
    etag: str | None = None
    linked_etag: str | None = None
    sha256: str | None = None
    is_verified: bool = False


class Part:
    """The part file of one target; only who holds its lock has a ``Part``."""

    def __init__(self, path: Path, file: int, size: int) -> None:
        self.path = path
        self.size = size
        self.file = file
        self._number = 0
        self._lock = threading.Lock()
        self.entry = self._read() or Entry(size=size)
        self._written = Ranges(self.entry.spans)
        self._durable_bytes = self._written.total

    @classmethod
    def open(cls, path: Path, size: int) -> Self | None:
        """Open or make the part file; None while another process has it."""
        path.parent.mkdir(parents=True, exist_ok=True)
        flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
        file = os.open(path, flags | getattr(os, "O_NOFOLLOW", 0), 0o666)
        # it may have got its final name, or have been removed, between opening and locking
        if try_lock(file) and path.exists() and os.path.samestat(os.fstat(file), path.stat()):
            return cls(path, file, size)
        os.close(file)
        return None

    # ---- what is there

    @property
    def done_bytes(self) -> int:
        """How many bytes were written, durable or not."""
        with self._lock:
            return self._written.total

    @property
    def unsaved_bytes(self) -> int:
        """How many bytes would be lost now."""
        with self._lock:
            return self._written.total - self._durable_bytes

    @property
    def prefix(self) -> int:
        """How many bytes are there without a gap."""
        with self._lock:
            return self._written.prefix

    @property
    def is_whole(self) -> bool:
        """Tell whether all bytes are there."""
        return self.prefix == self.size

    @property
    def missing_blocks(self) -> int:
        """How many bytes of the disk it still needs."""
        taken = getattr(os.fstat(self.file), "st_blocks", 0) * 512
        return max(self.size + 2 * SLOT_BYTES - taken, 0)

    def ranges(self) -> Ranges:
        """Give what was written."""
        with self._lock:
            return self._written.copy()

    # ---- changes

    def reserve(self) -> None:
        """Take all blocks on the disk; raises ``OSError`` where they aren't there."""
        if os.fstat(self.file).st_size != self.size + 2 * SLOT_BYTES or self.missing_blocks:
            os.truncate(self.file, self.size + 2 * SLOT_BYTES)
            reserve_blocks(self.file, self.size + 2 * SLOT_BYTES)
            self.checkpoint()

    def write(self, offset: int, view: memoryview) -> None:
        """Write bytes at their place."""
        at = offset
        while view:
            count = _write_at(self.file, view, at)
            at += count
            view = view[count:]
        with self._lock:
            self._written.add(offset, at)

    def checkpoint(self) -> None:
        """Make durable what was written, then say so in the journal."""
        written = self.ranges()
        _flush(self.file)
        # beyond what a slot holds, forgetting some only means fetching them again
        self.entry.spans = list(written)[:_MOST_SPANS]
        body = msgspec.json.encode(self.entry)
        self._number += 1
        head = _HEAD.pack(_MAGIC, self._number, len(body), _checksum(self._number, body))
        _write_at(self.file, memoryview(head + body), self.size + self._number % 2 * SLOT_BYTES)
        with self._lock:
            self._durable_bytes = written.total

    def restart(self, entry: Entry) -> None:
        """Forget all bytes: those that will come are others."""
        with self._lock:
            self._written, self._durable_bytes = Ranges(), 0
        self.entry = entry
        self.checkpoint()

    def publish(self, target: Path) -> None:
        """Cut the journal off and give the file its name; it is durable before."""
        os.truncate(self.file, self.size)
        os.fsync(self.file)
        os.rename(self.path, target)
        _sync_folder(target.parent)

    def remove(self) -> None:
        """Delete the part file; all that had come is gone."""
        with self._lock:
            self._written, self._durable_bytes = Ranges(), 0
        self.path.unlink(missing_ok=True)

    def close(self) -> None:
        """Let go of the file."""
        if self.file >= 0:
            os.close(self.file)
            self.file = -1

    def _read(self) -> Entry | None:
        status = os.fstat(self.file)
        if status.st_size == self.size > 0:
            # publishing was cut short after the journal was cut off: all is there, and is hashed once more
            return Entry(size=self.size, spans=[(0, self.size)])
        found = [slot for number in (0, 1) if (slot := self._slot(number)) is not None]
        if not found or status.st_size != self.size + 2 * SLOT_BYTES:
            return None
        self._number, entry = max(found, key=lambda slot: slot[0])
        return entry

    def _slot(self, number: int) -> tuple[int, Entry] | None:
        data = _read_at(self.file, SLOT_BYTES, self.size + number * SLOT_BYTES)
        if len(data) < _HEAD.size:
            return None
        magic, order, length, checksum = _HEAD.unpack_from(data)
        body = data[_HEAD.size : _HEAD.size + length]
        if magic != _MAGIC or len(body) != length or _checksum(order, body) != checksum:
            return None
        try:
            entry = msgspec.json.decode(body, type=Entry)
        except msgspec.DecodeError:
            return None
        spans = Ranges(entry.spans)
        is_sound = entry.size == self.size and all(0 <= start < end <= self.size for start, end in spans)
        return (order, entry) if is_sound else None


def _checksum(number: int, body: bytes) -> int:
    return zlib.crc32(body, number & 0xFFFFFFFF)


def done_bytes_at(path: Path, size: int) -> int:
    """Read how many bytes of a part file are durable, whoever writes it; 0 where there is none."""
    try:
        file = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
    except OSError:
        return 0
    part = Part(path, file, size)
    part.close()
    return part.done_bytes


if hasattr(os, "pwrite"):

    def _write_at(file: int, data: memoryview, offset: int) -> int:
        return os.pwrite(file, data, offset)

    def _read_at(file: int, length: int, offset: int) -> bytes:
        return os.pread(file, length, offset)

else:  # Windows: one place in the file for all, so one at a time
    _seeking = threading.Lock()

    def _write_at(file: int, data: memoryview, offset: int) -> int:
        with _seeking:
            os.lseek(file, offset, os.SEEK_SET)
            return os.write(file, data)

    def _read_at(file: int, length: int, offset: int) -> bytes:
        with _seeking:
            os.lseek(file, offset, os.SEEK_SET)
            return os.read(file, length)


read_at = _read_at
_flush = getattr(os, "fdatasync", os.fsync)


def _sync_folder(folder: Path) -> None:
    if os.name != "nt":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
