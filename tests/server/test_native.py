"""The native routes: loading, unloading, the library, settings, the public port, chats and replies."""

import asyncio
import socket
from pathlib import Path

import pytest

from octavo.core.chats.types import ReplyEnded, ReplySnapshot
from octavo.core.errors import Conflict, InvalidConfig, ModelNotFound, OctavoError
from octavo.core.events import ServerChanged
from tests.fakes import MODEL
from tests.server.support import in_loop, raises, served, until


@in_loop
async def test_load_takes_our_fields_and_lm_studios(octavo_home: Path) -> None:
    async with served(octavo_home) as at:
        fields = {"context_length": 1024, "flash_attention": True, "parallel": 2, "eval_batch_size": 64}
        body = {"model": MODEL, "identifier": "mine", **fields, "kv_k": "q8_0", "num_experts": 3, "ttl": None}
        answer = (await at.public.post("/api/v1/models/load", json=body)).json()
        assert answer["instance_id"] == "mine" and answer["status"] == "loaded" and answer["type"] == "llm"
        assert at.runtime.loads == [
            (MODEL, {"context": 1024, "flash_attention": "on", "slots": 2, "batch": 64, "kv_k": "q8_0"}, None)
        ]
        assert [status.instance for status in await at.client.instances()] == ["mine"]
        freed = (await at.public.post("/api/v1/models/unload", json={"instance_id": "mine"})).json()
        assert freed == {"instance_id": "mine", "freed_bytes": 1000, "came_back": True}
        await raises(ModelNotFound, at.client.unload("mine"))


@in_loop
async def test_a_client_that_leaves_calls_its_load_off(octavo_home: Path) -> None:
    async with served(octavo_home) as at:
        at.runtime.load_wait = asyncio.Event()
        loading = asyncio.create_task(at.client.load(MODEL))
        await until(lambda: at.studio.public.status.is_on)
        await asyncio.sleep(0.1)
        loading.cancel()
        await until(lambda: at.runtime.cancelled == 1, 2)
        assert at.runtime.instances() == []


@in_loop
async def test_settings_are_read_and_changed_by_group(octavo_home: Path) -> None:
    async with served(octavo_home) as at:
        assert (await at.client.settings())["server"]["port"] == 1234
        changed = await at.client.change_settings("server", port=4321)
        assert changed["server"]["port"] == 4321 and "4321" in at.home.settings.read_text()
        await raises(InvalidConfig, at.client.change_settings("server", port="x"))
        await raises(InvalidConfig, at.client.change_settings("nope", a=1))


