"""D04: a service starts on a disk without a free byte, and loses nothing there."""

import asyncio
import contextlib
from pathlib import Path

import pytest

from octavo.core.client import ServiceClient
from octavo.core.config.paths import Home
from octavo.core.config.reserve import RESERVE_BYTES, Reserve
from octavo.core.config.settings import SettingsFile
from tests.core.hub.test_download_crashes import small_disk
from tests.server.processes import end_service, fake_services

MEGABYTES = 320  # more than what counts as roomy


def fill(disk: Path) -> Path:
    """Write until nothing more fits."""
    full = disk / "full"
    with contextlib.suppress(OSError), full.open("wb", buffering=0) as file:
        while file.write(bytes(1 << 20)):
            pass
    with contextlib.suppress(OSError), full.open("ab", buffering=0) as file:
        while file.write(bytes(512)):
            pass
    return full


def test_d04_the_service_starts_with_its_whole_home_on_a_full_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    async def begin(title: str) -> int:
        async with await ServiceClient.start_or_connect(home) as client:
            await client.change_settings("server", port=4321)
            return len((await client.create_chat(title=title)).id)

    async def look() -> tuple[list[str], int]:
        async with await ServiceClient.start_or_connect(home) as client:
            assert (await client.health()).status == "ok"
            chats = [chat.title for chat in await client.chats()]
            await client.models()
            settings = await client.settings()
            return chats, int(settings["server"]["port"])

    with small_disk(MEGABYTES) as disk:
        monkeypatch.setenv("OCTAVO_HOME", str(disk))
        home = Home(disk)
        with fake_services(disk, monkeypatch):
            assert asyncio.run(begin("kept"))
            end_service(disk)
            assert home.reserve.stat().st_size == RESERVE_BYTES
            full = fill(disk)
            assert asyncio.run(look()) == (["kept"], 4321)
            assert not home.reserve.exists()
            end_service(disk)
            full.unlink()
            assert asyncio.run(look()) == (["kept"], 4321)
            assert home.reserve.exists()
        assert SettingsFile(home.settings).current.server.port == 4321


def test_a_reserve_is_made_only_where_there_is_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reserve = Reserve(tmp_path / "reserve")
    monkeypatch.setattr("octavo.core.config.reserve._free", lambda folder: 100 << 20)
    reserve.keep()
    assert not (tmp_path / "reserve").exists()
    monkeypatch.setattr("octavo.core.config.reserve._free", lambda folder: 1 << 40)
    reserve.keep()
    reserve.keep()
    assert (tmp_path / "reserve").stat().st_size == RESERVE_BYTES
    assert not reserve.give_up_if_full()
    monkeypatch.setattr("octavo.core.config.reserve._free", lambda folder: 4096)
    assert reserve.give_up_if_full()
    assert not reserve.give_up_if_full()
