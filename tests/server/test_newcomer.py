"""What a newcomer tried on the routes: files put in by hand, odd names and addresses."""

import asyncio
from pathlib import Path
from urllib.parse import quote

import pytest

from octavo.core.client.types import ChatPiece
from octavo.core.errors import InvalidRequest, ModelNotFound
from octavo.core.events import LibraryChanged
from octavo.core.library import catalog
from tests.fixtures.gguf_builder import GgufFile, tiny
from tests.server.support import Served, in_loop, raises, served


@in_loop
async def test_a_file_put_in_by_hand_is_listed_and_told(
    octavo_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catalog, "FRESH_S", 0.0)
    async with served(octavo_home) as at:
        assert await at.client.models() == []
        told = at.client.events()
        first = asyncio.ensure_future(anext(told))
        await asyncio.sleep(0.1)
        file = octavo_home / "models/by/hand/x.gguf"
        file.parent.mkdir(parents=True)
        file.write_bytes(tiny().build())
        listed = (await at.public.get("/v1/models")).json()["data"]
        assert [model["id"] for model in listed] == ["by/hand"]
        assert [model.key for model in await at.client.models()] == ["by/hand"]
        assert isinstance(await asyncio.wait_for(first, 5), LibraryChanged)
        await told.aclose()


@in_loop
async def test_errors_have_one_shape_inside_and_outside_of_v1(octavo_home: Path) -> None:
    async with served(octavo_home) as at:
        inside, outside = [(await at.public.get(path)).json()["error"] for path in ("/v1/nope", "/nope")]
        assert set(inside) == set(outside) >= {"message", "type", "code", "param"}


@in_loop
async def test_a_name_of_odd_bytes_is_not_found_by_its_name(octavo_home: Path) -> None:
    async with served(octavo_home) as at:
        answer = await at.public.get("/v1/models/%ff%fe")
        assert answer.status_code == 404 and answer.json()["error"]["code"] == "model_not_found"
        assert quote(answer.json()["error"]["message"]).count("%EF%BF%BD") == 2


@in_loop
async def test_refusals_name_the_limit_and_the_way(octavo_home: Path) -> None:
    async with served(octavo_home) as at:
        many = (await at.chat(max_tokens=10**12)).json()["error"]["message"]
        several = (await at.chat(n=2)).json()["error"]["message"]
        assert "2147483647" in many and "n requests" in several
        body = {"model": "fake", "ttl": -1}
        assert (await at.public.post("/api/v1/models/load", json=body)).status_code == 400


@in_loop
async def test_an_error_of_the_openai_dialect_keeps_its_hint_apart(octavo_home: Path) -> None:
    async with served(octavo_home) as at:
        at.runtime.script = [ModelNotFound("There is no model 'nope'.", hint="octavo ls lists them.")]
        fault = await raises(ModelNotFound, _asked(at, "nope"))
        assert (fault.message, fault.hint) == ("There is no model 'nope'.", "octavo ls lists them.")
        at.runtime.script = ["hi"]
        assert (await _asked(at, "fake"))[-1].model


async def _asked(at: Served, model: str) -> list[ChatPiece]:
    return [piece async for piece in at.client.complete_chat(model, [{"role": "user", "content": "hi"}])]


@pytest.mark.parametrize("host", ["banana.invalid", "203.0.113.8"])
@in_loop
async def test_an_address_that_is_not_ours_is_told_before_a_key(host: str, octavo_home: Path) -> None:
    async with served(octavo_home) as at:
        fault = await raises(InvalidRequest, at.client.start_server(host=host, port=0))
        assert host in fault.message and "address" in fault.message
        assert (await at.public.get("/health")).status_code == 200


@in_loop
async def test_an_origin_that_no_page_has_is_refused(octavo_home: Path) -> None:
    async with served(octavo_home) as at:
        for origin in ("bad origin", "example.org", "http://a/b"):
            await raises(InvalidRequest, at.client.start_server(port=0, cors=[origin]))
        for origin in ("*", "http://localhost:3000", "https://a.example/", "app://octavo"):
            assert (await at.client.start_server(port=0, cors=[origin])).is_on


@pytest.mark.parametrize(
    "head", [b"GARBAGE\r\n\r\n", b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n"]
)
@in_loop
async def test_what_is_no_http_gets_the_usual_error_body(head: bytes, octavo_home: Path) -> None:
    async with served(octavo_home) as at:
        reader, writer = await asyncio.open_connection("127.0.0.1", at.port)
        writer.write(head)
        answer = await asyncio.wait_for(reader.read(), 5)
        writer.close()
        fields, _, body = answer.partition(b"\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 400 ") and b'"code": "invalid_request"' in body
        assert b"content-length: %d" % len(body) in fields.lower()


@in_loop
async def test_a_killed_import_is_tidied_up_at_the_start(octavo_home: Path) -> None:
    left = octavo_home / "models/p/m/.import-0123.part"
    left.parent.mkdir(parents=True)
    left.write_bytes(GgufFile().build())
    async with served(octavo_home):
        assert not left.exists()
