"""What survives a crash of the service: each download's wish and state, a small file each."""

import logging
import re
from pathlib import Path

import msgspec

from octavo.core.config.settings import write_atomically
from octavo.core.errors import StorageFailed
from octavo.core.hub.types import Download

_NAME = re.compile(r"[0-9a-f]{12}\.json")

_log = logging.getLogger(__name__)


class Records:
    """The records of one home. A token is never in them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def read_all(self) -> list[Download]:
        """Read all sound records, the oldest download first; what can't be read is left where it is."""
        found = []
        for path in sorted(self._folder.glob("*.json")):
            if not _NAME.fullmatch(path.name):
                continue
            try:
                found.append(msgspec.json.decode(path.read_bytes(), type=Download))
            except (OSError, msgspec.DecodeError) as fault:
                _log.warning("the record %s can't be read: %s", path.name, fault)
        return sorted(found, key=lambda download: download.added_at)

    def save(self, download: Download) -> None:
        """Write a record; on a full disk the download goes on without."""
        try:
            write_atomically(self._folder / f"{download.id}.json", msgspec.json.encode(download))
        except StorageFailed as error:
            _log.warning("%s", error)

    def remove(self, id: str) -> None:
        """Forget a download."""
        try:
            (self._folder / f"{id}.json").unlink(missing_ok=True)
        except OSError as fault:
            _log.warning("the record of %s can't be removed: %s", id, fault)
