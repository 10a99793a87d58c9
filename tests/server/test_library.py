"""The library over the service: what changes is told unasked, and models are checked, paired and deleted."""

import asyncio
import hashlib
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import quote

from octavo.core.client.types import StreamEvent
from octavo.core.errors import (
    AmbiguousModel,
    FolderNotFound,
    ForeignFile,
    InstanceBusy,
    ModelNotFound,
)
from octavo.core.events import LibraryChanged, VerifyProgressed
from octavo.core.library.checksums import Checksums
from tests.fixtures.gguf_builder import pair, tiny
from tests.fixtures.layouts import build_layout, projector
from tests.server.support import Served, in_loop, raises, served, until

SOUND, OTHER = tiny(embedding_length=64).build(), tiny("gemma3", pair("general.file_type", 7)).build()
GOAL_S = 2.0


def put(path: Path, data: bytes = SOUND) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


async def listed(at: Served, *ids: str) -> None:
    """Wait until the service has these models; a listing may be a second old."""
    async with asyncio.timeout(10):
        while [model.key for model in await at.client.models()] != list(ids):
            await asyncio.sleep(0.05)


@asynccontextmanager
async def told(at: Served, kind: type[StreamEvent]) -> AsyncIterator[list[StreamEvent]]:
    """Gather the events of one kind while the block runs."""
    gathered: list[StreamEvent] = []

    async def follow() -> None:
        async for event in at.client.events():
            if isinstance(event, kind):
                gathered.append(event)

    following = asyncio.create_task(follow())
    await until(lambda: len(at.studio.hub._followers) > 0)
    try:
        yield gathered
    finally:
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)


@in_loop
async def test_a_file_copied_in_is_told_of_though_nobody_asks(octavo_home: Path) -> None:
    async with served(octavo_home) as at, told(at, LibraryChanged) as changes:
        await asyncio.sleep(1)
        began = time.monotonic()
        path = put(at.home.models / "p/m/x.gguf")
        await until(lambda: any(getattr(event, "models", 0) == 1 for event in changes))
        print(f"told of a new file after {time.monotonic() - began:.2f} s, goal {GOAL_S} s")
        count, began = len(changes), time.monotonic()
        path.unlink()
        await until(lambda: len(changes) > count)
        print(f"told of a deleted file after {time.monotonic() - began:.2f} s, goal {GOAL_S} s")
        await at.client.models()
        await asyncio.sleep(0.5)
        assert len(changes) == count + 1, "told twice"


