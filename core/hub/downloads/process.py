"""The download helper: bytes and hashes are its business, so that they never hold up the service.

It reads commands from its standard input and writes reports to its standard output, a JSON object a line. It
ends when its input does; on Linux it also dies with its parent.
"""

import logging
import os
import signal
import sys
import threading

import msgspec

from octavo.core.hub.downloads.pace import Pace
from octavo.core.hub.downloads.protocol import Command, Job, Limit, Report, Stop
from octavo.core.hub.downloads.transfer import Transfer

_END_S = 2.5
_PR_SET_PDEATHSIG = 1


class Outlet:
    """Writes reports, one at a time; without a reader there is nothing left to do."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._lock = threading.Lock()

    def send(self, report: Report) -> None:
        """Write a report."""
        line = memoryview(msgspec.json.encode(report) + b"\n")
        with self._lock:
            while line:
                try:
                    line = line[os.write(self._descriptor, line) :]
                except OSError:
                    os._exit(0)


class Desk:
    """Keeps the transfers and hands them what the service says."""

    def __init__(self, outlet: Outlet) -> None:
        self._outlet = outlet
        self._pace = Pace()
        self._transfers: dict[str, Transfer] = {}
        self._lock = threading.Lock()

    def obey(self, command: Command) -> None:
        """Carry out a command; never waits."""
        match command:
            case Job():
                self._pace.limit(command.access.bytes_per_s)
                transfer = Transfer(command, self._pace, self._send)
                with self._lock:
                    self._transfers[command.id] = transfer
                transfer.start()
            case Stop():
                if (running := self._transfers.get(command.id)) is not None:
                    running.stop()
            case Limit():
                self._pace.limit(command.bytes_per_s)

    def close(self) -> None:
        """Stop all transfers and wait a little until what has come is durable."""
        with self._lock:
            transfers = list(self._transfers.values())
        for transfer in transfers:
            transfer.stop()
        for transfer in transfers:
            transfer.join(_END_S)

    def _send(self, report: Report) -> None:
        if report.is_over:
            with self._lock:
                self._transfers.pop(report.id, None)
        self._outlet.send(report)


def main() -> None:
    """Obey until the pipe ends."""
    outlet = Outlet(os.dup(1))
    os.dup2(2, 1)  # what a library prints is no report
    _die_with(int(sys.argv[1]))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl+C in a terminal is the service's to handle
    logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    # a request's line would name a signed address
    logging.getLogger("httpx2").setLevel(logging.WARNING)
    desk, decoder = Desk(outlet), msgspec.json.Decoder(Command)
    for line in sys.stdin.buffer:
        desk.obey(decoder.decode(line))
    desk.close()
    os._exit(0)  # a thread that is still connecting holds up nothing


def _die_with(parent: int) -> None:
    """Ask Linux to kill this process when the service's main thread ends (prctl(2), PR_SET_PDEATHSIG)."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if sys.platform != "win32" and os.getppid() != parent:  # it died before the request above
        os._exit(0)


if __name__ == "__main__":
    main()
