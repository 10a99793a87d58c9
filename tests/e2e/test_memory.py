"""The memory of a real model: what the service tells is what the system tells, and pages move as asked."""

import json
import os
import re
import shutil
import signal
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import short_folder
from tests.e2e.serving import MODEL, OCTAVO, environment, octavo, octavo_json, octavo_serve, programs
from tests.server.exposition import read_exposition

FULL = 254
LAYER = 5
MIB = 1 << 20
TOLERANCE_BYTES = 4 * MIB


@pytest.fixture(scope="module")
def served(smollm2: Path) -> Iterator[tuple[dict[str, str], str]]:
    """A service with the model loaded, from a file that no other process maps; gives its address, too."""
    with short_folder() as home, programs(home):
        own = home / smollm2.name
        shutil.copyfile(smollm2, own)
        with own.open("rb") as copy:
            os.fsync(copy.fileno())  # what is not yet written can't be dropped
        env = environment(home, own)
        with octavo_serve(env) as (base, _process):
            octavo_json(env, "load", MODEL, "-c", "1024", "--identifier", "mine")
            yield env, base


def get(base: str, path: str, **headers: str) -> tuple[int, dict[str, str], bytes]:
    """Ask, and give status, headers and body; 304 and errors are answers."""
    request = urllib.request.Request(f"{base}/api/v1/memory{path}", headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=60) as response:
            return response.status, dict(response.headers), response.read()
    except urllib.error.HTTPError as fault:
        with fault:
            return fault.code, dict(fault.headers), fault.read()


def asked(base: str, path: str) -> Any:
    status, _headers, body = get(base, path)
    assert status == 200, body
    return json.loads(body)


def posted(base: str, path: str, **body: object) -> Any:
    data = json.dumps(body).encode()
    request = urllib.request.Request(f"{base}/api/v1/memory{path}", data, method="POST")
    with urllib.request.urlopen(request, timeout=60) as response:
        return json.load(response)


def cells(base: str) -> bytes:
    time.sleep(1.1)  # a map is made anew when the last one is older than a second
    status, headers, body = get(base, "/mine/residency")
    assert status == 200 and int(headers["octavo-cells"]) == len(body)
    return body


def of_layer(base: str, layer: int) -> list[int]:
    """Give the cells of a layer, in the order of the file."""
    tensors = asked(base, "/mine/layout")["tensors"]
    return [tensor["first_cell"] for tensor in tensors if tensor["layer"] == layer]


def status_of(pid: int) -> dict[str, int]:
    """Read the kernel's own figures of a process, in bytes (proc(5))."""
    text = Path(f"/proc/{pid}/status").read_text("ascii")
    return {
        name: int(count) * 1024 for name, count in re.findall(r"^(Rss\w+|VmSwap):\s+(\d+) kB", text, re.M)
    }


def test_the_figures_are_the_systems_own(served: tuple[dict[str, str], str]) -> None:
    _env, base = served
    told = asked(base, "")
    (detail,) = told["instances"]
    process, real = detail["process"], status_of(detail["process"]["pid"])
    for name, its_name in (
        ("private", "RssAnon"),
        ("file", "RssFile"),
        ("shared", "RssShmem"),
        ("swap", "VmSwap"),
    ):
        assert abs(process[f"{name}_bytes"] - real[its_name]) <= TOLERANCE_BYTES, name
    assert process["proportional_bytes"] > 0 and process["minor_faults"] > 0
    assert told["system"]["total_bytes"] > told["system"]["available_bytes"] > 0
    assert (
        detail["kv"]["size_cells"] >= 1024 and detail["kv"]["committed_bytes"] <= detail["kv"]["size_bytes"]
    )
    assert detail["predicted"]["kv"] == pytest.approx(detail["actual"]["kv"], abs=11 << 10)
    assert asked(base, "/mine")["instance"] == "mine"
    assert get(base, "/other")[0] == 404


def test_the_stream_brings_samples_while_it_is_open(served: tuple[dict[str, str], str]) -> None:
    _env, base = served
    came: list[float] = []
    with urllib.request.urlopen(f"{base}/api/v1/memory/stream?residency=1", timeout=10) as response:
        began = time.monotonic()
        for line in response:
            if line.startswith(b"data: "):
                event = json.loads(line[6:])
                came += [event["at"]] if event["event"] == "memory_sampled" else []
            if time.monotonic() - began > 3:
                break
    assert len(came) >= 9 and came == sorted(came)


