"""The SQLite file: opening, bringing it up to date, setting a damaged one aside, and what its errors mean."""

import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from importlib import resources
from pathlib import Path

from octavo.core.errors import StorageFailed

SCHEMA = "octavo.core.chats.schema"
COMPONENT = "chats"

_DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
_COMPANIONS = ("", "-wal", "-shm")


class Database:
    """One connection behind one lock: any thread may use it, one at a time.

    ``set_aside`` is where a damaged file was moved to when this one was opened.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.set_aside: Path | None = None
        self._lock = threading.Lock()
        self._connection = self._opened()

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Use the connection; raises ``StorageFailed``."""
        with self._lock, failing_as_storage(self.path):
            yield self._connection

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Use the connection in a transaction: all of it is kept, or nothing; raises ``StorageFailed``."""
        with self.reading() as connection, transaction(connection):
            yield connection

    def close(self) -> None:
        """Fold the journal into the file and close it."""
        with self._lock, closing(self._connection), failing_as_storage(self.path):
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def _opened(self) -> sqlite3.Connection:
        with failing_as_storage(self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            try:
                return _ready_connection(self.path)
            except sqlite3.DatabaseError as fault:
                if not _is_damage(fault):
                    raise
            self.set_aside = _moved_aside(self.path)
            return _ready_connection(self.path)


@contextmanager
def failing_as_storage(path: Path) -> Iterator[None]:
    """Turn errors of SQLite and of the disk into ``StorageFailed``."""
    try:
        yield
    except (sqlite3.Error, OSError) as fault:
        raise StorageFailed(
            f"The database can't be used: {fault}.",
            hint="Make sure that the disk has room and that the file may be written.",
            path=str(path),
        ) from fault


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Keep all that the block writes, or nothing."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _ready_connection(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    try:
        connection.row_factory = sqlite3.Row
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA foreign_keys = ON")
        _check(connection)
        _migrate(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _check(connection: sqlite3.Connection) -> None:
    verdict = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    if verdict != "ok":
        fault = sqlite3.DatabaseError(verdict)
        fault.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
        raise fault


def _migrate(connection: sqlite3.Connection) -> None:
    # other parts of Octavo keep tables in the same file, so each has its own number
    connection.execute(
        "CREATE TABLE IF NOT EXISTS schema_versions (component TEXT PRIMARY KEY, version INTEGER NOT NULL)"
    )
    steps = migrations()
    done = _version(connection)
    if done > len(steps):
        raise sqlite3.Error(f"it was made by a newer Octavo (layout {done}, known up to {len(steps)})")
    for number, step in enumerate(steps[done:], start=done + 1):
        with transaction(connection):
            for statement in _statements(step):
                connection.execute(statement)
            connection.execute("REPLACE INTO schema_versions VALUES (?, ?)", (COMPONENT, number))


def migrations() -> list[str]:
    """Give the SQL of each layout step, in order."""
    files = (file for file in resources.files(SCHEMA).iterdir() if file.name.endswith(".sql"))
    return [file.read_text(encoding="utf-8") for file in sorted(files, key=lambda file: file.name)]


def _version(connection: sqlite3.Connection) -> int:
    row = connection.execute(
        "SELECT version FROM schema_versions WHERE component = ?", (COMPONENT,)
    ).fetchone()
    return int(row[0]) if row else 0


def _statements(script: str) -> Iterator[str]:
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


def _is_damage(fault: sqlite3.DatabaseError) -> bool:
    code = getattr(fault, "sqlite_errorcode", 0)
    return code & 0xFF in _DAMAGED


def _moved_aside(path: Path) -> Path:
    target = _free_name(path)
    for companion in _COMPANIONS:
        source = path.with_name(path.name + companion)
        if source.exists():
            source.rename(target.with_name(target.name + companion))
    return target


def _free_name(path: Path) -> Path:
    stamp = time.strftime("%Y%m%d-%H%M%S")
    names = (f"{path.name}.damaged-{stamp}{'' if number == 0 else f'-{number}'}" for number in range(1_000))
    return next(free for name in names if not (free := path.with_name(name)).exists())
