"""Measure the downloader against curl, its speed without a limit, and the memory of its helper.

    python -m tests.benchmarks.downloads [--rounds N] [--megabytes N] [--fast-megabytes N] [--gigabytes N]

The Hub double runs in a process of its own. curl writes the same file to the same disk and checks nothing;
ours also computes the SHA-256, and makes the file durable before it gets its name.
"""

import argparse
import asyncio
import contextlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psutil

from octavo.core.hub.downloads.queue import Downloads
from octavo.core.hub.types import Access, Download, DownloadWish, HubFile
from tests.fixtures.hub_repositories import MODEL
from tests.fixtures.hub_sources import Virtual

ROOT = Path(__file__).resolve().parents[2]
REPO = "big/model"
THROTTLE = 100_000_000
ROOM_BYTES = 4 << 30


@contextlib.contextmanager
def hub(size: int, bytes_per_s: int = 0) -> Iterator[str]:
    """Run a Hub double in its own process; gives its endpoint."""
    command = [sys.executable, "-m", "tests.fixtures.hub_double", "--size", str(size)]
    process = subprocess.Popen(
        [*command, "--bytes-per-s", str(bytes_per_s)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None and process.stdout is not None
    try:
        yield process.stdout.readline().strip()
    finally:
        process.stdin.close()
        process.wait(10)


async def ours(endpoint: str, folder: Path, size: int, sha256: str | None, memory: list[int]) -> float:
    """Download with our downloader; gives the seconds. ``memory`` gets the helper's own bytes."""
    wish = DownloadWish(
        repo=REPO,
        revision="main",
        name="Q4_K_M",
        files=[HubFile(path=MODEL, size_bytes=size, sha256=sha256)],
        publisher="big",
        model="model",
    )
    ended: asyncio.Future[Download] = asyncio.get_running_loop().create_future()

    def publish(download: Download) -> None:
        if download.state in ("done", "failed", "paused") and not ended.done():
            ended.set_result(download)

    async def on_done(download: Download) -> None:
        """Nothing is to be told."""

    access = Access(endpoint=endpoint)
    downloads = Downloads(folder / "models", folder / "state", lambda: access, publish, on_done)
    (folder / "models").mkdir()
    await downloads.start()
    began = time.monotonic()
    await downloads.add(wish)
    while not ended.done():
        await asyncio.wait({ended}, timeout=0.5)
        if downloads.helper_pid:
            with contextlib.suppress(psutil.Error):
                memory.append(psutil.Process(downloads.helper_pid).memory_full_info().uss)
    seconds = time.monotonic() - began
    await downloads.close()
    assert ended.result().state == "done", ended.result().error
    assert ended.result().is_verified == (sha256 is not None)
    return seconds


def curl(endpoint: str, folder: Path) -> float:
    """Download with curl; gives the seconds."""
    began = time.monotonic()
    url = f"{endpoint}/{REPO}/resolve/main/{MODEL}"
    subprocess.run(["curl", "-sfL", "-o", str(folder / "curl"), url], check=True)
    return time.monotonic() - began


def in_turn(size: int, bytes_per_s: int, rounds: int) -> tuple[float, float]:
    """Download in turn with both; gives the median seconds of curl and ours."""
    digest = Virtual(size).sha256
    theirs: list[float] = []
    mine: list[float] = []
    with hub(size, bytes_per_s) as endpoint:
        for _ in range(rounds):
            with folder_below() as folder:
                theirs.append(curl(endpoint, folder))
            with folder_below() as folder:
                mine.append(asyncio.run(ours(endpoint, folder, size, digest, [])))
    return statistics.median(theirs), statistics.median(mine)


@contextlib.contextmanager
def folder_below() -> Iterator[Path]:
    """Lend a folder on this disk."""
    with tempfile.TemporaryDirectory(prefix="octavo-bench-") as folder:
        yield Path(folder)


def compare(name: str, size: int, bytes_per_s: int, rounds: int) -> None:
    """Print a row: both speeds, and the ratio of curl's time to ours."""
    theirs, mine = in_turn(size, bytes_per_s, rounds)
    print(
        f"{name:12} {size / 1e6:7.0f} MB  curl {size / theirs / 1e6:7.1f} MB/s  "
        f"ours {size / mine / 1e6:7.1f} MB/s  ratio {theirs / mine:.3f}",
        flush=True,
    )


def long_run(size: int) -> None:
    """Print how the helper's memory is while a big file comes, which really lies on the disk."""
    free = shutil.disk_usage(tempfile.gettempdir()).free
    if free < size + ROOM_BYTES:
        print(f"memory: skipped, {free / 1e9:.0f} GB are free")
        return
    digest, memory = Virtual(size).sha256, list[int]()
    with hub(size) as endpoint, folder_below() as folder:
        seconds = asyncio.run(ours(endpoint, folder, size, digest, memory))
    tenth = max(len(memory) // 10, 1)
    early, late = statistics.median(memory[tenth : 3 * tenth]), statistics.median(memory[-2 * tenth :])
    print(
        f"memory       {size / 1e6:7.0f} MB in {seconds:.0f} s ({size / seconds / 1e6:.0f} MB/s): "
        f"helper's own (USS) early {early / 1e6:.1f}, late {late / 1e6:.1f}, most {max(memory) / 1e6:.1f} MB"
    )


def main() -> None:
    """Run all of it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--megabytes", type=int, default=400)
    parser.add_argument("--fast-megabytes", type=int, default=2000)
    parser.add_argument("--gigabytes", type=float, default=10)
    given = parser.parse_args()
    compare("100 MB/s", given.megabytes * 1_000_000, THROTTLE, given.rounds)
    compare("no limit", given.fast_megabytes * 1_000_000, 0, given.rounds)
    if given.gigabytes:
        long_run(int(given.gigabytes * 1e9))


if __name__ == "__main__":
    main()