def test_the_map_is_full_a_drop_empties_a_layer_and_a_warm_up_brings_it_back(
    served: tuple[dict[str, str], str],
) -> None:
    _env, base = served
    before = cells(base)
    assert set(before) == {FULL}
    generation = int(get(base, "/mine/residency")[1]["octavo-generation"])
    assert get(base, f"/mine/residency?since={generation}")[0] == 304

    moved = posted(base, "/mine/drop", layers=[LAYER])
    assert moved["resident_before_bytes"] - moved["resident_after_bytes"] > moved["page_bytes"] * 0.8
    dropped, own = cells(base), of_layer(base, LAYER)
    # its first and last pages may belong to its neighbours', too, or to a larger piece of the cache
    assert {dropped[cell] for cell in own[2:-2]} == {0}
    assert all(dropped[cell] == FULL for cell in range(len(dropped)) if cell not in own)
    share = {layer["layer"]: layer for layer in asked(base, "/mine")["layers"]}[LAYER]
    assert share["resident_bytes"] < share["total_bytes"] * 0.2

    warmed = posted(base, "/mine/warm", layers=[LAYER])
    assert warmed["resident_after_bytes"] > warmed["resident_before_bytes"] == moved["resident_after_bytes"]
    assert cells(base) == before
    history = asked(base, "/mine/history")
    assert [kept["generation"] for kept in history] == sorted({kept["generation"] for kept in history})
    kept = get(base, f"/mine/residency?generation={generation}")
    assert kept[0] == 200 and kept[2] == before
    assert get(base, "/mine/residency?generation=999999")[0] == 404


def test_pinned_pages_stay_and_say_how(served: tuple[dict[str, str], str]) -> None:
    env, base = served
    pin = posted(base, "/mine/pin", layers=[0, 1])["pin"]
    assert pin["kind"] in ("mlock", "touch") and pin["layers"] == [0, 1] and pin["pinned_bytes"] > 2 * MIB
    assert pin["kind"] == "mlock" or pin["reason"]
    with pytest.raises(urllib.error.HTTPError) as refused:
        posted(base, "/mine/drop", layers=[1])
    with refused.value:
        assert refused.value.code == 409
        assert json.load(refused.value)["error"]["code"] == "pages_are_pinned"
    assert octavo_json(env, "memory", "mine", "--unpin") == {"pin": None}
    assert posted(base, "/mine/drop", layers=[1])["page_bytes"] > MIB
    told = octavo(env, "memory", "mine", "--warm", "--layers", "0-2")
    assert told.returncode == 0 and "MiB" in told.stdout and "Warming mine: 100%" in told.stderr


def test_where_a_requests_time_went(served: tuple[dict[str, str], str]) -> None:
    env, base = served
    said = {"model": "mine", "messages": [{"role": "user", "content": "Count to ten."}], "max_tokens": 8}
    request = urllib.request.Request(
        f"{base}/v1/chat/completions", json.dumps(said).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=60) as response:
        usage = json.load(response)["usage"]
    last = asked(base, "/mine")["requests"][-1]
    assert [last[name] for name in ("prompt_tokens", "completion_tokens")] == [
        usage["prompt_tokens"],
        usage["completion_tokens"],
    ]
    parts = sum(last[f"{name}_s"] for name in ("queue", "load", "disk", "prefill", "other"))
    assert parts == pytest.approx(last["first_token_s"], abs=1e-3)
    assert "first token" in octavo(env, "memory").stdout


def test_the_command_line_tells_it_all(served: tuple[dict[str, str], str]) -> None:
    env, _base = served
    told = octavo_json(env, "memory")
    (detail,) = told["instances"]
    assert detail["instance"] == "mine" and len(detail["layers"]) >= 30
    page = octavo(env, "memory", "mine")
    assert page.returncode == 0, page.stderr
    assert re.search(r"^  blk 12 +[█░]{20} +\d+ %  [\d.]+ MiB of [\d.]+ MiB$", page.stdout, re.M), page.stdout
    assert octavo(env, "memory", "other").returncode == 1


@pytest.mark.parametrize("flags", [("--json",), ()])
def test_watching_prints_a_line_a_second(served: tuple[dict[str, str], str], flags: tuple[str, ...]) -> None:
    env, _base = served
    command = [*OCTAVO, "memory", "mine", "--watch", *flags]
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True) as watching:
        assert watching.stdout is not None
        lines = [watching.stdout.readline() for _ in range(3)]
        watching.send_signal(signal.SIGINT)
        watching.communicate(timeout=10)
    assert watching.returncode == 0 and all("private" in line for line in lines)
    if flags:
        times = [json.loads(line)["at"] for line in lines]
        assert 0.8 <= times[2] - times[1] <= 2.5


def test_prometheus_reads_it(served: tuple[dict[str, str], str]) -> None:
    _env, base = served
    with urllib.request.urlopen(f"{base}/metrics", timeout=10) as response:
        found = read_exposition(response.read().decode())
    assert found["octavo_process_private_bytes"].of(name="mine") > 10 * MIB
    assert found["octavo_residency_resident_bytes"].of(name="mine") > 50 * MIB
