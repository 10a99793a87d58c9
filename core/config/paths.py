"""Where Octavo keeps its state, all of it under one folder."""

import contextlib
import getpass
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from octavo.core.errors import StorageFailed

HOME_VARIABLE = "OCTAVO_HOME"

# sun_path holds 108 bytes on Linux and 104 on macOS, the closing zero included
SOCKET_PATH_LIMIT = 103


@dataclass(frozen=True, slots=True)
class Home:
    """The folder tree of one ``OCTAVO_HOME``; making a ``Home`` touches no disk."""

    root: Path

    @property
    def models(self) -> Path:
        """Models that Octavo owns: ``<publisher>/<model>/<file>.gguf``."""
        return self.root / "models"

    @property
    def database(self) -> Path:
        """Chats, and what else must survive, in SQLite."""
        return self.root / "octavo.db"

    @property
    def settings(self) -> Path:
        """The person's preferences."""
        return self.root / "settings.toml"

    @property
    def logs(self) -> Path:
        """Log files of the service and its workers."""
        return self.root / "logs"

    @property
    def run(self) -> Path:
        """The lock and, where its path is short enough, the control socket."""
        return self.root / "run"

    @property
    def cache(self) -> Path:
        """What can be computed again."""
        return self.root / "cache"

    @property
    def lock(self) -> Path:
        """Held by the one service of this home."""
        return self.run / "service.lock"

    @property
    def reserve(self) -> Path:
        """Room on the disk that is given up when a service starts on a full one."""
        return self.run / "reserve"

    @property
    def endpoint(self) -> Path:
        """Where the running service writes how its control door is reached."""
        return self.run / "service.json"

    @property
    def control_socket(self) -> Path:
        """The control door; under the runtime folder when the home's own path is too long for a socket."""
        direct = self.run / "control.sock"
        if len(os.fsencode(direct)) <= SOCKET_PATH_LIMIT:
            return direct
        return _runtime_folder() / f"octavo-{_short_digest(self.root)}" / "control.sock"

    def check(self) -> None:
        """Raise ``StorageFailed`` where no folder can be; one that isn't there yet is tried and not kept."""
        if self.root.is_dir():
            return
        try:
            made = _make_folders(self.root)
        except OSError as fault:
            raise self._unusable(fault) from fault
        for folder in reversed(made):
            with contextlib.suppress(OSError):  # another program has begun to use it
                folder.rmdir()

    def prepare(self) -> None:
        """Make the folders; ``run`` and the socket's folder are for this person only (0700).

        Raises ``StorageFailed`` where they can't be made.
        """
        try:
            for folder in (self.models, self.logs, self.cache):
                folder.mkdir(parents=True, exist_ok=True)
            for folder in (self.run, self.control_socket.parent):
                folder.mkdir(parents=True, exist_ok=True, mode=0o700)
                folder.chmod(0o700)
        except OSError as fault:
            raise self._unusable(fault) from fault

    def _unusable(self, fault: OSError) -> StorageFailed:
        named = f"{HOME_VARIABLE} names" if os.environ.get(HOME_VARIABLE) else "Octavo keeps its files in"
        return StorageFailed(
            f"{named} {ascii(str(self.root))[1:-1]}, which can't be used as a folder: {fault.strerror}.",
            hint=f"Set {HOME_VARIABLE} to a folder that can be written.",
            path=ascii(str(self.root))[1:-1],
        )


def home() -> Home:
    """Give the home that ``OCTAVO_HOME`` names, else the platform's data folder for Octavo."""
    named = os.environ.get(HOME_VARIABLE)
    root = Path(named) if named else Path(platformdirs.user_data_dir("octavo", appauthor=False))
    return Home(root.expanduser().absolute())


def _make_folders(folder: Path) -> list[Path]:
    """Make a folder and those above it; gives the new ones, the outermost first."""
    missing = [place for place in (folder, *folder.parents) if not os.path.lexists(place)]
    folder.mkdir(parents=True)
    return missing[::-1]


def _runtime_folder() -> Path:
    named = os.environ.get("XDG_RUNTIME_DIR")
    return Path(named) if named else Path(tempfile.gettempdir(), f"octavo-{getpass.getuser()}")


def _short_digest(path: Path) -> str:
    import hashlib

    return hashlib.sha256(os.fsencode(path)).hexdigest()[:16]
