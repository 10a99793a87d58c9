"""The service's process: one per home, whatever happened to the last one, and gone when nobody needs it."""

import asyncio
import os
import signal
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from octavo.core.client import ServiceClient
from octavo.core.client.start import ALREADY_RUNNING
from octavo.core.config.paths import Home
from octavo.core.errors import ServiceUnavailable
from octavo.server.lock import ServiceLock
from octavo.server.sockets import bind_unix
from tests.server.processes import endpoint, fake_service_command, fake_services, is_gone, wait
from tests.server.support import in_loop, raises, until


@pytest.fixture(autouse=True)
def services(octavo_home: Path, monkeypatch: pytest.MonkeyPatch):  # type: ignore[no-untyped-def]
    """Let clients start fake services, and end them."""
    with fake_services(octavo_home, monkeypatch, grace_s=1.0):
        yield


def test_two_racing_starts_end_with_one_service(octavo_home: Path) -> None:
    async def race() -> set[int]:
        home = Home(octavo_home)
        clients = await asyncio.gather(*(ServiceClient.start_or_connect(home) for _ in range(3)))
        pids = {(await client.health()).pid for client in clients}
        for client in clients:
            await client.aclose()
        return pids

    assert asyncio.run(asyncio.wait_for(race(), 30)) == {endpoint(octavo_home).pid}


def test_a_second_service_says_that_one_runs(octavo_home: Path) -> None:
    home = Home(octavo_home)
    home.prepare()
    home.endpoint.write_bytes(b"{}")
    first = ServiceLock(home.lock)
    assert first.acquire()
    second = subprocess.run(fake_service_command(), timeout=30, capture_output=True)
    first.release()
    assert second.returncode == ALREADY_RUNNING


def test_a_service_that_nobody_needs_exits_cleanly_and_leaves_nothing(octavo_home: Path) -> None:
    pid = asyncio.run(_visit(octavo_home))
    wait(lambda: is_gone(pid), "the service goes", 10)
    assert sorted(path.name for path in (octavo_home / "run").iterdir()) == ["reserve", "service.lock"]
    assert "nobody needs it" in (octavo_home / "logs" / "service.log").read_text()


@in_loop
async def test_a_lease_keeps_the_service_and_its_end_lets_it_go(octavo_home: Path) -> None:
    client = await ServiceClient.start_or_connect(Home(octavo_home))
    pid = (await client.health()).pid
    stream = client.events(lease="window")
    await anext(stream)
    await asyncio.sleep(2.5)
    assert not is_gone(pid)
    await client.aclose()
    await asyncio.to_thread(wait, lambda: is_gone(pid), "the service goes", 10)


def test_kill_9_leaves_no_process_and_a_new_service_can_start(octavo_home: Path) -> None:
    first = asyncio.run(_visit(octavo_home))
    os.kill(first, signal.SIGKILL)
    wait(lambda: is_gone(first), "the service dies")
    # its socket and its address are still there, and stale
    assert endpoint(octavo_home).pid == first and Home(octavo_home).control_socket.exists()
    second = asyncio.run(_visit(octavo_home))
    assert second != first and endpoint(octavo_home).pid == second


@pytest.mark.parametrize("kind", [signal.SIGTERM, signal.SIGINT])
def test_signals_end_it_with_exit_code_0(octavo_home: Path, kind: signal.Signals) -> None:
    with subprocess.Popen(fake_service_command()) as process:
        wait((octavo_home / "run" / "service.json").exists, "the service begins")
        process.send_signal(kind)
        assert process.wait(10) == 0


def test_the_control_socket_is_for_this_person_only(octavo_home: Path) -> None:
    asyncio.run(_visit(octavo_home))
    control = Home(octavo_home).control_socket
    assert stat.S_IMODE(control.stat().st_mode) == 0o600
    assert stat.S_IMODE(control.parent.stat().st_mode) == 0o700


def test_a_long_home_gets_its_socket_elsewhere(octavo_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    long = octavo_home / ("d" * 120)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(octavo_home / "x"))
    monkeypatch.setenv("OCTAVO_HOME", str(long))
    pid = asyncio.run(_visit(long))
    assert endpoint(long).address.startswith(str(octavo_home / "x"))
    os.kill(pid, signal.SIGTERM)
    wait(lambda: is_gone(pid), "the service ends")


def test_a_stale_address_is_no_service(octavo_home: Path) -> None:
    home = Home(octavo_home)
    home.prepare()
    for address in (
        b'{"pid":1,"version":"0","kind":"unix","address":"/nowhere/control.sock"}',
        b'{"pid":1,"version":"0","kind":"loopback","address":"127.0.0.1:1","token_file":"/nowhere"}',
        b"not json",
    ):
        home.endpoint.write_bytes(address)
        asyncio.run(raises(ServiceUnavailable, ServiceClient.connect(home)))


def test_a_service_that_cannot_start_says_why(octavo_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failing = [sys.executable, "-c", "raise SystemExit('no disk today')"]
    monkeypatch.setattr("octavo.core.client.start.command", lambda: failing)
    fault = asyncio.run(raises(ServiceUnavailable, ServiceClient.start_or_connect(Home(octavo_home))))
    assert "no disk today" in fault.message


def test_the_lock_has_one_holder_and_no_memory(tmp_path: Path) -> None:
    first, second = ServiceLock(tmp_path / "lock"), ServiceLock(tmp_path / "lock")
    assert first.acquire() and not second.acquire()
    first.release()
    assert second.acquire()
    second.release()


@in_loop
async def test_a_start_while_the_last_service_ends_gets_a_new_one(octavo_home: Path) -> None:
    home = Home(octavo_home)
    async with await ServiceClient.start_or_connect(home) as first:
        pid = (await first.health()).pid
        answer = first.complete_chat("slow", [{"role": "user", "content": "hi"}])
        await anext(answer)
        os.kill(pid, signal.SIGTERM)
        await until(lambda: not home.endpoint.exists())
        assert not is_gone(pid)
        async with await ServiceClient.start_or_connect(home) as second:
            assert (await second.health()).pid != pid
        await answer.aclose()


def test_a_stale_socket_file_is_replaced(octavo_home: Path) -> None:
    path = octavo_home / "s.sock"
    bind_unix(path).close()
    assert path.exists()
    with bind_unix(path) as bound:
        bound.listen()
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(path))


async def _visit(folder: Path) -> int:
    async with await ServiceClient.start_or_connect(Home(folder)) as client:
        return (await client.health()).pid