@in_loop
async def test_a_taken_port_is_an_error_and_an_event_that_name_it(octavo_home: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        async with served(octavo_home) as at:
            stream = at.client.events()
            first = asyncio.ensure_future(anext(stream))
            await until(lambda: len(at.studio.hub._followers) == 1)
            fault = await raises(Conflict, at.client.start_server(port=port))
            assert str(port) in fault.message and fault.details["port"] == port
            event = await first
            assert isinstance(event, ServerChanged) and event.error and event.is_on
            await stream.aclose()
            # what was open stays open
            assert (await at.public.get("/health")).status_code == 200


@in_loop
async def test_the_port_opens_moves_and_closes(octavo_home: Path) -> None:
    async with served(octavo_home) as at:
        assert not (await at.client.stop_server()).is_on
        await raises(Exception, at.public.get("/health"))
        again = await at.client.start_server(host="127.0.0.1", port=at.port)
        assert again.is_on and again.port == at.port == (await at.client.server()).port
        assert (await at.public.get("/health")).json()["status"] == "ok"
        moved = await at.client.start_server(port=0)
        assert moved.is_on and moved.port != at.port
        await raises(OctavoError, at.client.start_server(port=99999))


@in_loop
async def test_without_jit_only_what_is_loaded_is_served(octavo_home: Path) -> None:
    async with served(octavo_home) as at:
        await at.client.start_server(port=0, jit=False)
        port = (await at.client.server()).port
        body = {"model": "mine", "prompt": "hi"}
        url = f"http://127.0.0.1:{port}/v1/completions"
        assert (await at.public.post(url, json=body)).status_code == 404
        await at.client.load(MODEL, identifier="mine")
        assert (await at.public.post(url, json=body)).status_code == 200
        listed = (await at.public.get(f"http://127.0.0.1:{port}/v1/models")).json()["data"]
        assert [(model["id"], model["loaded"], model["context_length"]) for model in listed] == [
            ("mine", True, 2048)
        ]


@in_loop
async def test_a_chat_is_kept_answered_rejoined_and_deleted(octavo_home: Path) -> None:
    async with served(octavo_home) as at:
        at.runtime.script = ["Hel", 0.1, "lo"]
        chat = await at.client.create_chat(model=MODEL, system_prompt="be brief")
        started = await at.client.reply(chat.id, "hi")
        events = [event async for event in at.client.follow(started.reply)]
        assert isinstance(events[0], ReplySnapshot) and isinstance(events[-1], ReplyEnded)
        assert events[-1].message.content == "Hello" and events[-1].message.state == "done"
        late = [event async for event in at.client.follow(started.reply)]
        assert (
            isinstance(late[0], ReplySnapshot)
            and late[0].text == "Hello"
            and isinstance(late[-1], ReplyEnded)
        )
        assert [message.role for message in (await at.client.chat(chat.id)).messages] == ["user", "assistant"]
        assert (await at.client.update_chat(chat.id, title="New")).title == "New"
        assert [summary.title for summary in await at.client.chats()] == ["New"]
        await at.client.delete_chat(chat.id)
        assert await at.client.chats() == []


@in_loop
async def test_stopping_a_reply_keeps_its_text(octavo_home: Path) -> None:
    async with served(octavo_home) as at:
        at.runtime.script = ["Hel", 30.0]
        chat = await at.client.create_chat(model=MODEL)
        started = await at.client.reply(chat.id, "hi")
        follower = at.client.follow(started.reply)
        while "Hel" not in getattr(await anext(follower), "text", ""):
            continue
        await at.client.stop_reply(started.reply)
        ended = [event async for event in follower][-1]
        assert isinstance(ended, ReplyEnded) and ended.message.state == "cancelled"
        assert ended.message.content == "Hel" and at.runtime.cancelled == 1


@in_loop
async def test_unknown_chats_and_replies_are_404(octavo_home: Path) -> None:
    async with served(octavo_home) as at:
        for path in ("/api/v1/chats/nope", "/api/v1/replies/nope/events"):
            assert (await at.control.get(path)).status_code == 404


@in_loop
async def test_stop_answers_before_the_service_ends(octavo_home: Path) -> None:
    async with served(octavo_home) as at:
        await at.client.stop_service()
        await until(lambda: at.runtime.is_closed)
        await until(lambda: not at.home.endpoint.exists())


@in_loop
async def test_a_stream_that_runs_when_the_service_stops_may_finish(octavo_home: Path) -> None:
    async with served(octavo_home) as at:
        at.runtime.script = ["a", 0.5, "b"]
        running = asyncio.create_task(at.chat(stream=True))
        await until(lambda: at.runtime.active == 1)
        at.studio.stop()
        assert b'"content":"b"' in (await running).content


@pytest.mark.parametrize("dry_run", [True, False])
def test_import_over_the_control_door(
    octavo_home: Path, smollm2: Path, tmp_path: Path, dry_run: bool
) -> None:
    source = tmp_path / "m.gguf"
    source.hardlink_to(smollm2) if smollm2.stat().st_dev == tmp_path.stat().st_dev else source.symlink_to(
        smollm2
    )

    async def scenario() -> None:
        async with served(octavo_home) as at:
            answer = await at.client.import_model(str(source), "acme/tiny", "symlink", dry_run)
            assert answer.dry_run is dry_run and answer.models == ["acme/tiny"]
            models = [model.key for model in await at.client.models()]
            assert models == ([] if dry_run else ["acme/tiny"])

    asyncio.run(asyncio.wait_for(scenario(), 60))


@in_loop
async def test_a_query_that_cant_be_read_is_an_error_of_our_shape(octavo_home: Path) -> None:
    async with served(octavo_home) as at:
        answer = await at.client._http.request("DELETE", "/api/v1/models/a/b?dry_run=maybe")
        assert answer.status_code == 400
        assert answer.json()["error"]["code"] == "invalid_request"
        assert "dry_run" in answer.json()["error"]["message"]
