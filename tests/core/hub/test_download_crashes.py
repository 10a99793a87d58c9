import asyncio
import contextlib
import hashlib
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from octavo.core.hub.downloads.places import part_of
from octavo.core.hub.types import Download
from tests.core.hub.downloading import Bench, bench, wish_of
from tests.fixtures.hub_double import HubDouble
from tests.fixtures.hub_repositories import MODEL, Faults, HubRepository
from tests.fixtures.hub_sources import Bytes, Virtual, random_bytes
from tests.server.support import in_loop

MB = 1_000_000
SIZE = 200 * MB
KILLS = 20
ROOT = Path(__file__).resolve().parents[3]


def big(hub: HubDouble, bytes_per_s: float) -> str:
    """Register a repository of 200 MB at a pace."""
    return hub.add(HubRepository("big/model", {MODEL: Virtual(SIZE)}, Faults(bytes_per_s=bytes_per_s))).id


def is_intact(path: Path, download: Download) -> bool:
    """Compare a file with what was published."""
    return hashlib.sha256(path.read_bytes()).hexdigest() == download.wish.files[0].sha256


async def _kill(made: Bench, id: str, after_s: float) -> None:
    """Kill the helper some time after it was seen to get on."""
    had = made.downloads.find(id).done_bytes
    await made.until(lambda: made.downloads.find(id).done_bytes > had)
    await asyncio.sleep(after_s)
    pid = made.downloads.helper_pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    await made.until(lambda: made.downloads.helper_pid != pid)


@in_loop
async def test_d01_a_helper_that_is_killed_twenty_times_loses_little(tmp_path: Path) -> None:
    moments = random.Random(7)
    with HubDouble() as hub:
        repo = big(hub, 24 * MB)
        async with bench(tmp_path, hub) as made:
            id = (await made.downloads.add(wish_of(hub, repo))).id
            for _ in range(KILLS):
                await _kill(made, id, moments.uniform(0, 0.12))
            ended = await made.ended(id)
            assert ended.state == "done" and ended.is_verified and is_intact(made.target(repo), ended)
            made.check_progress(id)
        again = (hub.sent - SIZE) / KILLS
        print(f"{KILLS} kills: {again / MB:.2f} MB ({again / SIZE:.2%}) sent again each")
        assert again <= 0.02 * SIZE


HOLDER = """
import asyncio, sys
from pathlib import Path
from tests.core.hub.downloading import bench, wish_of
from tests.fixtures.hub_double import HubDouble
from octavo.core.hub.types import DownloadWish
import msgspec

async def main(folder, models, endpoint, wish):
    async with bench(Path(folder), endpoint, models=Path(models)) as made:
        ended = await made.get(msgspec.json.decode(wish, type=DownloadWish))
        print(ended.state, ended.is_verified, flush=True)

asyncio.run(main(*sys.argv[1:]))
"""


@contextlib.contextmanager
def another(hub: HubDouble, folder: Path, models: Path, repo: str) -> Iterator[subprocess.Popen[str]]:
    """Download in another process, with records of its own."""
    import msgspec

    wish = msgspec.json.encode(wish_of(hub, repo)).decode()
    command = [sys.executable, "-c", HOLDER, str(folder), str(models), hub.endpoint, wish]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.communicate(timeout=10)


@in_loop
async def test_d01_a_service_that_is_killed_takes_its_helper_along_and_goes_on(tmp_path: Path) -> None:
    with HubDouble() as hub:
        repo = big(hub, 80 * MB)
        part = part_of(tmp_path / "models" / repo / MODEL)
        with another(hub, tmp_path, tmp_path / "models", repo) as process:
            while hub.sent < 60 * MB:
                await asyncio.sleep(0.01)
            helpers = psutil.Process(process.pid).children()
            process.kill()
            _gone, alive = await asyncio.to_thread(psutil.wait_procs, helpers, 5)
            assert helpers and not alive and part.exists()
        async with bench(tmp_path, hub) as made:
            [found] = made.downloads.all()
            assert found.done_bytes > 40 * MB
            ended = await made.ended(found.id)
            assert ended.state == "done" and is_intact(made.target(repo), ended)
        print(f"{(hub.sent - SIZE) / MB:.2f} MB sent again")
        assert hub.sent - SIZE <= 0.02 * SIZE


