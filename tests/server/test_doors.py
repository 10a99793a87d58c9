"""Two doors, one app: what each lets in, and how unknown routes answer."""

import asyncio
from pathlib import Path

import pytest

from octavo.core.errors import Forbidden
from octavo.server.auth import Keys, read_keys
from octavo.server.hosts import check_host, is_loopback
from octavo.server.public import PortOptions
from tests.server.support import in_loop, raises, served

CONTROL_ONLY = [
    ("GET", "/api/v1/settings"),
    ("PATCH", "/api/v1/settings"),
    ("GET", "/api/v1/chats"),
    ("POST", "/api/v1/chats"),
    ("GET", "/api/v1/chats/x"),
    ("DELETE", "/api/v1/chats/x"),
    ("POST", "/api/v1/chats/x/replies"),
    ("GET", "/api/v1/replies/x/events"),
    ("POST", "/api/v1/replies/x/stop"),
    ("POST", "/api/v1/models/import"),
    ("GET", "/api/v1/server"),
    ("POST", "/api/v1/server/start"),
    ("POST", "/api/v1/server/stop"),
    ("POST", "/api/v1/service/stop"),
    ("GET", "/api/v1/events?lease=window"),
]


@in_loop
async def test_control_only_routes_are_unknown_on_the_public_door(octavo_home: Path) -> None:
    async with served(octavo_home) as at:
        for method, path in CONTROL_ONLY:
            response = await at.public.request(method, path, json={} if method != "GET" else None)
            assert response.status_code == 404, (method, path)
            assert response.json()["error"]["message"].startswith("There is no route"), path
        # nor does any header make the public door the control door
        for headers in (
            {"Octavo-Door": "control"},
            {"X-Forwarded-For": "127.0.0.1"},
            {"Octavo.Door": "control"},
        ):
            assert (await at.public.get("/api/v1/settings", headers=headers)).status_code == 404
        assert (await at.control.get("/api/v1/settings")).status_code == 200


@in_loop
async def test_paths_are_models_on_the_control_door_only(octavo_home: Path) -> None:
    body = {"model": "/tmp/x.gguf", "prompt": "hi"}
    async with served(octavo_home) as at:
        await at.public.post("/v1/completions", json=body)
        await at.control.post("/v1/completions", json=body)
        assert [request.allow_path for request in at.runtime.requests] == [False, True]


@in_loop
async def test_a16_unknown_routes_and_methods_answer_with_an_error(octavo_home: Path) -> None:
    async with served(octavo_home) as at:
        for method, path, status in (
            ("GET", "/v1/nope", 404),
            ("POST", "/chat/completions/nope", 404),
            ("GET", "/admin/api/stats", 404),
            ("GET", "/v1//models", 404),
            ("GET", "/v1/models/", 404),
            ("POST", "/v1/chat/completions/", 404),
            ("GET", "/", 404),
            ("DELETE", "/v1/models", 405),
            ("GET", "/v1/chat/completions", 405),
        ):
            response = await at.public.request(method, path)
            assert response.status_code == status, (method, path, response.status_code)
            assert {"message", "type", "param", "code"} <= set(response.json()["error"])
            assert "location" not in response.headers


@in_loop
async def test_a16_a_foreign_host_is_refused_and_never_redirected_to(octavo_home: Path) -> None:
    async with served(octavo_home) as at:
        for path in ("/v1/models", "/v1/models/", "/v1/chat/completions/"):
            response = await at.public.get(path, headers={"Host": "evil.example"})
            assert response.status_code == 403 and "location" not in response.headers
            assert "evil.example" in response.json()["error"]["message"]
        for host in ("localhost", "127.0.0.1:1234", "[::1]:1234", "LOCALHOST:80"):
            assert (await at.public.get("/v1/models", headers={"Host": host})).status_code == 200


