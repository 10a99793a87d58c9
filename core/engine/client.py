"""The service's side of one worker: start it, load, generate, stop; its death is a typed error."""

import asyncio
import contextlib
import itertools
import os
import signal
import sys
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from pathlib import Path

from octavo.core.engine.protocol import (
    AnyReport,
    Cancel,
    Command,
    Drop,
    Failed,
    Figures,
    Finished,
    GaveBack,
    Generate,
    Load,
    LoadRefused,
    LoadShare,
    LogLine,
    PagesDone,
    PagesProgressed,
    Pin,
    Prefilled,
    Ready,
    Shutdown,
    SlotIdle,
    Started,
    Text,
    Tokenize,
    Tokens,
    Warm,
    frame,
    report_decoder,
)
from octavo.core.errors import ModelWasUnloaded, OctavoError, WorkerCrashed, WrongCpuBuild, from_report
from octavo.core.memory.layout import PageRange
from octavo.core.prompts.framing import BrokenPipeFrame, receive_frame
from octavo.core.prompts.messages import Segment

STOP_DEADLINE_S = 2.0
READ_SIZE = 256 * 1024

# how many ended requests keep the time at which their slot was free again
REMEMBERED_REQUESTS = 256

RequestReport = Started | Prefilled | Text | Finished
Ending = RequestReport | Tokens | PagesProgressed | PagesDone | OctavoError


class Engine:
    """One worker process and what runs in it; used from one event loop, spawned on its thread."""

    def __init__(self, load: Load, log_file: Path, on_share: Callable[[float], None]) -> None:
        self._load = load
        self._path = load.path
        self._log_file = log_file
        self._on_share = on_share
        self._process: asyncio.subprocess.Process | None = None
        self._streams: dict[str, asyncio.Queue[Ending]] = {}
        self._ready: asyncio.Future[Ready] = asyncio.get_running_loop().create_future()
        self._reader: asyncio.Task[None] | None = None
        self._numbers = itertools.count(1)
        self._is_stopping = False
        self._log: list[str] = []
        self.figures: Figures | None = None
        self.figures_at = 0.0
        self.idle_at: dict[str, float] = {}
        self.on_death: Callable[[OctavoError], None] | None = None
        self.on_given_back: Callable[[GaveBack], None] | None = None
        self.ended = asyncio.Event()

    @property
    def pid(self) -> int | None:
        """The worker's process id, while it has one."""
        return self._process.pid if self._process else None

    async def start(self) -> Ready:
        """Start the worker and load the model; cancelling the call kills the worker."""
        await self._spawn()
        self._send(self._load)
        try:
            return await asyncio.shield(self._ready)
        except BaseException:
            await self.kill()
            raise

    async def generate(self, command: Generate) -> AsyncGenerator[RequestReport, None]:
        """Run a request; closing the generator cancels it. Raises the typed error that ended it."""
        queue = self._open_stream(command.request, command)
        is_done = False
        try:
            while True:
                report = await queue.get()
                if isinstance(report, OctavoError):
                    is_done = True
                    raise report
                assert isinstance(report, RequestReport)
                is_done = isinstance(report, Finished)
                yield report
                if is_done:
                    return
        finally:
            self._streams.pop(command.request, None)
            if not is_done and not self.ended.is_set():
                self._send(Cancel(command.request))

    async def tokenize(self, prompt: Sequence[Segment]) -> list[int]:
        """Turn segments into token ids."""
        request = self.next_request()
        queue = self._open_stream(request, Tokenize(request, list(prompt)))
        try:
            report = await queue.get()
        finally:
            self._streams.pop(request, None)
        if isinstance(report, OctavoError):
            raise report
        assert isinstance(report, Tokens)
        return report.tokens

    async def warm(self, ranges: Sequence[PageRange], on_progress: Callable[[int, int], None]) -> PagesDone:
        """Bring pages into memory, telling (done, total) bytes; cancelling the call stops it."""
        request = self.next_request()
        return await self._control(request, Warm(request, list(ranges)), on_progress)

    async def drop(self, ranges: Sequence[PageRange]) -> PagesDone:
        """Drop pages from memory; raises ``PagesArePinned`` for those that are kept."""
        request = self.next_request()
        return await self._control(request, Drop(request, list(ranges)))

    async def pin(self, ranges: Sequence[PageRange]) -> PagesDone:
        """Keep these pages in memory, and only these; none: let go of all."""
        request = self.next_request()
        return await self._control(request, Pin(request, list(ranges)))

    def next_request(self) -> str:
        """Give a request id that is unique in this worker."""
        return f"r{next(self._numbers)}"

    async def stop(self) -> None:
        """End the worker: ask, then kill; open streams end with an error."""
        self._is_stopping = True
        if self._process is None or self.ended.is_set():
            return
        self._send(Shutdown())
        try:
            await asyncio.wait_for(self.ended.wait(), STOP_DEADLINE_S)
        except TimeoutError:
            await self.kill()

    async def kill(self) -> None:
        """End the worker now."""
        self._is_stopping = True
        if self._process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        await self.ended.wait()

    async def _control(
        self,
        request: str,
        command: Command,
        on_progress: Callable[[int, int], None] = lambda done, total: None,
    ) -> PagesDone:
        """Have pages moved; a call that is cancelled is cancelled in the worker, too."""
        queue = self._open_stream(request, command)
        is_done = False
        try:
            while True:
                report = await queue.get()
                is_done = not isinstance(report, PagesProgressed)
                if isinstance(report, OctavoError):
                    raise report
                if isinstance(report, PagesDone):
                    return report
                assert isinstance(report, PagesProgressed)
                on_progress(report.done, report.total)
        finally:
            self._streams.pop(request, None)
            if not is_done and not self.ended.is_set():
                self._send(Cancel(request))

    # ---- the pipe

    async def _spawn(self) -> None:
        self._log_file.parent.mkdir(parents=True, exist_ok=True)
        with self._log_file.open("ab") as errors:
            self._process = await asyncio.create_subprocess_exec(
                *worker_program(),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=errors,
                env={**os.environ, "GGML_NO_BACKTRACE": "1", "PYTHONUNBUFFERED": "1"},
                limit=READ_SIZE,
            )
        self._reader = asyncio.create_task(self._read_all(), name=f"worker {self._process.pid}")

    def _open_stream(self, request: str, command: Command) -> asyncio.Queue[Ending]:
        if self.ended.is_set():
            raise self.death()
        queue: asyncio.Queue[Ending] = asyncio.Queue()
        self._streams[request] = queue
        self._send(command)
        return queue

    def _send(self, command: Command) -> None:
        assert self._process is not None and self._process.stdin is not None
        with contextlib.suppress(ConnectionError, RuntimeError):  # its death is told by the reader
            self._process.stdin.write(frame(command))

    async def _read_all(self) -> None:
        assert self._process is not None and self._process.stdout is not None
        decoder = report_decoder()
        with contextlib.suppress(BrokenPipeFrame):  # its end is told below
            while True:
                self._receive(decoder.decode(await receive_frame(self._process.stdout)))
        await self._process.wait()
        self._bury()

    def _receive(self, report: AnyReport) -> None:
        match report:
            case Started() | Prefilled() | Text() | Finished() | Tokens() | PagesProgressed() | PagesDone():
                self._pass_on(report.request, report)
            case Failed():
                self._pass_on(report.request, from_report(report.error))
            case LoadShare():
                self._on_share(report.share)
            case Ready():
                if not self._ready.done():
                    self._ready.set_result(report)
            case LoadRefused():
                if not self._ready.done():
                    self._ready.set_exception(from_report(report.error))
            case Figures():
                self.figures, self.figures_at = report, time.monotonic()
            case SlotIdle():
                self._note_idle(report.request)
            case GaveBack():
                if self.on_given_back is not None:
                    self.on_given_back(report)
            case LogLine():
                self._keep_line(report)

    def _pass_on(self, request: str, report: Ending) -> None:
        queue = self._streams.get(request)
        if queue is not None:
            queue.put_nowait(report)

    def _note_idle(self, request: str) -> None:
        self.idle_at[request] = time.monotonic()
        if len(self.idle_at) > REMEMBERED_REQUESTS:
            del self.idle_at[next(iter(self.idle_at))]

    def _keep_line(self, line: LogLine) -> None:
        self._log.append(f"{line.level}: {line.text}")
        del self._log[:-400]

    def _bury(self) -> None:
        self.ended.set()
        death = self.death()
        if not self._ready.done():
            self._ready.set_exception(death)
            self._ready.exception()  # nobody may be waiting any more
        for queue in self._streams.values():
            queue.put_nowait(death)
        if self.on_death is not None and not self._is_stopping:
            self.on_death(death)

    def death(self) -> OctavoError:
        """Give the error that tells how the worker ended."""
        code = self._process.returncode if self._process else None
        return death_of_worker(code, self._path, was_asked=self._is_stopping)

    def ready(self) -> Ready:
        """Give what the worker said when it was ready; only after ``start``."""
        return self._ready.result()

    def log_lines(self) -> list[str]:
        """Give the newest lines of llama.cpp's log."""
        return list(self._log)


