"""``octavo estimate`` and ``POST /api/v1/estimate``: before a load, with and without a service."""

import json
import os
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import short_folder
from tests.e2e.serving import MODEL, environment, octavo, octavo_json, octavo_serve, programs

FIELDS = [
    "model", "n_ctx", "components", "private_bytes", "mapped_bytes", "hot_mapped_bytes", "budget_bytes",
    "available_bytes", "verdict", "disk_bytes_per_token", "tokens_per_second", "confidence", "reasons",
    "suggestions",
]  # fmt: skip
PARTS = [
    "weights_mapped", "weights_private", "kv", "recurrent", "compute", "output", "prefix_cache", "mmproj",
    "runtime",
]  # fmt: skip
SUGGESTED = ["title", "config", "private_bytes", "mapped_bytes", "verdict"]


@pytest.fixture(scope="module")
def env(smollm2: Path) -> Iterator[dict[str, str]]:
    """A home with the model, whose service goes soon after its last lease."""
    with short_folder() as home, programs(home):
        yield environment(home, smollm2, OCTAVO_LEASE_GRACE_S="3")


def check(told: dict[str, Any]) -> None:
    """Check the shape of an answer; bytes are whole numbers."""
    assert list(told) == FIELDS
    assert list(told["components"]) == PARTS
    whole = [told[name] for name in FIELDS if name.endswith(("bytes", "per_token"))]
    assert all(type(count) is int for count in [*whole, *told["components"].values(), told["n_ctx"]])
    assert sum(told["components"].values()) == told["private_bytes"] + told["mapped_bytes"]
    assert all(list(one) == SUGGESTED for one in told["suggestions"])
    assert told["verdict"] in ("resident", "pages", "wont_run")
    assert told["confidence"] in ("exact", "close", "approximate")


def test_estimate_without_a_service(env: dict[str, str], smollm2: Path) -> None:
    told = octavo_json(env, "estimate", str(smollm2), "-c", "2048", "--parallel", "1")
    check(told)
    assert (told["verdict"], told["n_ctx"], told["tokens_per_second"]) == ("resident", 2048, None)
    assert told["components"]["kv"] == 2048 * 30 * 2 * 3 * 64 * 2
    halved = octavo_json(env, "estimate", str(smollm2), "-c", "2048", "--kv-k", "q8_0", "--kv-v", "q8_0")
    assert halved["components"]["kv"] == 2048 * 30 * 2 * 3 * 64 * 34 // 32


def test_estimate_for_another_machine(env: dict[str, str], smollm2: Path) -> None:
    pages = octavo_json(env, "estimate", str(smollm2), "-c", "256", "--budget", "130MB")
    check(pages)
    assert (pages["verdict"], pages["budget_bytes"]) == ("pages", 130_000_000)
    rate = pages["tokens_per_second"]
    assert 0 < rate["low"] <= rate["high"] <= 3.001 * rate["low"]
    never = octavo_json(env, "estimate", str(smollm2), "-c", "8192", "--budget", "64MiB")
    assert (never["verdict"], never["budget_bytes"], never["tokens_per_second"]) == (
        "wont_run",
        64 << 20,
        None,
    )
    assert ">" in never["reasons"][0]
    wrong = octavo(env, "estimate", str(smollm2), "--budget", "lots")
    assert wrong.returncode == 2


def test_estimate_for_a_person_and_the_rule_of_thumb(env: dict[str, str], smollm2: Path) -> None:
    shown = octavo(env, "estimate", str(smollm2), "--rule-of-thumb", "-c", "4096")
    assert shown.returncode == 0, shown.stderr
    assert "stays in memory" in shown.stdout and "Rule of thumb" in shown.stdout and "kv" in shown.stdout
    told = octavo_json(env, "estimate", str(smollm2), "--rule-of-thumb", "-c", "4096")
    assert told["rule_of_thumb"]["exact_bytes"] == told["private_bytes"] + told["mapped_bytes"]
    advised = octavo(env, "estimate", str(smollm2), "-c", "8192", "--budget", "200MB")
    assert "KV cache in q8_0" in advised.stdout


