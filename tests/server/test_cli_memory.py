"""``octavo memory``: the page, its lines, its moves, and what it says when there is nothing to tell."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from octavo.core.memory.figures import LayerResidency, Pin, ResidencySummary
from octavo.server.cli import memory as verb
from octavo.server.cli.console import amount
from octavo.server.cli.memory import Screen, parsed_layers
from octavo.server.cli.memory_page import bar, layer_words, line, page
from tests.fakes import MODEL
from tests.server.memory_values import AT, BARE_SYSTEM, MIB, SYSTEM, detail_of
from tests.server.processes import endpoint, fake_service_command, fake_services, wait
from tests.server.test_cli import octavo

OTHER = "acme/other"


@pytest.fixture
def loaded(octavo_home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A service in which one model is loaded."""
    with fake_services(octavo_home, monkeypatch), subprocess.Popen(fake_service_command()) as service:
        try:
            wait((octavo_home / "run" / "service.json").exists, "the service begins")
            assert octavo("load", MODEL).returncode == 0
            yield octavo_home
        finally:
            service.terminate()


def said(*arguments: str) -> Any:
    done = octavo("memory", *arguments, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def section(lines: list[str], title: str) -> list[list[str]]:
    """Give the rows of a section, cut at their columns."""
    begin = lines.index(title) + 1
    end = next((index for index in range(begin, len(lines)) if not lines[index]), len(lines))
    return [re.split(r" {2,}", row.strip()) for row in lines[begin:end]]


# ---- the page


def test_every_figure_is_on_the_page() -> None:
    lines = page(detail_of("acme/one"), SYSTEM)
    assert lines[0] == "acme/one, process 4242"
    process = {row[0]: row[1] for row in section(lines, "memory of the process")}
    assert process == {
        "private": "142 MiB",
        "file": "94.0 MiB",
        "shared": "2.0 MiB",
        "resident": "238 MiB",
        "PSS": "201 MiB",
        "swap": "0.0 MiB",
        "page faults": "12,345 minor",
        "read from disk": "98.0 MiB",
    }
    cells, committed, busy, idle = section(lines, "KV cache")
    assert cells[1] == "112 of 4,096 in use" and committed[1] == "12.0 MiB of 90.0 MiB"
    assert "answers" in busy[-1] and "idle for 7 s" in idle[-1]
    assert ["compute", "30.0 MiB", "28.0 MiB"] in section(lines, "at load")
    assert section(lines, "speed")[0][1] == "20.5 per second"
    request = {row[0]: row[1] for row in section(lines, "last request")}
    assert request["first token"] == "after 2.00 s"
    parts = ("queue", "load", "disk", "prefill", "other")
    assert [request[name] for name in parts] == ["0.25 s", "0.50 s", "0.12 s", "1.00 s", "0.12 s"]
    assert section(lines, "given back to the system")[0][1] == "unused KV of 4,000 cells"


def test_layers_are_bars() -> None:
    lines = page(detail_of("m"), SYSTEM)
    begin = lines.index("the model's files in the page cache") + 1
    assert lines[begin : begin + 4] == [
        "  all     ███████████████████░  99 %  93.0 MiB of 94.0 MiB",
        "  other   ████████████████████ 100 %  19.0 MiB of 19.0 MiB",
        "  blk 0   ░░░░░░░░░░░░░░░░░░░░   0 %  0.0 MiB of 5.0 MiB",
        "  blk 12  ████████████████░░░░  82 %  4.1 MiB of 5.0 MiB",
    ]


def test_layers_are_folded_where_rows_are_few() -> None:
    layers = [LayerResidency(layer=layer, resident_bytes=MIB, total_bytes=MIB) for layer in range(9)]
    lines = page(detail_of("m", layers=layers), SYSTEM, 80)
    begin = lines.index("the model's files in the page cache") + 2
    assert [re.findall(r"blk (\d)", row) for row in lines[begin : begin + 3]] == [
        ["0", "3", "6"],
        ["1", "4", "7"],
        ["2", "5", "8"],
    ]
    assert max(map(len, lines[begin : begin + 3])) <= 80
    assert lines[begin + 3] == ""


def test_a_bar_is_full_only_when_all_is_there() -> None:
    assert (bar(1.0), bar(0.0)) == ("█" * 20, "░" * 20)
    assert bar(0.999) == "█" * 19 + "░" and bar(0.001) == "█" + "░" * 19


def test_what_is_unknown_says_so_and_why() -> None:
    summary = ResidencySummary(
        generation=1, at=AT, resident_bytes=None, total_bytes=5 * MIB, reason="not yours"
    )
    layers = [LayerResidency(layer=0, resident_bytes=None, total_bytes=MIB)]
    detail = detail_of(
        "m",
        residency=summary,
        layers=layers,
        process=None,
        kv=None,
        predicted=None,
        actual=None,
        requests=[],
        given_back=[],
        disk_bytes_per_token=None,
        major_faults_per_token=None,
        page_control="no mapping",
    )
    lines = page(detail, BARE_SYSTEM)
    assert lines[0] == "m, no process" and not {"KV cache", "at load", "last request"} & set(lines)
    text = "\n".join(lines)
    assert "not yours" in text and "unknown per token" in text and "no mapping" in text
    assert line(detail, AT).endswith("no process")
    crashed = detail_of("m", process=None, state="crashed", fault="The engine of m crashed.")
    assert line(crashed, AT).endswith("crashed: The engine of m crashed. Its next request starts it again.")


def test_a_pin_says_how_it_keeps() -> None:
    pin = Pin(kind="touch", pinned_bytes=3 * MIB, layers=[0, 1, 2, 7], reason="too little may be locked")
    text = "\n".join(page(detail_of("m", pin=pin), SYSTEM))
    assert "3.0 MiB of layers 0-2,7 touched" in text and "too little may be locked" in text


def test_amounts_are_never_rounded_to_nothing() -> None:
    assert [amount(count) for count in (0, 1, 1536, MIB, 100 * MIB, 1 << 30)] == [
        "0.0 MiB",
        "0.0 KiB",
        "1.5 KiB",
        "1.0 MiB",
        "100 MiB",
        "1.00 GiB",
    ]


def test_layers_are_read_and_written_in_short() -> None:
    assert parsed_layers("0-3,7") == [0, 1, 2, 3, 7] and layer_words([7, 3, 2, 1, 0]) == "layers 0-3,7"
    assert parsed_layers("2,other") == [-1, 2]
    assert layer_words([-1, 2]) == "layer 2 and what is in no layer"
    assert parsed_layers(" 5 , 1-1") == [1, 5]


def test_a_page_is_cut_to_the_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verb.shutil, "get_terminal_size", lambda: (10, 4))
    screen = Screen()
    screen.show(lambda width: ["a" * 30, "b", "c", "d", "e"][: 5 if width else None])
    first = capsys.readouterr().out
    assert first.startswith("\x1b[2J\x1b[H" + "a" * 10 + "\x1b[K\n") and first.count("\n") == 3
    assert "… 3 more l" in first
    screen.show(lambda width: ["a"])
    assert capsys.readouterr().out == "\x1b[Ha\x1b[K\n\x1b[J"


