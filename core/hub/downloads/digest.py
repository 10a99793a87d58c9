"""The SHA-256 of a file that is still growing: of the bytes from its beginning, as far as they are there."""

import hashlib
import threading

from octavo.core.hub.downloads.part import Part, read_at

_PIECE = 1 << 20
_LOOK_EVERY_S = 0.05


class Digest:
    """Reads what was written, mostly from the page cache, and hashes it on a thread of its own.

    A hash can't be stored, so after a restart it begins with the first byte, beside the download.
    """

    def __init__(self, part: Part) -> None:
        self._part = part
        self._hash = hashlib.sha256()
        self._done = 0
        self._stop = threading.Event()
        self._fault: OSError | None = None
        self._thread = threading.Thread(target=self._run, name="digest", daemon=True)
        self._thread.start()

    @property
    def done_bytes(self) -> int:
        """How many bytes are hashed."""
        return self._done

    def close(self) -> None:
        """Stop hashing."""
        self._stop.set()
        self._thread.join()

    def result(self, timeout_s: float) -> str | None:
        """Give the hex digest once all is hashed, None after the timeout; raises ``OSError`` of the disk."""
        self._thread.join(timeout_s)
        if self._fault is not None:
            raise self._fault
        return self._hash.hexdigest() if self._done == self._part.size else None

    def _run(self) -> None:
        try:
            while self._done < self._part.size and not self._stop.is_set():
                there = self._part.prefix
                if there - self._done < min(_PIECE, self._part.size - self._done):
                    self._stop.wait(_LOOK_EVERY_S)
                    continue
                piece = read_at(self._part.file, min(_PIECE, there - self._done), self._done)
                if not piece:
                    raise OSError(5, "the part file is shorter than what was written to it")
                self._hash.update(piece)
                self._done += len(piece)
        except OSError as fault:
            self._fault = fault
