"""One download in the helper: all files of a set, which get their names together once each is checked."""

import hashlib
import logging
import os
import ssl
import threading
import time
from collections.abc import Callable
from pathlib import Path

import httpx2

from octavo.core import __version__
from octavo.core.errors import AlreadyDownloading, ErrorReport, OctavoError, StorageFailed, TargetExists
from octavo.core.gguf import printable
from octavo.core.hub.downloads.file_download import FileDownload, Stopped, Surroundings
from octavo.core.hub.downloads.origin import Origin
from octavo.core.hub.downloads.pace import Pace
from octavo.core.hub.downloads.part import Part
from octavo.core.hub.downloads.places import part_of, targets
from octavo.core.hub.downloads.protocol import Job, Report
from octavo.core.hub.downloads.remains import remove_empty_folders
from octavo.core.hub.downloads.space import require_room, storage_faults
from octavo.core.hub.types import DownloadState, HubFile

_LOCK_POLL_S = 0.5
_PIECE = 1 << 20

_log = logging.getLogger(__name__)


class Transfer:
    """Runs one job on a thread of its own; ``send`` gets its reports, the last one ``is_over``."""

    def __init__(self, job: Job, pace: Pace, send: Callable[[Report], None]) -> None:
        self._job = job
        self._send = send
        self._stopped = threading.Event()
        self._around = Surroundings(pace, job.patience, job.connections, self._tell, self._stopped)
        self._parts: dict[Path, Part] = {}
        self._present_bytes = 0
        self._told: tuple[float, DownloadState, ErrorReport | None] = (0.0, "queued", None)
        self._thread = threading.Thread(target=self._run, name=f"transfer {job.id}", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End soon; what has come is kept."""
        self._stopped.set()

    def join(self, timeout_s: float) -> None:
        """Wait for the end."""
        self._thread.join(timeout_s)

    def _run(self) -> None:
        state: DownloadState = "failed"
        error: ErrorReport | None = None
        is_verified = False
        try:
            with storage_faults(Path(self._job.folder)):
                is_verified = self._download()
            state = "done"
        except Stopped:
            state = "paused"
        except OctavoError as fault:
            # a full disk is the person's to mend; then it goes on
            state, error = "paused" if isinstance(fault, StorageFailed) else "failed", fault.report()
        except Exception:
            _log.exception("download %s", self._job.id)
            error = OctavoError("The download failed for a reason of our own; the log tells more.").report()
        done_bytes = self._done_bytes()
        self._close()
        self._send(self._report(state, error, None, done_bytes, is_over=True, is_verified=is_verified))

    def _download(self) -> bool:
        models, wish = Path(self._job.folder), self._job.wish
        pairs = list(zip(wish.files, targets(models, wish), strict=True))
        missing = [pair for pair in pairs if not self._is_present(*pair)]
        for _file, target in missing:
            self._check_room()
            with storage_faults(target):
                self._parts[target].reserve()
        with self._http() as http:
            checked = [self._fetch(http, file, self._parts[target]) for file, target in missing]
        self._publish()
        return all(checked) and all(file.sha256 for file in wish.files)

    def _fetch(self, http: httpx2.Client, file: HubFile, part: Part) -> bool:
        origin = Origin(http, self._job.access, self._job.wish, file, part)
        with storage_faults(part.path):
            return FileDownload(file, part, origin, self._around).run()

    def _publish(self) -> None:
        for target, part in self._parts.items():
            if os.path.lexists(target):
                raise _taken(target)
            with storage_faults(target):
                part.publish(target)

    # ---- what is there already

    def _is_present(self, file: HubFile, target: Path) -> bool:
        """Take the part file's lock, unless the file itself is there already; raises ``TargetExists``."""
        path = part_of(target)
        with storage_faults(target):
            part = None if os.path.lexists(target) else Part.open(path, file.size_bytes)
            while part is None and not os.path.lexists(target):
                self._tell("waiting", _busy(target).report(), time.time() + _LOCK_POLL_S)
                if self._stopped.wait(_LOCK_POLL_S):
                    raise Stopped
                part = Part.open(path, file.size_bytes)
        if part is not None and not os.path.lexists(target):
            self._parts[target] = part
            return False
        if part is not None:  # it was finished while we waited
            part.remove()
            part.close()
        self._check_present(file, target)
        self._present_bytes += file.size_bytes
        return True

    def _check_present(self, file: HubFile, target: Path) -> None:
        if not target.is_file() or target.stat().st_size != file.size_bytes:
            raise _taken(target)
        if file.sha256 and self._sha256(target) != file.sha256:
            raise _taken(target)

    def _sha256(self, path: Path) -> str:
        digest = hashlib.sha256()
        with path.open("rb") as data:
            while piece := data.read(_PIECE):
                digest.update(piece)
                self._tell("verifying", None, None)
                if self._stopped.is_set():
                    raise Stopped
        return digest.hexdigest()

    def _check_room(self) -> None:
        require_room(Path(self._job.folder), sum(part.missing_blocks for part in self._parts.values()))

    def _close(self) -> None:
        for target, part in self._parts.items():
            if not part.done_bytes and part.size:
                part.remove()  # nothing has come: it would only take room
                remove_empty_folders(target.parent, Path(self._job.folder))
            part.close()

    # ---- telling

    def _tell(self, state: DownloadState, error: ErrorReport | None, retry_at: float | None) -> None:
        at, last_state, last_error = self._told
        now = time.monotonic()
        if (state, error) == (last_state, last_error) and now - at < 1 / Report.LIMIT_PER_S:
            return
        self._told = now, state, error
        self._send(self._report(state, error, retry_at, self._done_bytes()))

    def _report(
        self,
        state: DownloadState,
        error: ErrorReport | None,
        retry_at: float | None,
        done_bytes: int,
        *,
        is_over: bool = False,
        is_verified: bool = False,
    ) -> Report:
        return Report(
            id=self._job.id,
            state=state,
            done_bytes=done_bytes,
            is_over=is_over,
            retry_at=retry_at,
            error=error,
            notes=list(self._around.notes),
            is_verified=is_verified,
            restarts=self._around.restarts,
        )

    def _done_bytes(self) -> int:
        return self._present_bytes + sum(part.done_bytes for part in self._parts.values())

    def _http(self) -> httpx2.Client:
        access, patience = self._job.access, self._job.patience
        # the Hub's certificates take a third of a second to load; a redirect to TLS is still checked
        is_safe = access.endpoint.startswith("https") or (access.proxy or "").startswith("https")
        context = httpx2.create_ssl_context() if is_safe else ssl.create_default_context()
        return httpx2.Client(
            verify=context,
            proxy=access.proxy,
            trust_env=False,  # the environment was read into the access; no .netrc, no other proxy
            timeout=httpx2.Timeout(patience.stall_s, connect=patience.connect_s),
            limits=httpx2.Limits(max_connections=None, max_keepalive_connections=self._job.connections),
            headers={"User-Agent": f"octavo/{__version__}"},
        )


def _taken(target: Path) -> TargetExists:
    return TargetExists(
        f"There is already another file {printable(target)}.",
        hint="Remove or rename it, then resume the download.",
        path=printable(target),
    )


def _busy(target: Path) -> AlreadyDownloading:
    return AlreadyDownloading(
        f"Another process of this computer downloads {printable(target.name)} already.",
        hint="This one waits for it.",
        path=printable(target),
    )