def test_estimate_only_loads_nothing_and_show_tells_the_last_load(env: dict[str, str], smollm2: Path) -> None:
    told = octavo_json(env, "load", str(smollm2), "--estimate-only", "-c", "512")
    check(told)
    assert octavo_json(env, "ps") == []
    assert octavo_json(env, "load", MODEL, "-c", "512")["load_config"]["context"] == 512
    with_service = octavo_json(env, "estimate", MODEL, "-c", "512")
    check(with_service)
    assert with_service["components"]["kv"] == told["components"]["kv"]
    last = octavo_json(env, "show", MODEL)["last_load"]
    assert abs(last["actual"]["kv"] - last["predicted"]["kv"]) < 11 << 10
    assert "predicted" in octavo(env, "show", MODEL).stdout
    assert octavo(env, "unload", "--all").returncode == 0


def asked(base: str, route: str, body: dict[str, object]) -> Any:
    """Post JSON and read JSON; errors come as (status, body)."""
    request = urllib.request.Request(
        base + route, json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    try:
        with urllib.request.urlopen(request, timeout=120) as response:
            return json.load(response)
    except urllib.error.HTTPError as fault:
        with fault:
            return fault.code, json.load(fault)


def test_estimate_and_refusal_over_http(octavo_home: Path, smollm2: Path) -> None:
    (octavo_home / "settings.toml").write_text("[memory]\nlimit_gib = 0.02\n")
    with programs(octavo_home), octavo_serve(environment(octavo_home, smollm2)) as (base, _):
        told = asked(base, "/api/v1/estimate", {"model": MODEL, "context_length": 4096})
        check(told)
        assert told["verdict"] == "wont_run"
        only = asked(base, "/api/v1/models/load", {"model": MODEL, "context": 4096, "estimate_only": True})
        assert only["private_bytes"] == told["private_bytes"]
        wish = {"model": MODEL, "context_length": 4096}
        status, refused = asked(base, "/api/v1/models/load", wish)
        error = refused["error"]
        assert (status, error["code"]) == (503, "insufficient_memory")
        assert error["details"]["needed_bytes"] == told["private_bytes"]
        assert error["details"]["budget_bytes"] == told["budget_bytes"]
        assert ">" in error["details"]["inequality"] and "force" in error["hint"]
        on_demand = {"model": MODEL, "messages": [{"role": "user", "content": "hi"}], "max_tokens": 1}
        assert asked(base, "/v1/chat/completions", on_demand)[0] == 503
        assert asked(base, "/api/v1/models/load", {**wish, "force": True})["status"] == "loaded"
        assert asked(base, "/api/v1/estimate", {"model": MODEL, "budget_bytes": -1})[0] == 400
        assert asked(base, "/api/v1/estimate", {"model": "no-such"})[0] == 404


@pytest.mark.timeout(300)
def test_three_models_under_a_budget_for_two_30_requests_none_failed(
    octavo_home: Path, smollm2: Path
) -> None:
    names = ("one", "two", "three")
    for name in names:
        folder = octavo_home / "models" / "acme" / name
        folder.mkdir(parents=True)
        try:
            os.link(smollm2, folder / f"{name}.gguf")
        except OSError:
            (folder / f"{name}.gguf").write_bytes(smollm2.read_bytes())
    (octavo_home / "settings.toml").write_text(
        "[memory]\nlimit_gib = 0.4\n\n[loading.defaults]\ncontext = 1024\nslots = 1\nbatch = 128\n"
    )
    with programs(octavo_home), octavo_serve(environment(octavo_home, smollm2)) as (base, _):
        needs = asked(base, "/api/v1/estimate", {"model": "one"})
        one = needs["private_bytes"] + needs["hot_mapped_bytes"]
        assert 2 * one < 0.4 * (1 << 30) < 3 * one, "the budget is for two"
        body = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 3, "temperature": 0}
        for turn in range(30):
            name = names[turn % 3]
            answer = asked(base, "/v1/chat/completions", {**body, "model": name})
            assert isinstance(answer, dict), answer
            assert answer["model"] == f"acme/{name}" and answer["usage"]["completion_tokens"] >= 1
        print(f"30 requests, none failed; each model needs {one:,} B of a budget of 0.4 GiB")
