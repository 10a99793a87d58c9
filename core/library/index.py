"""What a scan remembers of files between starts: a header is read once and known by path, size and time."""

import logging
import os
from contextlib import suppress
from pathlib import Path

import msgspec

from octavo.core.errors import ErrorReport
from octavo.core.gguf import Description

_log = logging.getLogger(__name__)
_FORMAT = 4

Key = tuple[bytes, int, int]
"""Path as the bytes that the file system uses, size, and stamp of the time of change."""


class Entry(msgspec.Struct, frozen=True, array_like=True):
    """A remembered file or split model, as ``Found``; ``files`` is empty where there is but ``path``.

    With ``path`` and ``place`` it is enough to show the row while its drive is unplugged.
    """

    path: bytes
    size_bytes: int
    stamp: int
    description: Description | None
    fault: ErrorReport | None
    modified_ns: int
    files: list[bytes] = []
    place: tuple[str, str] | None = None
    projector: bytes | None = None

    @property
    def key(self) -> Key:
        """What the file is known by."""
        return self.path, self.size_bytes, self.stamp


class _Saved(msgspec.Struct, frozen=True):
    format: int
    entries: list[Entry]
    devices: dict[bytes, int] = {}


class Index:
    """The remembered files, kept in one file; ``devices`` are the drives that the roots were seen on.

    A damaged file is set aside and built anew; one that can't be written costs time, never an error.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.devices: dict[bytes, int] = {}

    def load(self) -> dict[Key, Entry]:
        """Read what is remembered; nothing where there is no sound index."""
        try:
            saved = msgspec.msgpack.decode(self._path.read_bytes(), type=_Saved)
        except FileNotFoundError:
            return {}
        except OSError as error:
            _log.warning("the model index can't be read: %s", error)
            return {}
        except (msgspec.DecodeError, ValueError) as error:
            self._judge(error)
            return {}
        if saved.format != _FORMAT:
            return {}
        self.devices = dict(saved.devices)
        return {entry.key: entry for entry in saved.entries}

    def save(self, entries: dict[Key, Entry]) -> None:
        """Replace the file, whole."""
        temporary = self._path.with_name(f".{self._path.name}.{os.getpid()}.part")
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with open(temporary, "wb") as file:
                saved = _Saved(_FORMAT, list(entries.values()), self.devices)
                file.write(msgspec.msgpack.encode(saved))
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, self._path)
        except OSError as error:
            _log.warning("the model index can't be saved: %s", error)
            with suppress(OSError):
                temporary.unlink()

    def exists(self) -> bool:
        """Tell whether there is a file."""
        return self._path.exists()

    def _judge(self, error: Exception) -> None:
        """Drop the index of another version without a word, and set a damaged one aside."""
        try:
            if msgspec.msgpack.decode(self._path.read_bytes(), type=_Version).format != _FORMAT:
                return
        except (OSError, msgspec.DecodeError, ValueError):
            pass
        aside = self._path.with_name(self._path.name + ".damaged")
        _log.warning("the model index is damaged (%s); it is set aside as %s", error, aside.name)
        try:
            os.replace(self._path, aside)
        except OSError as failed:
            _log.warning("the damaged model index can't be moved: %s", failed)


class _Version(msgspec.Struct):
    format: int
