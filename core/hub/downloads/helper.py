"""The service's side of the download helper: started when there is something to do, ended when not."""

import asyncio
import contextlib
import os
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec

from octavo.core.hub.downloads.protocol import Command, Report

_END_S = 3.0
_LINE_LIMIT = 1 << 20


class Helper:
    """The helper process; belongs to one event loop, and is spawned on its thread.

    ``on_report`` gets its reports, ``on_death`` is called when it ended without being told to.
    """

    def __init__(self, log: Path, on_report: Callable[[Report], None], on_death: Callable[[], None]) -> None:
        self._log = log
        self._on_report = on_report
        self._on_death = on_death
        self._process: asyncio.subprocess.Process | None = None
        self._reader: asyncio.Task[None] | None = None
        self._is_stopping = False

    @property
    def pid(self) -> int | None:
        """Its process id, while it runs."""
        return self._process.pid if self._process else None

    async def send(self, command: Command) -> None:
        """Hand over a command, starting the helper where none runs; raises ``OSError`` where it can't be."""
        if self._process is None:
            await self._spawn()
        self.tell(command)

    def tell(self, command: Command) -> None:
        """Hand a command to the helper that runs, if one does."""
        if self._process is not None and self._process.stdin is not None:
            with contextlib.suppress(ConnectionError, RuntimeError):  # its death is told by the reader
                self._process.stdin.write(msgspec.json.encode(command) + b"\n")

    async def close(self) -> None:
        """End the helper: what has come is durable then."""
        process, reader = self._process, self._reader
        if process is None or reader is None:
            return
        self._is_stopping = True
        if process.stdin is not None:
            process.stdin.close()
        await asyncio.wait({reader}, timeout=_END_S)
        if not reader.done():
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await reader

    async def _spawn(self) -> None:
        self._is_stopping = False
        self._log.parent.mkdir(parents=True, exist_ok=True)
        with self._log.open("ab") as errors:
            self._process = await asyncio.create_subprocess_exec(
                *helper_program(),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=errors,
                limit=_LINE_LIMIT,
            )
        self._reader = asyncio.create_task(self._read(self._process), name="download helper")

    async def _read(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        decoder = msgspec.json.Decoder(Report)
        async for line in process.stdout:
            with contextlib.suppress(msgspec.DecodeError):  # it died in the middle of a line
                self._on_report(decoder.decode(line))
        await process.wait()
        self._process = None
        if not self._is_stopping:
            self._on_death()


def helper_program() -> list[str]:
    """Give the command that starts a helper; a frozen app starts itself under another verb."""
    if getattr(sys, "frozen", False):
        return [sys.executable, "download-process", str(os.getpid())]
    return [sys.executable, "-m", "octavo.core.hub.downloads.process", str(os.getpid())]