@in_loop
async def test_two_processes_make_one_download(tmp_path: Path) -> None:
    with HubDouble() as hub:
        size = 20 * MB
        hub.add(HubRepository("two/model", {MODEL: Virtual(size)}, Faults(bytes_per_s=10 * MB)))
        models = tmp_path / "one" / "models"
        async with bench(tmp_path / "one", hub) as made:
            id = (await made.downloads.add(wish_of(hub, "two/model"))).id
            await made.until(lambda: made.downloads.find(id).done_bytes > 0)
            with another(hub, tmp_path / "other", models, "two/model") as process:
                said, _ = await asyncio.to_thread(process.communicate, timeout=30)
            ended = await made.ended(id)
        assert ended.state == "done" and said.split() == ["done", "True"]
        print(f"{hub.sent / size:.3f} of the size was sent")
        assert hub.sent == size


@in_loop
async def test_the_helper_ends_when_it_has_nothing_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("octavo.core.hub.downloads.queue.IDLE_S", 0.3)
    with HubDouble() as hub:
        async with bench(tmp_path, hub) as made:
            assert made.downloads.helper_pid is None
            await made.get(wish_of(hub, "ok/plain"))
            await made.until(lambda: made.downloads.helper_pid is None)
            assert (await made.get(wish_of(hub, "ok/redirect"))).state == "done"


@contextlib.contextmanager
def small_disk(megabytes: int) -> Iterator[Path]:
    """Mount a small disk; the test is skipped where only root could."""
    folder = Path(tempfile.mkdtemp(prefix="octavo-disk-"))
    mount = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode:
        folder.rmdir()
        pytest.skip("a small disk can be mounted by root only")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)
        folder.rmdir()


@in_loop
async def test_d04_what_does_not_fit_is_not_begun(tmp_path: Path) -> None:
    with HubDouble() as hub, small_disk(20) as disk:
        hub.add(HubRepository("big/model", {MODEL: Virtual(250 * MB)}))
        async with bench(tmp_path, hub, models=disk) as made:
            ended = await made.get(wish_of(hub, "big/model"))
            assert ended.state == "paused" and ended.error is not None
            assert ended.error.code == "storage_failed" and "not enough room" in ended.error.message
            assert "Free" in ended.error.hint and not hub.gets("big/model")
            assert not list(disk.iterdir())


@in_loop
async def test_d04_a_disk_that_fills_up_pauses_and_is_gone_on_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # a file system that can't reserve blocks (NFS, FAT) is what fills up under a download
    monkeypatch.setenv("PYTHONPATH", str(_without_reserving(tmp_path)))
    with HubDouble() as hub, small_disk(20) as disk:
        hub.add(HubRepository("mid/model", {MODEL: Bytes(random_bytes(12 * MB))}, Faults(bytes_per_s=6 * MB)))
        async with bench(tmp_path, hub, models=disk) as made:
            id = (await made.downloads.add(wish_of(hub, "mid/model"))).id
            await made.until(lambda: made.downloads.find(id).done_bytes > MB)
            with contextlib.suppress(OSError), (disk / "other").open("wb", buffering=0) as other:
                while True:
                    other.write(bytes(64 * 1024))
            ended = await made.ended(id)
            assert ended.state == "paused" and ended.error is not None
            assert ended.error.code == "storage_failed" and "No space left" in ended.error.message
            (disk / "other").unlink()
            await made.downloads.resume(id)
            assert (await made.ended(id)).is_verified


def _without_reserving(folder: Path) -> Path:
    place = folder / "site"
    place.mkdir()
    (place / "sitecustomize.py").write_text(
        "import os\nif hasattr(os, 'posix_fallocate'):\n    del os.posix_fallocate\n"
    )
    return place


@in_loop
async def test_d04_records_on_a_full_disk_stop_nothing(tmp_path: Path) -> None:
    with HubDouble() as hub, small_disk(1) as disk:
        with contextlib.suppress(OSError), (disk / "full").open("wb", buffering=0) as full:
            while True:
                full.write(bytes(4096))
        shutil.copytree(disk, tmp_path / "seen", dirs_exist_ok=True)
        (tmp_path / "models").mkdir()
        async with bench(disk / "state", hub, models=tmp_path / "models") as made:
            assert (await made.get(wish_of(hub, "ok/plain"))).state == "done"
