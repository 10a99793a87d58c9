"""The command line without a model: help, exit codes, JSON, and nothing heavy at its start."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.server.processes import fake_services

HEAVY = ("fastapi", "uvicorn", "pydantic", "httpx2", "msgspec", "PySide6", "llama_cpp", "numpy")


def octavo(*arguments: str, stdin: str = "", **environment: str) -> "subprocess.CompletedProcess[str]":
    """Run a verb as a program without a terminal."""
    return subprocess.run(
        [sys.executable, "-P", "-m", "octavo.server.cli.main", *arguments],
        input=stdin,
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "NO_COLOR": "1", **environment},
    )


def test_no_verb_prints_help(octavo_home: Path) -> None:
    done = octavo()
    assert done.returncode == 0 and "doctor" in done.stdout and "serve-hidden" not in done.stdout


def test_help_imports_nothing_heavy() -> None:
    program = (
        "import sys; from octavo.server.cli.main import octavo\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-P", "-c", program], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "[]", done.stdout + done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ("nope",),
        ("load",),
        ("load", "x", "-s", "nope=1"),
        ("load", "x", "--gpu", "some"),
        ("unload",),
        ("unload", "x", "--all"),
        ("import", "x", "--copy", "--move"),
        ("server", "start", "--port", "70000"),
    ],
)
def test_wrong_usage_is_exit_code_2(octavo_home: Path, arguments: tuple[str, ...]) -> None:
    done = octavo(*arguments)
    assert done.returncode == 2 and done.stdout == "" and done.stderr


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("show", "nope"), "model_not_found"),
        (("unload", "nope"), "model_not_found"),
        (("import", "/nowhere.gguf"), "unreadable_file"),
    ],
)
def test_a_failure_is_exit_code_1_with_words_and_a_code(
    octavo_home: Path, arguments: tuple[str, ...], code: str
) -> None:
    plain, told = octavo(*arguments), octavo(*arguments, "--json")
    assert plain.returncode == told.returncode == 1
    assert plain.stdout == "" and plain.stderr.startswith("octavo: ")
    assert json.loads(told.stdout)["error"]["code"] == code


@pytest.mark.parametrize(
    ("arguments", "answer"),
    [
        (("ls",), []),
        (("ps",), []),
        (("unload", "--all"), []),
        (("server", "status"), {"is_on": False, "host": "127.0.0.1", "port": 1234}),
        (("server", "stop"), {"is_on": False, "host": "127.0.0.1", "port": 1234}),
    ],
)
def test_verbs_that_only_look_start_no_service(
    octavo_home: Path, arguments: tuple[str, ...], answer: object
) -> None:
    done = octavo(*arguments, "--json")
    assert (done.returncode, json.loads(done.stdout)) == (0, answer)
    assert octavo(*arguments).returncode == 0
    assert not (octavo_home / "run" / "service.json").exists()


def test_e07_without_a_display_doctor_and_verbs_work(octavo_home: Path) -> None:
    none = {"DISPLAY": "", "WAYLAND_DISPLAY": "", "QT_QPA_PLATFORM": "xcb"}
    done = octavo("doctor", "--json", **none)
    found = {finding["name"]: finding for finding in json.loads(done.stdout)}
    assert done.returncode == 0
    assert {"System", "Processor", "Memory", "Back end", "llama.cpp", "Qt", "Home", "Service"} <= set(found)
    if sys.platform == "linux":
        assert found["Display"]["found"] == "none" and "octavo chat" in found["Display"]["advice"]
    assert octavo("ls", **none).returncode == 0


def test_doctor_names_what_was_set_aside(octavo_home: Path) -> None:
    (octavo_home / "settings.toml").write_text("[[[")
    done = octavo("doctor")
    assert done.returncode == 0 and "settings.toml.damaged-" in done.stdout


def test_import_dry_run_changes_nothing_and_import_moves(
    octavo_home: Path, smollm2: Path, tmp_path: Path
) -> None:
    source = tmp_path / "SmolLM2.gguf"
    source.symlink_to(smollm2)
    dry = octavo("import", str(source), "--dry-run", "--json")
    assert dry.returncode == 0 and json.loads(dry.stdout)[0]["dry_run"]
    assert not (octavo_home / "models").exists()
    done = octavo("import", str(source), "--symlink", "--repo", "acme/tiny", "-y")
    assert done.returncode == 0, done.stderr
    assert [model["key"] for model in json.loads(octavo("ls", "--json").stdout)] == ["acme/tiny"]
    shown = json.loads(octavo("show", "tiny", "--json").stdout)
    assert shown["architecture"] == "llama" and shown["fault"] is None
    again = octavo("import", str(source), "--symlink", "--repo", "acme/tiny", "--json")
    assert again.returncode == 1 and json.loads(again.stdout)["error"]["code"] == "target_exists"


def test_a_closed_pipe_makes_no_noise(octavo_home: Path) -> None:
    shell = f"{sys.executable} -P -m octavo.server.cli.main --help | true"
    assert subprocess.run(["bash", "-c", shell], capture_output=True, timeout=60).stderr == b""


def test_chat_without_a_model_says_how_to_get_one(octavo_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with fake_services(octavo_home, monkeypatch):
        done = octavo("chat", "-p", "hi")
    assert done.returncode == 1 and "octavo import" in done.stderr
