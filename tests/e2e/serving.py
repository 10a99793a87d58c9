"""Real programs over the real model: ``octavo serve`` and the verbs, each ended by its id."""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil

from tests.server.processes import is_gone, ours_below, wait

MODEL = "SmolLM2-135M-Instruct"
OCTAVO = [sys.executable, "-P", "-m", "octavo.server.cli.main"]


def environment(home: Path, model: Path, **more: str) -> dict[str, str]:
    """Give the environment of a program in this home, whose library starts with this model."""
    return {**os.environ, "OCTAVO_HOME": str(home), "OCTAVO_STARTER_MODEL": str(model), **more}


def octavo(env: dict[str, str], *arguments: str, stdin: str = "") -> "subprocess.CompletedProcess[str]":
    """Run a verb to its end, without a terminal."""
    return subprocess.run(
        [*OCTAVO, *arguments], input=stdin, capture_output=True, text=True, timeout=120, env=env
    )


def octavo_json(env: dict[str, str], *arguments: str) -> Any:
    """Run a verb that must work and read what it prints as JSON."""
    done = octavo(env, *arguments, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@contextmanager
def octavo_serve(env: dict[str, str], *arguments: str) -> Iterator[tuple[str, "subprocess.Popen[str]"]]:
    """Run ``octavo serve`` on a free port; gives its address and the process. It must end with code 0."""
    command = [*OCTAVO, "serve", "--port", "0", *arguments]
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True) as process:
        watchdog = threading.Timer(60, process.kill)
        watchdog.start()
        assert process.stdout is not None
        line = process.stdout.readline()
        watchdog.cancel()
        try:
            assert "http://" in line, "octavo serve printed no address"
            yield line.split()[3].removesuffix("/v1"), process
        finally:
            stop(process)
    assert process.returncode in (0, -signal.SIGKILL)


def stop(process: "subprocess.Popen[str]") -> None:
    """End a process by SIGTERM within 10 s."""
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            raise


@contextmanager
def programs(home: Path) -> Iterator[None]:
    """End whatever a test leaves running in this home."""
    try:
        yield
    finally:
        for process in ours_below(home):
            with suppress(psutil.NoSuchProcess):
                process.kill()
            wait(lambda pid=process.pid: is_gone(pid), "a left process ends")  # type: ignore[misc]


def worker_pid(env: dict[str, str]) -> int:
    """Give the process id of the one model that is loaded."""
    (status,) = octavo_json(env, "ps")
    return int(status["pid"])
