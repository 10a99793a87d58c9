"""Bodies that can't be read: always a 400 or 413 with OpenAI's error object, never a 500."""

import asyncio
import json
from pathlib import Path

import pytest

from octavo.server.bodies import BODY_LIMIT
from tests.server.support import in_loop, served

BROKEN = {
    "half an emoji": b'{"model":"m","messages":[{"role":"user","content":"x \\ud83d"}],"max_tokens":1}',
    "halves in the wrong order": b'{"model":"m","messages":[{"role":"user","content":"\\udc00\\ud83d"}]}',
    "not a number": b'{"model":"m","messages":[{"role":"user","content":"x"}],"temperature":NaN}',
    "infinity": b'{"model":"m","messages":[{"role":"user","content":"x"}],"temperature":1e999}',
    "cut off": b'{"messages":',
    "empty": b"",
    "a list": b"[]",
    "latin-1": b'{"model":"m","messages":[{"role":"user","content":"caf\xe9"}]}',
    "nested": b'{"model":"m","messages":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "nested in an unknown field": b'{"model":"m","x":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "a word for a number": b'{"model":"m","messages":[{"role":"user","content":"x"}],"temperature":"hot"}',
    "a word for messages": b'{"model":"m","messages":"hi"}',
    "no messages": b'{"model":"m","messages":[]}',
    "no role": b'{"model":"m","messages":[{"content":"x"}]}',
    "an unknown role": b'{"model":"m","messages":[{"role":"king","content":"x"}]}',
    "nothing": b"{}",
    "a number for a part": b'{"model":"m","messages":[{"role":"user","content":[1]}]}',
    "a huge cap": b'{"model":"m","messages":[{"role":"user","content":"x"}],"max_tokens":1%s}' % (b"0" * 40),
}


@in_loop
async def test_a15_broken_bodies_are_400_with_an_error_object(octavo_home: Path) -> None:
    async with served(octavo_home) as at:
        for name, body in BROKEN.items():
            response = await at.public.post("/v1/chat/completions", content=body)
            error = response.json()["error"]
            assert response.status_code == 400, (name, response.status_code)
            assert isinstance(error["message"], str) and {"type", "param", "code"} <= set(error), name
        assert at.runtime.requests == []


@in_loop
async def test_a15_faults_name_their_field(octavo_home: Path) -> None:
    async with served(octavo_home) as at:
        hot = await at.chat(temperature="hot")
        missing = await at.public.post("/v1/chat/completions", json={"model": "m"})
        deep = await at.chat(messages=[{"role": "user", "content": [{"type": 1}]}])
    assert hot.json()["error"]["param"] == "temperature"
    assert missing.json()["error"]["param"] == "messages"
    assert deep.json()["error"]["param"].startswith("messages")


@in_loop
async def test_a15_a_large_body_is_read(octavo_home: Path) -> None:
    async with served(octavo_home) as at:
        response = await at.chat(messages=[{"role": "user", "content": "x" * 30_000_000}])
    assert response.status_code == 200


@pytest.mark.parametrize("is_declared", [True, False])
def test_a_body_over_the_limit_is_413(octavo_home: Path, is_declared: bool) -> None:
    block = b"x" * (1 << 20)

    async def scenario() -> None:
        async with served(octavo_home) as at:
            reader, writer = await asyncio.open_connection("127.0.0.1", at.port)
            size = BODY_LIMIT + len(block)
            way = f"Content-Length: {size}" if is_declared else "Transfer-Encoding: chunked"
            writer.write(f"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n{way}\r\n\r\n".encode())
            for _ in range(size // len(block)):
                writer.write(block if is_declared else b"%x\r\n%s\r\n" % (len(block), block))
                await writer.drain()
            writer.write(b"" if is_declared else b"0\r\n\r\n")
            assert (await reader.readline()).startswith(b"HTTP/1.1 413")
            writer.close()

    asyncio.run(asyncio.wait_for(scenario(), 60))


@in_loop
async def test_a_body_that_stops_arriving_is_400(octavo_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("octavo.server.bodies.SILENCE_S", 0.1)
    async with served(octavo_home) as at:
        reader, writer = await asyncio.open_connection("127.0.0.1", at.port)
        writer.write(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n{")
        answer = await asyncio.wait_for(reader.readuntil(b"did not arrive"), 5)
        writer.close()
    assert answer.startswith(b"HTTP/1.1 400")


@in_loop
async def test_a15_the_native_routes_are_as_strict(octavo_home: Path) -> None:
    async with served(octavo_home) as at:
        for path in ("/api/v1/models/load", "/api/v1/models/unload", "/api/v1/chats", "/api/v1/settings"):
            method = "PATCH" if path.endswith("settings") else "POST"
            response = await at.control.request(method, path, content=b'{"model":')
            assert response.status_code == 400, path
            assert json.loads(response.content)["error"]["code"] == "invalid_request"
