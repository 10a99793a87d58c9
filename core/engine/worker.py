"""The worker process: one model, llama.cpp, and nothing else.

The main thread is the engine thread: it loads the model and then runs the scheduler's steps. The io thread
reads commands from standard input. Reports go out on what was standard output; that descriptor is moved away
first, so that nothing a C library prints can break the framing.
"""

import os
import signal
import sys
import threading
import time
import traceback
from collections import deque
from typing import BinaryIO, NoReturn

from octavo.core.config.load_config import LoadMode
from octavo.core.engine.protocol import (
    PROTOCOL_VERSION,
    AnyCommand,
    AnyReport,
    Cancel,
    Drop,
    Failed,
    Figures,
    Generate,
    Load,
    LoadRefused,
    LoadShare,
    LogLine,
    Pin,
    Ready,
    Shutdown,
    Tokenize,
    Tokens,
    Warm,
    command_decoder,
    frame,
)
from octavo.core.errors import LoadFailed, OctavoError
from octavo.core.prompts.framing import BrokenPipeFrame, read_frame
from octavo.core.prompts.messages import Segment

FIGURES_EVERY_S = 0.25


class Outbox:
    """Reports on their way to the service: gathered during a step, written at once."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._frames: list[bytes] = []
        self._lock = threading.Lock()

    def put(self, report: AnyReport) -> None:
        """Add a report to the next write."""
        data = frame(report)
        with self._lock:
            self._frames.append(data)

    def flush(self) -> None:
        """Write what was gathered; a broken pipe means that the service is gone, and so are we."""
        with self._lock:
            data, self._frames = memoryview(b"".join(self._frames)), []
            while data:
                try:
                    data = data[os.write(self._descriptor, data) :]
                except OSError:
                    os._exit(0)

    def send(self, report: AnyReport) -> None:
        """Write a report at once."""
        self.put(report)
        self.flush()


class Inbox:
    """Commands from the service, read by the io thread; a ``Cancel`` also stops a prefill that is running."""

    def __init__(self, pipe: BinaryIO) -> None:
        self._pipe = pipe
        self._commands: deque[AnyCommand] = deque()
        self._arrived = threading.Condition()
        self.engine: Engine | None = None
        threading.Thread(target=self._read_all, name="io", daemon=True).start()

    def take(self, *, wait: bool) -> AnyCommand | None:
        """Give the next command; with ``wait``, wait for one."""
        with self._arrived:
            while wait and not self._commands:
                self._arrived.wait()
            return self._commands.popleft() if self._commands else None

    def _read_all(self) -> NoReturn:
        decoder = command_decoder()
        try:
            while True:
                self._receive(decoder.decode(read_frame(self._pipe)))
        except BrokenPipeFrame:
            os._exit(0)  # the service closed the pipe, or died

    def _receive(self, command: AnyCommand) -> None:
        with self._arrived:
            self._commands.append(command)
            self._arrived.notify()
        if isinstance(command, Cancel) and self.engine is not None:
            self.engine.interrupt(command.request)


class Engine:
    """The loaded model and the scheduler over it."""

    def __init__(self, command: Load, outbox: Outbox) -> None:
        # llama.cpp's bindings are loaded here, after the pipes are safe
        from octavo.core.engine import llama, sampling
        from octavo.core.engine.elastic import Elastic
        from octavo.core.engine.log import EngineLog
        from octavo.core.engine.meter import Meter
        from octavo.core.engine.pages import PageControl
        from octavo.core.engine.scheduler import Scheduler
        from octavo.core.engine.slots import Work
        from octavo.core.memory.probe import OwnCounters

        started = time.monotonic()
        counters = OwnCounters()
        read_before = counters.read().disk_bytes
        self._outbox = outbox
        self._shown = -1.0
        self._log = EngineLog(llama.C, lambda level, text: outbox.put(LogLine(level, text)))
        self._model = llama.Model(command.path, command.config, self._log, self._tell_share)
        self._context = llama.Context(self._model, command.config, self._log)
        self._batch = llama.Batch(self._context.batch_limit)
        vocabulary = self._vocabulary = self._model.vocabulary

        def make_sampler(work: Work) -> llama.Sampler:
            work.seed = sampling.draw_seed(work.request.sampling.seed)
            return sampling.build(work.request.sampling, work.seed, vocabulary, work.prompt)

        self._elastic = Elastic(command, self._model, self._context, outbox.put)
        is_locked = command.config.load_mode is LoadMode.MMAP_MLOCK and not self._log.has("failed to mlock")
        self._pages = PageControl(self._elastic.maps, outbox.send, is_loaded_locked=is_locked)
        self.scheduler = Scheduler(
            self._context,
            self._batch,
            vocabulary,
            command.config,
            make_sampler,
            outbox.put,
            Meter(counters, lambda: self._pages.disk_bytes),
            whole_states=self._model.has_state,
        )
        self._figures: Figures | None = None
        self._figures_at = 0.0
        read = _difference(read_before, counters.read().disk_bytes)
        outbox.put(self.scheduler.figures(self._elastic.kv_bytes, self._elastic.committed_kv_bytes))
        outbox.send(self._ready(time.monotonic() - started, read))
        self._elastic.give_back_pages()
        self.tell_figures()
        outbox.flush()

    def interrupt(self, request: str) -> None:
        """Stop the running decode if it reads this request's prompt; called by the io thread."""
        if request in self.scheduler.in_prefill:
            self._context.abort()

    def obey(self, command: AnyCommand) -> None:
        """Carry out one command."""
        match command:
            case Generate():
                self._submit(command)
            case Cancel():
                self.scheduler.cancel(command.request)
                self._pages.cancel(command.request)
            case Warm() | Drop() | Pin():
                self._pages.begin(command)
            case Tokenize():
                self._outbox.put(Tokens(command.request, self._tokenize(command.prompt)))
            case Shutdown():
                self._outbox.flush()
                os._exit(0)
            case Load():
                raise LoadFailed("This worker already holds a model.")

    def tell_figures(self) -> None:
        """Report what is used, when it changed, at most four times a second (and always when work ends)."""
        now = time.monotonic()
        if now - self._figures_at < FIGURES_EVERY_S and self.scheduler.has_work:
            return
        self._elastic.give_back_cells()
        figures = self.scheduler.figures(self._elastic.kv_bytes, self._elastic.committed_kv_bytes)
        if figures != self._figures:
            self._figures, self._figures_at = figures, now
            self._outbox.put(figures)

    def _submit(self, command: Generate) -> None:
        try:
            prompt = command.tokens if command.tokens is not None else self._tokenize(command.prompt)
            self.scheduler.submit(command, prompt)
        except OctavoError as error:
            self._outbox.put(Failed(command.request, error.report()))

    def _tokenize(self, segments: list[Segment]) -> list[int]:
        """Tokenise segments, with one BOS in front where the vocabulary wants one."""
        vocabulary = self._vocabulary
        tokens: list[int] = []
        for segment in segments:
            tokens += vocabulary.tokenize(segment.text, special=segment.special)
        if vocabulary.adds_bos and tokens[:1] != [vocabulary.bos]:
            tokens.insert(0, vocabulary.bos)
        return tokens

    def _tell_share(self, share: float) -> None:
        if share - self._shown >= 0.01 or share >= 1:
            self._shown = share
            self._outbox.send(LoadShare(share))

    def _ready(self, load_s: float, load_disk_bytes: int | None) -> Ready:
        from octavo.core.memory.probe import process

        vocabulary = self._vocabulary
        sampled = process(os.getpid())
        return Ready(
            context=self._context.usable,
            kv_size=self._context.cells,
            trained_context=self._model.trained_context,
            vocabulary=vocabulary.size,
            control_tokens=vocabulary.control_tokens(),
            bos=vocabulary.text(vocabulary.bos),
            eos=vocabulary.text(vocabulary.eos),
            effective=self._context.effective(),
            load_s=load_s,
            load_disk_bytes=load_disk_bytes,
            page_control=self._pages.refusal,
            anonymous_bytes=sampled.private_bytes if sampled else None,
        )