# ---- the verb


@pytest.mark.parametrize(
    "arguments",
    [
        ("--warm", "--drop"),
        ("--watch", "--pin"),
        ("--layers", "1"),
        ("--warm", "--layers", "3-1"),
        ("--warm", "--layers", "x"),
        ("--warm", "--layers", ""),
        ("--warm", "--layers", "-1"),
    ],
)
def test_wrong_usage_is_exit_code_2(octavo_home: Path, arguments: tuple[str, ...]) -> None:
    done = octavo("memory", *arguments, "--json")
    assert done.returncode == 2 and json.loads(done.stdout)["error"]["code"] == "usage"


@pytest.mark.parametrize("flags", [(), ("--watch",), ("--warm",)])
def test_nothing_loaded_is_said_and_starts_no_service(octavo_home: Path, flags: tuple[str, ...]) -> None:
    for names in ((), ("some",)):
        done = octavo("memory", *names, *flags, "--json")
        assert done.returncode == 1 and "octavo load" in done.stderr
        assert json.loads(done.stdout)["error"]["code"] == "model_not_found"
    assert not (octavo_home / "run" / "service.json").exists()


def test_the_one_model_needs_no_name_and_two_do(loaded: Path) -> None:
    told = said()
    assert [one["instance"] for one in told["instances"]] == [MODEL] and told["system"]["total_bytes"]
    assert octavo("memory").stdout.startswith(f"{MODEL}, process 4242\n")
    assert octavo("load", OTHER).returncode == 0
    several = octavo("memory")
    assert several.returncode == 1 and MODEL in several.stderr and OTHER in several.stderr
    assert [one["instance"] for one in said("other")["instances"]] == [OTHER]
    unknown = octavo("memory", "nope")
    assert unknown.returncode == 1 and f"Loaded: {MODEL}, {OTHER}." in unknown.stderr


def test_moves_say_what_came_of_them(loaded: Path) -> None:
    warmed = octavo("memory", "--warm", "--layers", "0-1")
    assert warmed.returncode == 0, warmed.stderr
    assert f"{MODEL}: 2.0 MiB brought into memory in 0.50 s." in warmed.stdout
    assert "2.0 MiB are in the page cache, 0.0 MiB before" in warmed.stdout
    assert f"Warming {MODEL}: 100%" in warmed.stderr
    assert said("--drop")["resident_after_bytes"] == 0
    pinned = octavo("memory", MODEL, "--pin", "--layers", "0-1")
    assert "2.0 MiB of layers 0-1 locked (mlock)" in pinned.stdout
    assert "locked (mlock)" in octavo("memory").stdout
    assert said("--unpin") == {"pin": None}
    assert "No pages" in octavo("memory", "--unpin").stdout


@pytest.mark.parametrize("flags", [(), ("--json",)])
def test_watching_prints_lines_until_ctrl_c(loaded: Path, flags: tuple[str, ...]) -> None:
    command = [sys.executable, "-P", "-m", "octavo.server.cli.main", "memory", "--watch", *flags]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as watching:
        assert watching.stdout is not None
        first = watching.stdout.readline()
        watching.send_signal(signal.SIGINT)
        _, told = watching.communicate(timeout=20)
    assert watching.returncode == 0 and told == ""
    if flags:
        assert json.loads(first)["instances"][0]["instance"] == MODEL
    else:
        assert "private 142 MiB" in first and "cached 93.0 MiB of 94.0 MiB" in first


def test_watching_ends_with_the_service(loaded: Path) -> None:
    command = [sys.executable, "-P", "-m", "octavo.server.cli.main", "memory", "--watch"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as watching:
        assert watching.stdout is not None
        watching.stdout.readline()
        os.kill(endpoint(loaded).pid, signal.SIGTERM)
        _, told = watching.communicate(timeout=20)
    assert watching.returncode == 1 and "The service ended." in told
