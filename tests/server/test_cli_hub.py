"""``octavo search``, ``login``, ``logout``, and estimates of what is on the Hub; all without a service."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.core.hub.reached import TOKEN
from tests.fixtures.hub_double import HubDouble
from tests.fixtures.hub_models import llama_repository
from tests.fixtures.hub_repositories import HubRepository, case_repositories
from tests.fixtures.hub_sources import Bytes
from tests.server.test_cli import octavo

REPO = "zoo/llama-8b-GGUF"
CLEAN = {
    "HF_TOKEN": "",
    "HF_HUB_OFFLINE": "",
    "HTTP_PROXY": "",
    "http_proxy": "",
    "PYTHON_KEYRING_BACKEND": "keyring.backends.fail.Keyring",
}


@pytest.fixture
def hub(tmp_path: Path, octavo_home: Path) -> Iterator[HubDouble]:
    with HubDouble(
        [*case_repositories(), llama_repository(tmp_path, "Q4_K_M", "Q8_0", vocabulary=4096)]
    ) as double:
        yield double


def asked(hub: HubDouble, *arguments: str, stdin: str = "", **environment: str) -> Any:
    """Run a verb against the double."""
    environ = {**CLEAN, "HF_ENDPOINT": hub.endpoint, "HF_HOME": "/nowhere", **environment}
    return octavo(*arguments, stdin=stdin, **environ)


def test_a_search_without_a_service(hub: HubDouble) -> None:
    done = asked(
        hub, "search", "llama", "--arch", "llama", "--max-params", "9B", "--no-gated", "-n", "5", "--json"
    )
    assert done.returncode == 0, done.stderr
    assert [model["id"] for model in json.loads(done.stdout)["models"]] == [REPO]
    table = asked(hub, "search", "llama").stdout.splitlines()
    assert table[0].split()[:2] == ["REPOSITORY", "PARAMS"] and table[1].split()[:3] == [
        REPO,
        "8.0B",
        "llama",
    ]
    assert asked(hub, "search", "--sort", "size").returncode == 2
    assert asked(hub, "search", "--min-params", "many").returncode == 2


def test_choices_with_verdicts_and_the_recommended_one(hub: HubDouble) -> None:
    done = asked(hub, "search", "--repo", REPO, "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert {one["name"]: one["fit"]["n_ctx"] for one in found["choices"]} == {"Q4_K_M": 8192, "Q8_0": 8192}
    people = asked(hub, "show", f"hf:{REPO}")
    assert (
        people.returncode == 0
        and "CHOICE" in people.stdout
        and found["reason"].split(";")[0] in people.stdout
    )


def test_d10_and_d07_listings_for_people(hub: HubDouble) -> None:
    nested = asked(hub, "search", "--repo", "ok/subfolder").stdout
    assert all(name in nested for name in ("UD-Q2_K_XL", "old/model", "new/model"))
    hostile = asked(hub, "search", "--repo", "err/traversal")
    assert (
        hostile.returncode == 0 and "evil" not in hostile.stdout and "6 files are left out" in hostile.stderr
    )
    assert asked(hub, "search", "--repo", "../../evil.gguf").returncode == 1


def test_d03_a_refusal_says_what_to_do(hub: HubDouble) -> None:
    done = asked(hub, "search", "--repo", "err/gated", "--json")
    assert done.returncode == 1 and json.loads(done.stdout)["error"]["code"] == "gated_repository"
    assert "Accept the terms" in done.stderr and "octavo login" in done.stderr


def test_d06_offline_asks_nothing(hub: HubDouble) -> None:
    done = asked(hub, "search", "llama", "--json", HF_HUB_OFFLINE="1")
    assert done.returncode == 1 and json.loads(done.stdout)["error"]["code"] == "hub_offline"
    assert hub.log == []


def test_a_login_reads_from_standard_input_only(hub: HubDouble, octavo_home: Path) -> None:
    done = asked(hub, "login", "--token-stdin", stdin=f"{TOKEN}\n")
    file = octavo_home / "hub-token"
    assert done.returncode == 0, done.stderr
    assert "tester" in done.stdout and str(file) in done.stdout and TOKEN not in done.stdout + done.stderr
    assert file.read_text() == TOKEN and file.stat().st_mode & 0o777 == 0o600
    asked(hub, "search", "x")
    assert hub.log[-1].authorization == f"Bearer {TOKEN}"
    out = asked(hub, "logout", "--json")
    assert json.loads(out.stdout)["token"]["source"] == "none" and not file.exists()
    assert asked(hub, "login").returncode == 2  # no terminal to ask at
    assert asked(hub, "login", TOKEN).returncode == 2
    assert asked(hub, "login", "--token-stdin", stdin="").returncode == 1


@pytest.mark.parametrize("token", [b"hf_\xed\x86\xa0\xed\x81\xb0", b"\xff\xfe", b"two words", b"", b" \n"])
def test_a_token_that_can_be_none_is_refused_in_words(
    hub: HubDouble, octavo_home: Path, token: bytes
) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "octavo.server.cli.main", "login", "--token-stdin"],
        input=token,
        env={**os.environ, **CLEAN, "OCTAVO_HOME": str(octavo_home), "HF_ENDPOINT": hub.endpoint},
        capture_output=True,
        timeout=30,
        check=False,
    )
    said = done.stdout + done.stderr
    assert done.returncode == 1 and b"Traceback" not in said
    assert (b"That is no token" if token.strip() else b"No token was given.") in said
    assert not token.strip() or token not in said
    assert hub.log == [] and not (octavo_home / "hub-token").exists()


def test_a_proxy_that_is_none_or_is_gone_is_named(hub: HubDouble) -> None:
    socks = asked(hub, "search", "llama", ALL_PROXY="socks5://127.0.0.1:1", NO_PROXY="", no_proxy="")
    assert socks.returncode == 1 and "ALL_PROXY names a SOCKS proxy" in socks.stderr
    gone = asked(hub, "search", "llama", HTTP_PROXY="http://127.0.0.1:1", NO_PROXY="", no_proxy="")
    assert gone.returncode == 1 and "The proxy 127.0.0.1:1 refuses" in gone.stderr


def test_words_of_a_search_and_what_can_not_be_said(hub: HubDouble) -> None:
    assert asked(hub, "search", "llama", "8b").returncode == 0
    assert "search=llama+8b" in hub.log[-1].path or "search=llama%208b" in hub.log[-1].path
    assert asked(hub, "search", "llama", "--repo", REPO).returncode == 2
    ftp = asked(hub, "search", "--repo", "ftp://huggingface.co/a/b")
    assert ftp.returncode == 1 and "no address of the Hub" in ftp.stderr
    hub.add(HubRepository("err/hidden", {"../../evil.gguf": Bytes(b"GGUF")}))
    hidden = asked(hub, "search", "--repo", "err/hidden")
    assert "1 file is left out" in hidden.stderr and "no GGUF" not in hidden.stdout


def test_an_estimate_of_what_is_on_the_hub(hub: HubDouble) -> None:
    for name in (f"{REPO}@Q8_0", f"hf:{REPO}@q8_0", f"{REPO}/llama-8b-Q8_0.gguf"):
        done = asked(hub, "estimate", name, "--budget", "16GiB", "-c", "4096", "--json")
        assert done.returncode == 0, done.stderr
        told = json.loads(done.stdout)
        assert (told["model"], told["verdict"]) == (f"hf:{REPO}@Q8_0", "resident")
    best = json.loads(asked(hub, "estimate", f"hf:{REPO}", "--budget", "64GiB", "--json").stdout)
    assert best["model"].startswith(f"hf:{REPO}@")


def test_a_name_that_is_nowhere_is_a_missing_model(hub: HubDouble) -> None:
    done = asked(hub, "estimate", "no/such", "--json")
    assert done.returncode == 1 and json.loads(done.stdout)["error"]["code"] == "model_not_found"
    hub.reset()
    assert asked(hub, "estimate", "nosuch", "--json").returncode == 1
    assert hub.log == []
