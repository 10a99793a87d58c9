"""Real service processes in tests: how they are started, waited for, and ended by their id."""

import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import psutil
import pytest

from octavo.core.client.types import Endpoint
from octavo.core.config.paths import Home

ROOT = Path(__file__).resolve().parents[2]
DEADLINE_S = 20.0


def fake_service_command() -> list[str]:
    """Give the command line of a service over the fake runtime."""
    return [sys.executable, "-P", str(ROOT / "tests" / "server" / "fake_service.py")]


@contextmanager
def fake_services(home: Path, patch: pytest.MonkeyPatch, grace_s: float = 10.0) -> Iterator[None]:
    """Have clients start fake services in this home; at the end the one that runs is ended."""
    patch.setenv("PYTHONPATH", str(ROOT))
    patch.setenv("OCTAVO_LEASE_GRACE_S", str(grace_s))
    patch.setattr("octavo.core.client.start.command", fake_service_command)
    try:
        yield
    finally:
        end_service(home)


def end_service(home: Path) -> None:
    """End all processes that work in this home, which are this test's, and wait until they are gone."""
    ours = ours_below(home)
    for process in ours:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.send_signal(signal.SIGTERM)
    for process in ours:
        wait(lambda pid=process.pid: is_gone(pid), "the service ends")  # type: ignore[misc]


def endpoint(home: Path) -> Endpoint:
    """Read how the service of this home is reached."""
    return msgspec.json.decode(Home(home).endpoint.read_bytes(), type=Endpoint)


def is_gone(pid: int) -> bool:
    """Tell whether a process is over (a zombie is)."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def wait(is_so: Callable[[], bool], what: str, deadline_s: float = DEADLINE_S) -> float:
    """Wait until something is so; gives the seconds that it took, fails after the deadline."""
    began = time.monotonic()
    while not is_so():
        assert time.monotonic() - began < deadline_s, f"not within {deadline_s} s: {what}"
        time.sleep(0.01)
    return time.monotonic() - began


def ours_below(home: Path) -> list[psutil.Process]:
    """List all processes that work in this home."""
    mark = f"OCTAVO_HOME={home}".encode()
    found = []
    for process in psutil.process_iter():
        try:
            environment = Path(f"/proc/{process.pid}/environ").read_bytes().split(b"\0")
        except OSError:
            continue
        if mark in environment and process.pid != os.getpid() and not is_gone(process.pid):
            found.append(process)
    return found
