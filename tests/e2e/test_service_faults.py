"""What a killed worker, a killed service and a stop in mid-stream do to clients."""

import json
import os
import signal
import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.e2e.serving import MODEL, environment, octavo, octavo_json, octavo_serve, programs, worker_pid
from tests.server.processes import endpoint, is_gone, ours_below, wait


@pytest.fixture
def env(octavo_home: Path, smollm2: Path) -> Iterator[dict[str, str]]:
    """A home with the model, whose processes end with the test."""
    with programs(octavo_home):
        yield environment(octavo_home, smollm2)


class Stream:
    """A long streamed answer, read line by line in a thread."""

    def __init__(self, base: str, **fields: object) -> None:
        body = {"model": MODEL, "prompt": "Once upon a time", "stream": True, **fields}
        self.lines: list[str] = []
        data = json.dumps({"max_tokens": 1500, "ignore_eos": True, **body}).encode()
        self._request = urllib.request.Request(f"{base}/v1/completions", data)
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        with urllib.request.urlopen(self._request, timeout=60) as response:
            self.lines += (line.decode("utf-8", "strict").strip() for line in response if line.strip())

    def _begin(self) -> None:
        wait(lambda: len(self.lines) > 3, "the stream flows")

    def end(self, deadline_s: float) -> list[str]:
        """Wait for its end and give its lines."""
        self._thread.join(deadline_s)
        assert not self._thread.is_alive(), "the stream did not end"
        return self.lines


def flowing(base: str, **fields: object) -> Stream:
    """Start a stream and wait until it flows."""
    stream = Stream(base, **fields)
    stream._begin()
    return stream


def test_c08_kill_9_of_the_worker_in_a_stream(env: dict[str, str]) -> None:
    with octavo_serve(env) as (base, process):
        for _ in range(2):  # also twice in a row
            stream = flowing(base)
            os.kill(worker_pid(env), signal.SIGKILL)
            last = json.loads(stream.end(2)[-1].removeprefix("data: "))
            assert last["error"]["code"] == "worker_crashed" and "9" in last["error"]["message"]
            (status,) = octavo_json(env, "ps")
            assert status["state"] == "crashed" and status["error"]["code"] == "worker_crashed"
            assert process.poll() is None
            again = Stream(base, max_tokens=2).end(30)
            assert again[-1] == "data: [DONE]"
    assert ours_below(Path(env["OCTAVO_HOME"])) == []


def test_kill_9_of_the_service_leaves_no_process_of_ours(env: dict[str, str]) -> None:
    home = Path(env["OCTAVO_HOME"])
    assert octavo(env, "load", MODEL, "-c", "512").returncode == 0
    service, worker = endpoint(home).pid, worker_pid(env)
    assert {service, worker} <= {process.pid for process in ours_below(home)}
    os.kill(service, signal.SIGKILL)
    took = wait(lambda: is_gone(worker) and not ours_below(home), "everything ends", 5)
    print(f"\n{took * 1000:.0f} ms from kill -9 of the service to the last process's end")
    assert octavo(env, "load", MODEL, "-c", "512").returncode == 0
    assert endpoint(home).pid != service


def test_sigterm_in_a_stream_ends_serve_with_0_within_10_s(env: dict[str, str]) -> None:
    with octavo_serve(env) as (base, process):
        stream = flowing(base)
        began = time.monotonic()
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0
        print(f"\n{time.monotonic() - began:.1f} s from SIGTERM to the end, with a stream running")
        assert stream.end(1)[-1].startswith("data: ")
    assert ours_below(Path(env["OCTAVO_HOME"])) == []


def test_unload_gives_the_memory_back(env: dict[str, str]) -> None:
    home = Path(env["OCTAVO_HOME"])
    assert octavo(env, "ls").returncode == 0
    assert octavo(env, "load", MODEL, "-c", "2048").returncode == 0
    loaded = _resident(home)
    (freed,) = octavo_json(env, "unload", "--all")
    after = _resident(home)
    print(f"\nresident: {loaded / 1e6:.0f} MB loaded, {after / 1e6:.0f} MB after unload")
    assert freed["came_back"] and freed["freed_bytes"] > 0 and loaded - after > 50e6
    assert octavo_json(env, "ps") == []


def test_a_service_without_a_lease_exits(env: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    home = Path(env["OCTAVO_HOME"])
    quick = {**env, "OCTAVO_LEASE_GRACE_S": "1"}
    assert octavo(quick, "chat", "-p", "hi", "--max-tokens", "2").returncode == 0
    took = wait(lambda: not ours_below(home), "the service goes", 15)
    print(f"\n{took:.1f} s until the service was gone, of which 1 s grace")


def _resident(home: Path) -> int:
    return sum(psutil.Process(process.pid).memory_info().rss for process in ours_below(home))