def worker_program() -> list[str]:
    """Give the command that starts a worker; a frozen app starts itself under another verb."""
    if getattr(sys, "frozen", False):
        return [sys.executable, "worker-process", str(os.getpid())]
    return [sys.executable, "-m", "octavo.core.engine.worker", str(os.getpid())]


def death_of_worker(code: int | None, path: str, *, was_asked: bool) -> OctavoError:
    """Give the error for a worker that ended with exit status ``code`` (negative: the signal's number)."""
    name = Path(path).name
    if was_asked:
        return ModelWasUnloaded(f"{name} was unloaded.", hint="Send the request again.", model=name)
    if code == -signal.SIGILL:
        return WrongCpuBuild(
            "This engine build does not fit this CPU: it uses instructions that the CPU refuses (SIGILL).",
            hint="Turn Fast off, or build the engine anew with: make setup BACKEND=cpu",
            model=name,
            signal="SIGILL",
        )
    if code is not None and code < 0:
        signal_name = signal.Signals(-code).name
        return WorkerCrashed(
            f"The engine of {name} crashed (signal {-code}, {signal_name}).{_known_cause(-code)}",
            hint="The next request starts it again.",
            model=name,
            signal=signal_name,
        )
    return WorkerCrashed(
        f"The engine of {name} ended by itself (exit code {code}).",
        hint="The next request starts it again.",
        model=name,
        exit_code=code,
    )


def _known_cause(number: int) -> str:
    causes = {
        signal.SIGKILL: " The system ended it, most likely for want of memory.",
        getattr(signal, "SIGBUS", -1): " The model file was cut short, or its disk is gone.",
        signal.SIGABRT: " llama.cpp found a state that it can't go on from; see the engine's log.",
    }
    return causes.get(number, "")
