"""The command line without a model: help, exit codes, JSON, and nothing heavy at its start."""

import json
import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fixtures.gguf_builder import tiny
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


def in_shell(line: str) -> "subprocess.CompletedProcess[bytes]":
    """Run a line of bash in which ``octavo`` is the program; for bytes that are no text."""
    program = shlex.join([sys.executable, "-P", "-m", "octavo.server.cli.main"])
    shell = f'octavo() {{ {program} "$@"; }}; {line}'
    return subprocess.run(["bash", "-c", shell], capture_output=True, timeout=60)


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
        ("load", "x", "-c", "-5"),
        ("load", "x", "--slots", "0"),
        ("load", "x", "--kv-k", "banana"),
        ("load", "x", "--ttl", "-1"),
        ("load", "x", "--ttl", "nan"),
        ("import", "x", "--repo", "bad"),
        ("serve", "--cors", "bad origin"),
        ("chat", "x", "-p", ""),
    ],
)
def test_wrong_usage_is_exit_code_2(octavo_home: Path, arguments: tuple[str, ...]) -> None:
    done = octavo(*arguments)
    assert done.returncode == 2 and done.stdout == "" and done.stderr
    told = octavo(*arguments, "--json")
    assert told.returncode == 2 and json.loads(told.stdout)["error"]["code"] == "usage"
    assert not (octavo_home / "run").exists()


@pytest.mark.parametrize("verb", ["chat x -p $'\\xff\\xfe'", "load $'bad\\xffname'", "load pub/$'m\\xff'"])
def test_arguments_that_are_no_text_are_refused_in_words(octavo_home: Path, verb: str) -> None:
    done = in_shell(f"octavo {verb} --json")
    assert done.returncode == 2 and b"UTF-8" in done.stderr and b"Traceback" not in done.stderr
    assert "UTF-8" in json.loads(done.stdout)["error"]["message"]


def test_piped_input_that_is_no_text_is_refused_in_words(
    octavo_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with fake_services(octavo_home, monkeypatch):
        done = in_shell("printf '\\xff\\xfe\\n' | octavo chat fake")
    assert done.returncode == 1 and b"UTF-8" in done.stderr and b"Traceback" not in done.stderr


def test_output_that_cannot_be_written_is_said(octavo_home: Path) -> None:
    done = in_shell("octavo ls > /dev/full")
    assert done.returncode == 1 and done.stderr.startswith(b"octavo: ") and done.stderr.count(b"\n") == 1


@pytest.mark.parametrize("below", ["", "/deeper"])
def test_a_home_that_cannot_be_is_the_fault(below: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for verb in (("ls",), ("show", "x"), ("load", "x"), ("serve",)):
        done = octavo(*verb, OCTAVO_HOME=f"{tmp_path}/file{below}")
        assert done.returncode == 1 and done.stderr.startswith("octavo: OCTAVO_HOME names"), verb
    assert octavo("doctor", OCTAVO_HOME=f"{tmp_path}/file{below}").returncode == 0


def test_an_unreadable_model_is_shown_with_its_fault_only(octavo_home: Path) -> None:
    file = octavo_home / "models/p/m/x.gguf"
    file.parent.mkdir(parents=True)
    file.write_bytes(b"GGUF" + bytes(3))
    done = octavo("show", "p/m/x")
    assert done.returncode == 1 and "fault:" in done.stdout
    assert "0.0 bits" not in done.stdout and "context" not in done.stdout


def test_a_folder_is_imported_past_what_fails_and_what_is_there(octavo_home: Path, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    for name in ("a", "c"):
        (folder / f"{name}.gguf").write_bytes(tiny(context_length=ord(name)).build())
    (folder / "b.gguf").write_bytes(b"GGUF")
    arguments = ("import", str(folder), "--copy", "--repo", "p/m", "--json")
    for flags, present in ((("--dry-run",), False), ((), False), ((), True)):
        done = octavo(*arguments, *flags)
        (told,) = json.loads(done.stdout)
        assert done.returncode == 1 and "b.gguf" in told["failures"][0]["source"]
        assert [file["present"] for file in told["files"]] == [present, present]
    assert len(list((octavo_home / "models/p/m").iterdir())) == 2


def test_ctrl_c_in_a_single_question_is_130(octavo_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = (
        "import sys, threading, signal, os\n"
        "from octavo.server.cli import conversation, main\n"
        "from octavo.server.cli.conversation import Answer, Conversation\n"
        "Conversation.begin = lambda self, model: None\n"
        "async def wait(self, pieces):\n"
        "    import asyncio\n"
        "    os.kill(os.getpid(), signal.SIGINT); await asyncio.sleep(30)\n"
        "Conversation._ask = wait\n"
        "sys.argv[1:] = ['chat', 'm', '-p', 'hi']\n"
        "main.main()"
    )
    done = subprocess.run([sys.executable, "-P", "-c", program], capture_output=True, timeout=60)
    assert done.returncode == 128 + signal.SIGINT and b"Traceback" not in done.stderr


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
    assert again.returncode == 0 and json.loads(again.stdout)[0]["files"][0]["present"]
    other = tmp_path / "other" / "SmolLM2.gguf"
    other.parent.mkdir()
    other.write_bytes(tiny().build())
    taken = octavo("import", str(other), "--repo", "acme/tiny", "--json")
    assert taken.returncode == 1 and json.loads(taken.stdout)["error"]["code"] == "target_exists"


def test_a_closed_pipe_makes_no_noise(octavo_home: Path) -> None:
    shell = f"{sys.executable} -P -m octavo.server.cli.main --help | true"
    assert subprocess.run(["bash", "-c", shell], capture_output=True, timeout=60).stderr == b""


def test_chat_without_a_model_says_how_to_get_one(octavo_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with fake_services(octavo_home, monkeypatch):
        done = octavo("chat", "-p", "hi")
    assert done.returncode == 1 and "octavo import" in done.stderr
