"""Bounds-checked, sequential reading of GGUF primitives from anything that can seek and read.

Every length is compared with what is left of the file before a byte is allocated for it. Numbers are
little-endian; a string is a 64-bit length and that many bytes of UTF-8 (GGUF specification, "File
Structure").
"""

import os
import struct
from typing import Protocol

from octavo.core.errors import InvalidGguf, UnreadableFile

HEADER_LIMIT = 256 << 20
"""Bytes that a header may span before it is called hostile. The largest honest ones take about 30 MB."""

_CHUNK = 1 << 20
_U32 = struct.Struct("<I")
_U64 = struct.Struct("<Q")


class ByteSource(Protocol):
    """A file, or a remote file read by ranges: ``size`` bytes, ``seek`` to one, ``read`` the next ones.

    ``read`` may return fewer bytes than asked; it returns none only at the end.
    """

    @property
    def size(self) -> int:
        """Total length in bytes."""

    def seek(self, offset: int, /) -> object:
        """Make ``offset`` (bytes from the start) the next byte to be read."""

    def read(self, count: int, /) -> bytes:
        """Give at most ``count`` bytes."""


def printable(name: str | os.PathLike[str]) -> str:
    """Give a file name on one line and in valid UTF-8, for messages, logs and ids.

    Control characters and bytes that are no UTF-8 become U+FFFD.
    """
    # surrogates stand for undecodable bytes in Python's names and are not printable; the joiner makes emoji
    return "".join(c if c.isprintable() or c == "\u200d" else "\ufffd" for c in os.fspath(name))


class Cursor:
    """A place in a GGUF file, with typed reads that name the file and the fault when they can't be met."""

    def __init__(self, source: ByteSource, name: str) -> None:
        self.name = name
        self.file_size = source.size
        self._end = min(source.size, HEADER_LIMIT)
        self._source = source
        self._buffer = b""
        self._start = 0
        self._at = 0

    @property
    def offset(self) -> int:
        """Bytes from the start of the file to the next one."""
        return self._start + self._at

    @property
    def remaining(self) -> int:
        """Bytes that a header may still take."""
        return self._end - self.offset

    def fault(self, fault: str, message: str, hint: str = "") -> InvalidGguf:
        """Make the error that names the file, the ``fault`` (a stable slug) and this place."""
        return InvalidGguf(
            f"{os.path.basename(self.name) or self.name}: {message}",
            hint=hint or "Download or copy the file again.",
            path=self.name,
            fault=fault,
            offset=self.offset,
        )

    def peek(self, count: int) -> bytes:
        """Give up to ``count`` of the next bytes without moving; fewer at the file's end."""
        self._fill(min(count, self.remaining))
        return self._buffer[self._at : self._at + count]

    def take(self, count: int, what: str) -> bytes:
        """Read ``count`` bytes; ``what`` names them in the error."""
        self.require(count, what)
        self._fill(count)
        self._at += count
        return self._buffer[self._at - count : self._at]

    def u32(self, what: str) -> int:
        """Read an unsigned 32-bit number."""
        return int(_U32.unpack(self.take(4, what))[0])

    def u64(self, what: str) -> int:
        """Read an unsigned 64-bit number."""
        return int(_U64.unpack(self.take(8, what))[0])

    def text(self, what: str) -> str:
        """Read a string; bytes that are no UTF-8 become U+FFFD."""
        return self.take(self.u64(what), what).decode("utf-8", "replace")

    def skip(self, count: int, what: str) -> None:
        """Move ``count`` bytes on without reading them."""
        self.require(count, what)
        self.jump(self.offset + count)

    def jump(self, offset: int) -> None:
        """Go to ``offset`` (bytes from the start), inside the buffer where that holds it."""
        self._at = offset - self._start
        if not 0 <= self._at <= len(self._buffer):
            self._start, self._at, self._buffer = offset, 0, b""

    def skip_strings(self, count: int, what: str) -> None:
        """Walk past ``count`` strings by their lengths; no string is built.

        This is the loop that a vocabulary of 262,144 tokens goes through, so it works on the raw buffer.
        """
        length_at = _U64.unpack_from
        while count:
            self.require(8, what)
            self._fill(8)
            buffer, at, last = self._buffer, self._at, len(self._buffer) - 8
            while count and at <= last:
                at += 8 + length_at(buffer, at)[0]
                count -= 1
            self.skip(at - self._at, what)

    def require(self, count: int, what: str) -> None:
        """Raise unless ``count`` more bytes fit the file and the header limit."""
        if count <= self.remaining:
            return
        if self.offset + count > self.file_size:
            missing = self.offset + count - self.file_size
            raise self.fault(
                "truncated_header",
                f"the file ends inside its header: {what[:80]} reaches {missing:,} bytes past the end",
            )
        raise self.fault(
            "header_too_large", f"the header is larger than {HEADER_LIMIT >> 20} MB, at {what[:80]}"
        )

    def _fill(self, count: int) -> None:
        """Have at least ``count`` bytes in the buffer (or all that the source gives)."""
        if len(self._buffer) - self._at >= count:
            return
        parts, have = [self._buffer[self._at :]], len(self._buffer) - self._at
        try:
            self._source.seek(self.offset + have)
            while have < count and (
                part := self._source.read(min(max(_CHUNK, count - have), self.remaining - have))
            ):
                parts.append(part)
                have += len(part)
        except OSError as error:
            raise UnreadableFile(f"{self.name}: {error.strerror or error}", path=self.name) from error
        self._start, self._at, self._buffer = self.offset, 0, b"".join(parts)
        if have < count:
            raise self.fault("truncated_header", "the file became shorter while it was read")
