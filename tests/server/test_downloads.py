import asyncio
import contextlib
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from octavo.core.errors import DownloadNotFound, GatedRepository, HubFileNotFound
from octavo.core.events import DownloadChanged, LibraryChanged
from octavo.core.hub.downloads.part import Part
from octavo.core.hub.downloads.places import part_of
from octavo.core.hub.downloads.records import Records
from octavo.core.hub.types import Download
from octavo.core.library.checksums import Checksums
from octavo.server.service import holders
from tests.core.hub.downloading import wish_of
from tests.core.hub.test_download_crashes import small_disk
from tests.fixtures.gguf_builder import tiny
from tests.fixtures.hub_double import HubDouble
from tests.fixtures.hub_repositories import MODEL, Faults, HubRepository
from tests.fixtures.hub_sources import Bytes, random_bytes
from tests.server.processes import end_service, wait
from tests.server.support import in_loop, raises, served, until

MB = 1_000_000


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[HubDouble]:
    """The double, as the Hub that the environment names."""
    with HubDouble() as double:
        monkeypatch.setenv("HF_ENDPOINT", double.endpoint)
        monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
        yield double


@in_loop
async def test_a_download_goes_into_the_library_and_everyone_is_told(
    octavo_home: Path, hub: HubDouble
) -> None:
    async with served(octavo_home) as made:
        told: list[object] = []

        async def follow() -> None:
            async for event in made.client.events():
                told.append(event)

        following = asyncio.create_task(follow())
        await asyncio.sleep(0.1)
        begun = await made.client.download("ok/plain@Q4_K_M")
        assert begun.job_id and begun.status == "downloading" and begun.total_size_bytes == 3_000_017
        await until(lambda: any(isinstance(e, DownloadChanged) and e.download.state == "done" for e in told))
        assert any(isinstance(event, LibraryChanged) for event in told)
        ended = await made.client.download_status(begun.job_id)
        assert ended.status == "completed" and ended.download and ended.download.is_verified
        assert [each.id for each in await made.client.downloads()] == [begun.job_id]
        path = octavo_home / "models" / "ok" / "plain" / MODEL
        known = Checksums(made.home).known(path)
        assert known is not None and known.sha256 == hub.repositories["ok/plain"].files[MODEL].sha256
        assert (await made.client.download("ok/plain", "Q4_K_M")).status == "already_downloaded"
        await made.client.forget_download(begun.job_id)
        assert await made.client.downloads() == []
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)


@in_loop
async def test_pause_resume_cancel_and_what_holds_the_service(octavo_home: Path, hub: HubDouble) -> None:
    async with served(octavo_home) as made:
        begun = await made.client.download("bad/slow")
        id = begun.job_id or ""

        class NoDoor:
            in_flight = 0

        assert f"download {id}" in holders(made.studio, NoDoor())  # type: ignore[arg-type]
        assert (await made.client.pause_download(id)).status == "paused"
        assert f"download {id}" not in holders(made.studio, NoDoor())  # type: ignore[arg-type]
        assert (await made.client.resume_download(id)).status == "downloading"
        assert (await made.client.cancel_download(id)).status == "failed"
        await until(lambda: not list((octavo_home / "models").iterdir()))
        await raises(DownloadNotFound, made.client.pause_download("nothing"))


@in_loop
async def test_the_hubs_refusals_come_out_of_the_route(octavo_home: Path, hub: HubDouble) -> None:
    async with served(octavo_home) as made:
        await raises(GatedRepository, made.client.download("err/gated"))
        fault = await raises(HubFileNotFound, made.client.download("ok/subfolder@Q9"))
        assert "UD-Q2_K_XL" in fault.details["candidates"]
        answer = await made.control.post("/api/v1/models/download", json={"model": "../../evil.gguf"})
        assert answer.status_code == 400
        both = {"model": "ok/plain@Q4_K_M", "quantization": "Q8_0"}
        assert (await made.control.post("/api/v1/models/download", json=both)).status_code == 400


@in_loop
async def test_agents_may_download_only_where_the_settings_say_so(octavo_home: Path, hub: HubDouble) -> None:
    async with served(octavo_home) as made:
        routes = [("GET", "/api/v1/downloads"), ("POST", "/api/v1/models/download/x/cancel")]
        for method, route in routes:
            assert (await made.public.request(method, route)).status_code == 404
        body = {"model": "ok/plain", "quantization": "Q4_K_M"}
        assert (await made.public.post("/api/v1/models/download", json=body)).status_code == 404
        await made.client.change_settings("hub", agents_may_download=True)
        answer = await made.public.post("/api/v1/models/download", json=body)
        assert answer.status_code == 200 and answer.json()["job_id"]
        status = await made.public.get(f"/api/v1/models/download/status/{answer.json()['job_id']}")
        assert status.json()["total_size_bytes"] == 3_000_017


@in_loop
async def test_a_change_of_the_settings_reaches_the_downloads(octavo_home: Path, hub: HubDouble) -> None:
    async with served(octavo_home) as made:
        id = (await made.client.download("ok/plain")).job_id or ""
        await made.client.pause_download(id)
        await made.client.change_settings("hub", offline=True)
        await made.client.resume_download(id)
        await until(lambda: made.studio.downloads.find(id).state == "paused")
        error = made.studio.downloads.find(id).error
        assert error is not None and error.code == "hub_offline"
        await made.client.change_settings("hub", offline=False)
        await until(lambda: made.studio.downloads.find(id).state == "done")


