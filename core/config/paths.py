"""Where Octavo keeps its state, all of it under one folder."""

import getpass
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

import platformdirs

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

    def prepare(self) -> None:
        """Make the folders; ``run`` and the socket's folder are for this person only (0700)."""
        for folder in (self.models, self.logs, self.cache):
            folder.mkdir(parents=True, exist_ok=True)
        for folder in (self.run, self.control_socket.parent):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            folder.chmod(0o700)


def home() -> Home:
    """Give the home that ``OCTAVO_HOME`` names, else the platform's data folder for Octavo."""
    named = os.environ.get("OCTAVO_HOME")
    root = Path(named) if named else Path(platformdirs.user_data_dir("octavo", appauthor=False))
    return Home(root.expanduser().absolute())


def _runtime_folder() -> Path:
    named = os.environ.get("XDG_RUNTIME_DIR")
    return Path(named) if named else Path(tempfile.gettempdir(), f"octavo-{getpass.getuser()}")


def _short_digest(path: Path) -> str:
    import hashlib

    return hashlib.sha256(os.fsencode(path)).hexdigest()[:16]