@in_loop
async def test_other_origins_need_cors(octavo_home: Path) -> None:
    page = {"Origin": "https://page.example"}
    options = PortOptions("127.0.0.1", 0, origins=("https://page.example",))
    ask = {**page, "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "x-a"}
    async with served(octavo_home) as at:
        assert (await at.public.get("/v1/models", headers=page)).status_code == 403
        assert (await at.public.options("/v1/chat/completions", headers=ask)).status_code == 403
        assert (await at.public.get("/v1/models", headers={"Origin": "null"})).status_code == 403
        own = {"Origin": f"http://127.0.0.1:{at.port}"}
        assert (await at.public.get("/v1/models", headers=own)).status_code == 200
    async with served(octavo_home, options) as at:
        let_in = await at.public.get("/v1/models", headers=page)
        preflight = await at.public.options("/v1/chat/completions", headers=ask)
        assert let_in.status_code == 200 and preflight.status_code == 204
        assert preflight.headers["access-control-allow-origin"] == "https://page.example"
        assert preflight.headers["access-control-allow-headers"] == "x-a"
        assert (await at.public.get("/v1/models", headers={"Origin": "https://b.example"})).status_code == 403


@in_loop
async def test_keys_are_asked_for_on_the_public_door_only(octavo_home: Path) -> None:
    async with served(octavo_home, PortOptions("127.0.0.1", 0, keys=Keys(["one", "two"]))) as at:
        for headers, status in (
            ({}, 401),
            ({"Authorization": "Bearer wrong"}, 401),
            ({"Authorization": "Basic two"}, 401),
            ({"Authorization": "Bearer two"}, 200),
            ({"x-api-key": "one"}, 200),
        ):
            assert (await at.public.get("/v1/models", headers=headers)).status_code == status
        assert (await at.control.get("/v1/models")).status_code == 200


@in_loop
async def test_the_network_is_let_in_only_with_a_key_or_by_insisting(octavo_home: Path) -> None:
    async with served(octavo_home) as at:
        fault = await raises(Forbidden, at.studio.public.open(PortOptions("0.0.0.0", 0)))
        assert "key" in str(fault) and at.studio.public.status.is_on
        assert (await at.studio.public.open(PortOptions("0.0.0.0", 0, keys=Keys(["k"])))).is_on
        assert (await at.studio.public.open(PortOptions("0.0.0.0", 0, without_key=True))).is_on


def test_a_port_on_the_network_answers_to_addresses_but_not_to_foreign_names() -> None:
    check_host({b"host": b"192.168.1.7:1234"}, "0.0.0.0")
    check_host({b"host": b"localhost"}, "0.0.0.0")
    with pytest.raises(Forbidden):
        check_host({b"host": b"rebind.example"}, "0.0.0.0")
    with pytest.raises(Forbidden):
        check_host({b"host": b"192.168.1.7"}, "127.0.0.1")


def test_loopback_has_many_names() -> None:
    assert all(is_loopback(host) for host in ("localhost", "127.0.0.1", "127.9.9.9", "::1"))
    assert not any(is_loopback(host) for host in ("0.0.0.0", "192.168.0.1", "localhost.example", ""))


def test_key_file_has_one_key_a_line(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    path.write_text("# mine\n\n one \ntwo\n")
    assert read_keys(path) == ["one", "two"]


@in_loop
async def test_a_malformed_request_gets_an_error_object(octavo_home: Path) -> None:
    async with served(octavo_home) as at:
        reader, writer = await asyncio.open_connection("127.0.0.1", at.port)
        writer.write(b"HELLO\r\n\r\n")
        answer = await asyncio.wait_for(reader.read(), 5)
        writer.close()
    assert answer.startswith(b"HTTP/1.1 400") and b'"error"' in answer


@in_loop
async def test_a_connection_that_says_nothing_is_closed(octavo_home: Path, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr("octavo.server.listener.HEADER_PATIENCE_S", 0.2)
    async with served(octavo_home) as at:
        for said in (b"", b"GET /health HTTP/1.1\r\nHost: "):
            reader, writer = await asyncio.open_connection("127.0.0.1", at.port)
            writer.write(said)
            assert await asyncio.wait_for(reader.read(), 5) == b""
            writer.close()