# ---- the command line, with a real service


@pytest.fixture
def home(octavo_home: Path, hub: HubDouble, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A home whose service, if one is started, is ended."""
    monkeypatch.setenv("OCTAVO_LEASE_GRACE_S", "2")
    monkeypatch.setenv("OCTAVO_HOME", str(octavo_home))
    yield octavo_home
    end_service(octavo_home)


def get(*words: str) -> subprocess.CompletedProcess[str]:
    """Run ``octavo get``."""
    return subprocess.run(
        [*OCTAVO, "get", *words],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


OCTAVO = [sys.executable, "-m", "octavo.server.cli.main"]


def test_get_downloads_starts_the_service_and_says_that_it_was_verified(home: Path, hub: HubDouble) -> None:
    hub.add(HubRepository("ok/plain", {MODEL: Bytes(tiny().build())}))
    first = get("ok/plain@Q4_K_M")
    assert first.returncode == 0 and "verified" in first.stdout, first.stderr
    again = get(f"{hub.endpoint}/ok/plain/blob/main/{MODEL}", "--json")
    assert msgspec.json.decode(again.stdout)["status"] == "already_downloaded", again.stderr
    listed = get("--list", "--json")
    [row] = msgspec.json.decode(listed.stdout)
    assert row["state"] == "done" and row["is_verified"] is True
    several = get("ok/subfolder", "--json")
    assert several.returncode == 1
    error = msgspec.json.decode(several.stdout)["error"]
    assert error["code"] == "hub_file_not_found" and "UD-Q2_K_XL" in error["details"]["candidates"]
    noise = get("ok/subfolder", "--quant", "UD-Q2_K_XL", "--no-projector")
    assert noise.returncode == 1 and "can't be read as a model" in noise.stdout
    assert "verified" in noise.stdout and "octavo load" not in noise.stdout
    assert get("ok/subfolder", "--quant", "UD-Q2_K_XL", "--no-projector", "--json").returncode == 1
    assert not list((home / "models").rglob("mmproj*"))
    assert "Nothing was done: the download is done." in get("--pause", row["id"]).stderr


def test_get_refuses_mlx_and_tells_what_is_wrong(home: Path, hub: HubDouble) -> None:
    assert get("ok/plain", "--mlx").returncode == 2
    assert get().returncode == 2
    assert get("ok/plain", "--quant", "Q4_K_M", "--file", MODEL).returncode == 2
    assert get("--pause", "").returncode == 2 and get("--list", "--pause", "x").returncode == 2
    for id in ("../../x", "a/b", "."):
        assert "There is no download" in get("--cancel", id).stderr
    nameless = get("@")
    assert nameless.returncode == 1 and "names no model" in nameless.stderr
    searched = get("some", "words")
    assert searched.returncode == 1 and "called some words" in searched.stderr
    hostile = get("../../evil.gguf", "--json")
    assert hostile.returncode == 1 and not list(home.rglob("evil*"))
    failed = get("bad/hash@Q4_K_M", "--json")
    assert failed.returncode == 1
    assert msgspec.json.decode(failed.stdout)["error"]["code"] == "checksum_mismatch"


def test_ctrl_c_leaves_the_download_going_in_the_background(home: Path, hub: HubDouble) -> None:
    faults = Faults(bytes_per_s=1.5 * MB)
    hub.add(HubRepository("slow/model", {MODEL: Bytes(random_bytes(8 * MB))}, faults))
    process = subprocess.Popen([*OCTAVO, "get", "slow/model@Q4_K_M"], stderr=subprocess.PIPE, text=True)
    wait(lambda: hub.sent > 100_000, "the download begins")
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=20)
    assert process.returncode == 130 and "goes on in the background" in said
    # nothing else holds the service for longer than its grace
    wait(lambda: (home / "models" / "slow" / "model" / MODEL).is_file(), "the download ends")


@in_loop
async def test_d04_the_service_starts_with_its_models_on_a_full_disk(
    octavo_home: Path, hub: HubDouble
) -> None:
    with small_disk(24) as disk:
        (octavo_home / "models").symlink_to(disk)
        with contextlib.suppress(OSError), (disk / "full").open("wb", buffering=0) as full:
            while True:
                full.write(bytes(4096))
        async with served(octavo_home) as made:
            id = (await made.client.download("ok/plain")).job_id or ""
            await until(lambda: made.studio.downloads.find(id).state == "paused")
            error = made.studio.downloads.find(id).error
            assert error is not None and error.code == "storage_failed"
            (disk / "full").unlink()
            await made.client.resume_download(id)
            await until(lambda: made.studio.downloads.find(id).state == "done")


def test_without_a_service_what_was_at_work_is_told_to_be_interrupted(home: Path, hub: HubDouble) -> None:
    wish = wish_of(hub, "ok/plain")
    record = Download(id="0" * 12, wish=wish, state="running", total_bytes=3_000_017, added_at=1.0)
    Records(home / "downloads").save(record)
    part = Part.open(part_of(home / "models" / "ok" / "plain" / MODEL), 3_000_017)
    assert part is not None
    part.reserve()
    part.write(0, memoryview(bytes(MB)))
    part.checkpoint()
    part.close()
    told = get("--list")
    assert told.returncode == 0 and "interrupted" in told.stdout and "33%" in told.stdout, told.stderr
    [row] = msgspec.json.decode(get("--list", "--json").stdout)
    assert (row["state"], row["done_bytes"]) == ("queued", MB)
