"""All downloads of a service: a queue that survives crashes, with a few of them at work in the helper."""

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from octavo.core.errors import Conflict, DownloadNotFound, ErrorReport, OctavoError, WorkerCrashed
from octavo.core.gguf import printable
from octavo.core.hub.access import require_online
from octavo.core.hub.downloads.entry import Entry
from octavo.core.hub.downloads.helper import Helper
from octavo.core.hub.downloads.places import identity, targets
from octavo.core.hub.downloads.protocol import Job, Limit, Patience, Report, Stop
from octavo.core.hub.downloads.records import Records
from octavo.core.hub.downloads.remains import as_left, done_bytes_of, remove_parts
from octavo.core.hub.types import Access, Download, DownloadWish

AT_ONCE = 2
CONNECTIONS = 4
IDLE_S = 5.0
_MOST_CRASHES = 5

_log = logging.getLogger(__name__)

OnDone = Callable[[Download], Awaitable[ErrorReport | None]]


class Downloads:
    """Downloads into the library ``models``; belongs to one event loop.

    ``state`` is a folder of this home for records and the helper's log. ``access`` may block and is called in
    a thread. ``publish`` is told every change; ``on_done`` is awaited before a download is told to be done,
    and gives why what came is no model that can be read, None for a sound one.
    """

    def __init__(
        self,
        models: Path,
        state: Path,
        access: Callable[[], Access],
        publish: Callable[[Download], None],
        on_done: OnDone,
        *,
        at_once: int = AT_ONCE,
        connections: int = CONNECTIONS,
        patience: Patience | None = None,
    ) -> None:
        self._models = models
        self._access = access
        self._publish = publish
        self._on_done = on_done
        self._at_once = at_once
        self._connections = connections
        self._patience = patience or Patience()
        self._records = Records(state)
        self._helper = Helper(state / "helper.log", self._on_report, self._on_death)
        self._entries: dict[str, Entry] = {}
        self._news = asyncio.Event()
        self._keeper: asyncio.Task[None] | None = None
        self._endings: set[asyncio.Task[None]] = set()
        self._is_closing = False

    # ---- beginning and end

    async def start(self) -> None:
        """Read what was begun before, and go on with what was not paused."""
        for download in await asyncio.to_thread(self._read):
            self._entries[download.id] = Entry(download)
        self._news.set()
        self._keeper = asyncio.create_task(self._keep(), name="downloads")

    async def close(self) -> None:
        """End the helper; what has come is durable, and a next start goes on with it."""
        self._is_closing = True
        if self._keeper is not None:
            self._keeper.cancel()
            await asyncio.gather(self._keeper, return_exceptions=True)
        await self._helper.close()
        await asyncio.gather(*self._endings, return_exceptions=True)

    async def refresh(self) -> None:
        """Take over what has changed in how the Hub is reached: the limit, and whether we are offline."""
        try:
            access = await asyncio.to_thread(self._access)
        except OctavoError as error:
            # a variable names no proxy that can be used: who downloads is told so
            _log.warning("the Hub can't be reached as it is set: %s", error)
            return
        self._helper.tell(Limit(access.bytes_per_s))
        for entry in self._entries.values():
            if entry.is_held_offline and not access.is_offline:
                self._change(entry, entry.queued())
        self._news.set()

    @property
    def helper_pid(self) -> int | None:
        """The helper's process id, while it runs."""
        return self._helper.pid

    # ---- what there is

    def all(self) -> list[Download]:
        """List all downloads, the oldest first."""
        return [entry.download for entry in self._entries.values()]

    def live(self) -> list[Download]:
        """List those that are queued or at work."""
        return [entry.download for entry in self._entries.values() if entry.is_live]

    def find(self, id: str) -> Download:
        """Give a download; raises ``DownloadNotFound``."""
        return self._entry(id).download

    # ---- what a person wants

    async def add(self, wish: DownloadWish) -> Download:
        """Queue a wish; what goes to the same places is the same download, and is resumed.

        Raises ``InvalidRequest`` for names that are unsafe.
        """
        id = identity(wish)
        entry = self._entries.get(id)
        if entry is not None and entry.is_live:
            return entry.download
        total = sum(file.size_bytes for file in wish.files)
        made = Entry(Download(id=id, wish=wish, state="queued", total_bytes=total, added_at=time.time()))
        if entry is not None:
            made.take_over(entry)
        made.set(done_bytes=await asyncio.to_thread(done_bytes_of, self._models, wish))
        # in the dictionary's order the newest comes last
        self._entries.pop(id, None)
        self._entries[id] = made
        self._change(made, made.queued())
        return made.download

    async def pause(self, id: str) -> Download:
        """Stop a download for now; what has come is kept."""
        entry = self._entry(id)
        if entry.is_live:
            self._stop(entry)
            self._change(entry, entry.ended("paused"))
        return entry.download

    async def resume(self, id: str) -> Download:
        """Go on with a download that is paused, has failed, or was cancelled."""
        entry = self._entry(id)
        if not entry.is_live and entry.download.state != "done":
            self._change(entry, entry.queued())
        return entry.download

    async def cancel(self, id: str) -> Download:
        """End a download and remove what has come of it."""
        entry = self._entry(id)
        if entry.download.state in ("done", "cancelled"):
            return entry.download
        self._stop(entry)
        self._change(entry, entry.ended("cancelled"))
        await self._remove_if_cancelled(entry)
        return entry.download

    async def forget(self, id: str) -> None:
        """Take a download that has ended off the list; raises ``Conflict`` for one that is at work."""
        entry = self._entry(id)
        if entry.is_live or entry.is_active:
            raise Conflict("The download is at work.", hint="Cancel it first.", id=id)
        if entry.download.state != "done":
            await asyncio.to_thread(remove_parts, self._models, entry.download.wish)
        self._entries.pop(id, None)
        await asyncio.to_thread(self._records.remove, id)

    # ---- at work

    async def _keep(self) -> None:
        """Start what is queued, and end the helper when it has had nothing to do for a while."""
        while not self._is_closing:
            # not wait_for: it may swallow the cancellation that ends this (cpython#86296, in 3.11)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(IDLE_S):
                    await self._news.wait()
            if self._news.is_set():
                self._news.clear()
                await self._start_queued()
            elif self._helper.pid and not any(entry.is_active for entry in self._entries.values()):
                await self._helper.close()

    async def _start_queued(self) -> None:
        for entry in list(self._entries.values()):
            at_work = sum(other.is_active for other in self._entries.values())
            if at_work < self._at_once and entry.download.state == "queued" and not entry.is_active:
                await self._begin(entry)

    async def _begin(self, entry: Entry) -> None:
        try:
            access = await asyncio.to_thread(self._access)
            require_online(access)
            if entry.download.state != "queued":
                return  # it was paused meanwhile
            entry.begin()
            job = Job(
                id=entry.download.id,
                wish=entry.download.wish,
                folder=str(self._models),
                access=access,
                patience=self._patience,
                connections=self._connections,
            )
            await self._helper.send(job)
        except (OctavoError, OSError) as fault:
            entry.is_active = False
            error = fault if isinstance(fault, OctavoError) else OctavoError(f"No helper starts: {fault}.")
            self._change(entry, entry.ended("paused", error.report()))

    def _stop(self, entry: Entry) -> None:
        if entry.is_active:
            entry.is_stopping = True
            self._helper.tell(Stop(entry.download.id))

    def _on_report(self, report: Report) -> None:
        entry = self._entries.get(report.id)
        if entry is None or not entry.is_active:
            return
        entry.count(report)
        if report.is_over:
            self._on_over(entry, report)
        elif not entry.is_stopping and entry.is_live:
            state_before = entry.download.state
            entry.follow(report)
            self._publish(entry.download)
            if entry.download.state != state_before:
                self._save(entry)

    def _on_over(self, entry: Entry, report: Report) -> None:
        was_stopping, entry.is_active, entry.is_stopping = entry.is_stopping, False, False
        self._news.set()
        if report.state == "done":
            self._run(self._finish(entry, report))
        elif entry.download.state == "cancelled":
            self._run(self._remove_if_cancelled(entry))
        elif was_stopping or self._is_closing:
            self._save(entry)
        else:
            self._change(entry, entry.ended(report.state, report.error, report.notes))

    async def _finish(self, entry: Entry, report: Report) -> None:
        entry.finish(report)
        try:
            entry.set(unreadable=await self._on_done(entry.download))
        except OctavoError as error:
            _log.warning("after the download %s: %s", entry.download.id, error)
        self._change(entry, entry.download)

    def _on_death(self) -> None:
        """Go on after the helper died; a download that kills it again and again has failed."""
        for entry in self._entries.values():
            if not entry.is_active:
                continue
            entry.is_active = entry.is_stopping = False
            if entry.download.state == "cancelled":
                self._run(self._remove_if_cancelled(entry))
            elif entry.is_live and entry.crashes_in_vain() > _MOST_CRASHES:
                error = WorkerCrashed("The download helper died again and again.", hint="See its log.")
                self._change(entry, entry.ended("failed", error.report()))
            elif entry.is_live:
                entry.set(state="queued")
        self._news.set()

    async def _remove_if_cancelled(self, entry: Entry) -> None:
        if entry.download.state == "cancelled" and not entry.is_active:
            await asyncio.to_thread(remove_parts, self._models, entry.download.wish)
            entry.set(done_bytes=0)
            self._change(entry, entry.download)

    # ---- telling and keeping

    def _change(self, entry: Entry, download: Download) -> None:
        entry.download = download
        self._save(entry)
        self._publish(download)
        self._news.set()

    def _save(self, entry: Entry) -> None:
        self._records.save(entry.download)

    def _run(self, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(work)
        self._endings.add(task)
        task.add_done_callback(self._endings.discard)

    def _read(self) -> list[Download]:
        found = []
        for download in self._records.read_all():
            try:
                targets(self._models, download.wish)
            except OctavoError as error:
                _log.warning("the record %s is not used: %s", download.id, error)
                continue
            found.append(as_left(self._models, download))
        return found

    def _entry(self, id: str) -> Entry:
        if id not in self._entries:
            raise DownloadNotFound(f"There is no download {printable(id[:80])}.", hint="octavo get --list")
        return self._entries[id]
