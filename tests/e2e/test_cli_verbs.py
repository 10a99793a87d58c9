"""The verbs over a real model, without a terminal."""

import json
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import short_folder
from tests.e2e.serving import MODEL, OCTAVO, environment, octavo, octavo_json, octavo_serve, programs, stop


@pytest.fixture(scope="module")
def env(smollm2: Path) -> Iterator[dict[str, str]]:
    """A home with the model, whose service goes soon after its last lease."""
    with short_folder() as home, programs(home):
        yield environment(home, smollm2, OCTAVO_LEASE_GRACE_S="3")


def test_load_ps_show_unload(env: dict[str, str]) -> None:
    loaded = octavo_json(env, "load", MODEL, "-c", "1024", "--identifier", "mine", "--parallel", "2", "-y")
    assert loaded["instance_id"] == "mine" and loaded["load_config"]["context"] == 1024
    assert loaded["load_config"]["slots"] == 2 and loaded["reasons"]["context"] == "this request"
    (status,) = octavo_json(env, "ps")
    assert status["state"] == "ready" and status["model"].endswith(MODEL)
    (listed,) = octavo_json(env, "ls")
    assert listed["loaded_instances"][0]["id"] == "mine"
    assert "mine" in octavo(env, "ps").stdout and "mine" in octavo(env, "show", MODEL).stdout
    (freed,) = octavo_json(env, "unload", "mine")
    assert freed["instance_id"] == "mine" and freed["came_back"]


def test_a_file_outside_the_library_can_be_loaded(env: dict[str, str], smollm2: Path) -> None:
    loaded = octavo_json(env, "load", str(smollm2), "-c", "512", "--id", "path", "-s", "batch=64")
    assert loaded["instance_id"] == "path" and loaded["load_config"]["batch"] == 64
    assert octavo(env, "unload", "path").returncode == 0


def test_chat_asks_once(env: dict[str, str]) -> None:
    plain = octavo(env, "chat", MODEL, "-p", "Say hi", "-t", "0", "--max-tokens", "8")
    assert plain.returncode == 0 and len(plain.stdout.strip()) > 3
    told = octavo_json(env, "chat", "-p", "Say hi", "-t", "0", "--max-tokens", "8")
    assert (
        told["model"].endswith(MODEL)
        and told["content"]
        and told["usage"]["completion_tokens"] == 8
        and told["finish_reason"] == "length"
    )


def test_chat_reads_turns_until_exit(env: dict[str, str]) -> None:
    stdin = "My name is Ada.\n\nWhat is my name?\n/exit\nnever asked\n"
    done = octavo(env, "chat", "-t", "0", "--max-tokens", "16", "--json", stdin=stdin)
    assert done.returncode == 0, done.stderr
    decoder, answers, rest = json.JSONDecoder(), [], done.stdout.strip()
    while rest:
        answer, end = decoder.raw_decode(rest)
        answers.append(answer)
        rest = rest[end:].strip()
    assert len(answers) == 2
    assert answers[1]["usage"]["prompt_tokens"] > answers[0]["usage"]["prompt_tokens"]


def test_server_start_status_stop(env: dict[str, str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        refused = octavo(env, "server", "start", "--port", str(port), "--json")
        assert refused.returncode == 1 and str(port) in refused.stderr
        assert json.loads(refused.stdout)["error"]["code"] == "conflict"
    started = octavo_json(env, "server", "start", "--port", str(port))
    assert started == {"is_on": True, "host": "127.0.0.1", "port": port}
    assert octavo_json(env, "server", "status")["is_on"]
    assert not octavo_json(env, "server", "stop")["is_on"]


def test_serve_beside_a_running_service_uses_its_port(env: dict[str, str]) -> None:
    assert octavo(env, "load", MODEL, "-c", "512").returncode == 0
    with octavo_serve(env):
        assert octavo_json(env, "server", "status")["is_on"]
        second = subprocess.run([*OCTAVO, "serve"], env=env, capture_output=True, text=True, timeout=60)
        assert second.returncode == 1 and "serving already" in second.stderr
    assert not octavo_json(env, "server", "status")["is_on"]
    assert octavo(env, "unload", "--all").returncode == 0


def test_serve_beside_a_running_service_ends_when_its_port_is_closed(env: dict[str, str]) -> None:
    assert octavo(env, "load", MODEL, "-c", "512").returncode == 0
    command = [*OCTAVO, "serve", "--port", "0", "--json"]
    with subprocess.Popen(
        command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as serve:
        assert serve.stdout is not None
        place = json.loads(serve.stdout.readline())
        assert place["url"] == f"http://127.0.0.1:{place['port']}/v1" and place["pid"] == serve.pid
        assert octavo(env, "server", "stop").returncode == 0
        _, told = serve.communicate(timeout=10)
    assert serve.returncode == 0 and "closed" in told
    assert octavo(env, "unload", "--all").returncode == 0


def test_serve_with_a_taken_port_says_so(octavo_home: Path, env: dict[str, str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        own = {**env, "OCTAVO_HOME": str(octavo_home)}
        done = octavo(own, "serve", "--port", port)
    assert done.returncode == 1 and port in done.stderr


def test_serve_asks_for_keys_from_a_file(octavo_home: Path, env: dict[str, str], tmp_path: Path) -> None:
    import urllib.error
    import urllib.request

    (tmp_path / "keys").write_text("sesame\n")
    with octavo_serve({**env, "OCTAVO_HOME": str(octavo_home)}, "--api-key-file", str(tmp_path / "keys")) as (
        base,
        process,
    ):
        with pytest.raises(urllib.error.HTTPError) as caught:
            urllib.request.urlopen(f"{base}/v1/models", timeout=10)
        caught.value.close()
        assert caught.value.code == 401
        request = urllib.request.Request(f"{base}/v1/models", headers={"Authorization": "Bearer sesame"})
        with urllib.request.urlopen(request, timeout=10) as response:
            assert response.status == 200
        process.send_signal(signal.SIGINT)
        stop(process)