def _difference(before: int | None, now: int | None) -> int | None:
    return None if before is None or now is None else now - before


def main() -> None:
    """Run the worker until the service ends it."""
    outbox = Outbox(_take_standard_output())
    _die_with_parent(int(sys.argv[1]) if len(sys.argv) > 1 else os.getppid())
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl+C in a terminal is the service's to handle
    inbox = Inbox(sys.stdin.buffer)
    command = inbox.take(wait=True)
    try:
        engine = _load(command, outbox)
    except OctavoError as error:
        outbox.send(LoadRefused(error.report()))
        os._exit(1)
    inbox.engine = engine
    _serve(engine, inbox, outbox)


def _load(command: AnyCommand | None, outbox: Outbox) -> Engine:
    if not isinstance(command, Load) or command.version != PROTOCOL_VERSION:
        raise LoadFailed("The worker and the service are of different versions.", hint="Restart Octavo.")
    return Engine(command, outbox)


def _serve(engine: Engine, inbox: Inbox, outbox: Outbox) -> NoReturn:
    while True:
        command = inbox.take(wait=not engine.scheduler.has_work)
        while command is not None:
            engine.obey(command)
            command = inbox.take(wait=False)
        engine.scheduler.step()
        engine.tell_figures()
        outbox.flush()


def _take_standard_output() -> int:
    """Move the pipe away from descriptor 1 and let 1 point where errors go."""
    pipe = os.dup(1)
    os.dup2(2, 1)
    return pipe


def _die_with_parent(parent: int) -> None:
    """Ask Linux to kill this process when the service's main thread ends (prctl(2), PR_SET_PDEATHSIG)."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(1, signal.SIGKILL)
    if os.getppid() != parent:  # it died before the request above
        os._exit(0)


def run() -> NoReturn:
    """Run the worker; a fault of our own is printed to the log, and no thread outlives it."""
    try:
        main()
    except BaseException:
        traceback.print_exc()
    os._exit(70)  # sysexits.h, EX_SOFTWARE


if __name__ == "__main__":
    run()