@in_loop
async def test_b13_a_folder_of_the_settings_is_live_and_greyed_while_it_is_away(
    octavo_home: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "drive"
    put(folder / "p/m/x.gguf")
    async with served(octavo_home) as at, told(at, LibraryChanged) as changes:
        await asyncio.sleep(0.5)
        await at.client.change_settings("library", folders=[str(folder)])
        await until(lambda: len(changes) == 1)
        folder.rename(tmp_path / "away")
        await until(lambda: len(changes) == 2)
        (row,) = await at.client.models()
        assert row.is_offline and row.fault is not None and "not found" in row.fault
        await raises(FolderNotFound, at.client.verify_model("p/m"))
        await raises(FolderNotFound, at.client.remove_model("p/m"))
        assert (await at.client.settings())["library"]["folders"] == [str(folder)]
        (tmp_path / "away").rename(folder)
        await until(lambda: len(changes) == 3)
        (row,) = await at.client.models()
        assert not row.is_offline and row.fault is None and row.source == "folder"


@in_loop
async def test_b11_a_short_name_lists_both_and_a_deletion_hits_one(octavo_home: Path) -> None:
    async with served(octavo_home) as at:
        for name, data in (("dup-pub-1", SOUND), ("dup-pub-2", OTHER)):
            put(at.home.models / name / "same/gemma.gguf", data)
        both = ["dup-pub-1/same", "dup-pub-2/same"]
        fault = await raises(AmbiguousModel, at.client.remove_model("same"))
        assert fault.details["candidates"] == both
        near = await raises(ModelNotFound, at.client.remove_model("dup-pub-1"))
        assert near.details["candidates"] == both[:1]
        plan = await at.client.remove_model(both[0], dry_run=True)
        assert plan.dry_run and plan.freed_bytes == len(SOUND)
        assert [model.key for model in await at.client.models()] == both
        gone = await at.client.remove_model(both[0], permanently=True)
        assert not gone.dry_run and [model.key for model in await at.client.models()] == both[1:]


@in_loop
async def test_a_loaded_model_is_deleted_only_when_that_is_forced(octavo_home: Path) -> None:
    async with served(octavo_home) as at:
        path = put(at.home.models / "p/m/x.gguf")
        await listed(at, "p/m")
        await at.client.load("p/m", identifier="mine")
        fault = await raises(InstanceBusy, at.client.remove_model("p/m", permanently=True))
        assert "mine" in fault.message and path.exists()
        await at.client.remove_model("p/m", force=True, permanently=True)
        assert not path.exists() and await at.client.instances() == []


@in_loop
async def test_foreign_models_are_listed_and_refused(octavo_home: Path) -> None:
    lm = put(Path.home() / ".lmstudio/models/p/theirs/x.gguf")
    try:
        async with served(octavo_home) as at:
            (row,) = [model for model in await at.client.models() if model.source == "lm_studio"]
            for forced in (False, True):
                await raises(ForeignFile, at.client.remove_model(row.key, force=forced))
            assert lm.exists()
            await at.client.change_settings("library", lm_studio=False)
            await asyncio.sleep(1.1)
            assert await at.client.models() == []
    finally:
        lm.unlink()


@in_loop
async def test_b10_odd_ids_go_through_urls_and_words_find_models(octavo_home: Path) -> None:
    layout = build_layout(octavo_home / "models")
    async with served(octavo_home) as at:
        models = await at.client.models()
        for row in models:
            answer = await at.control.delete(f"/api/v1/models/{quote(row.key, safe='')}?dry_run=1")
            assert answer.status_code == 200 and answer.json()["model"] == row.key, answer.text
        assert [model.key for model in await at.client.models("模型 é")] == [
            model.key for model in models if "模型" in model.key
        ]
        assert len(layout.expected) >= 59 and len(await at.client.models()) == len(models)


@in_loop
async def test_b08_verify_tells_progress_and_damage(octavo_home: Path) -> None:
    async with served(octavo_home) as at, told(at, VerifyProgressed) as steps:
        path = put(at.home.models / "p/m/x.gguf", SOUND + bytes(9 << 20))
        Checksums(at.home).note(path, hashlib.sha256(path.read_bytes()).hexdigest(), "somebody")
        answer = await at.client.verify_model("p/m")
        assert answer.is_sound and answer.files[0].source == "somebody"
        await until(lambda: len(steps) > 0)
        with open(path, "r+b") as file:
            file.seek(5 << 20)
            file.write(b"\1")
        answer = await at.client.verify_model("p/m")
        assert not answer.is_sound and answer.files[0].outcome == "damaged"


@in_loop
async def test_duplicates_and_projectors(octavo_home: Path, tmp_path: Path) -> None:
    async with served(octavo_home) as at:
        put(at.home.models / "p/a/a.gguf")
        put(at.home.models / "p/b/b.gguf")
        await listed(at, "p/a", "p/b")
        (group,) = await at.client.duplicates()
        assert group.models == ["p/a", "p/b"] and group.wasted_bytes == len(SOUND)
        eyes = put(tmp_path / "eyes.gguf", projector())
        row = await at.client.choose_projector("p/a", str(eyes))
        assert row.projector == str(eyes) and row.capabilities.vision
        assert not (await at.client.choose_projector("p/a", "none")).capabilities.vision


@in_loop
async def test_agents_may_list_but_neither_delete_nor_read_files(octavo_home: Path) -> None:
    async with served(octavo_home) as at:
        put(at.home.models / "p/m/x.gguf")
        await listed(at, "p/m")
        assert (await at.public.get("/api/v1/models?q=p/m")).json()["models"][0]["key"] == "p/m"
        assert (await at.public.delete("/api/v1/models/p%2Fm")).status_code == 404
        for path in ("verify", "projector"):
            body = {"model": "p/m", "projector": "none"}
            assert (await at.public.post(f"/api/v1/models/{path}", json=body)).status_code == 404
        assert (await at.public.get("/api/v1/models/duplicates")).status_code == 404
