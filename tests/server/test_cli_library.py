"""The verbs of the library, and the flags that ``lms`` takes for the same ones."""

import asyncio
import json
from pathlib import Path

import pytest

from octavo.core.client import ServiceClient
from octavo.core.config.paths import Home
from tests.fixtures.gguf_builder import pair, tiny
from tests.fixtures.layouts import projector
from tests.server.processes import fake_services
from tests.server.test_cli import octavo

SOUND, OTHER = tiny(embedding_length=64).build(), tiny("bert", pair("general.file_type", 7)).build()


def put(path: Path, data: bytes = SOUND) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


@pytest.fixture
def models(octavo_home: Path) -> Path:
    folder = octavo_home / "models"
    put(folder / "p/m/x.gguf")
    put(folder / "q/embed/e.gguf", OTHER)
    return folder


async def running(home: Home) -> None:
    """Start the service that the verbs then find."""
    async with await ServiceClient.start_or_connect(home):
        return


def told(*arguments: str) -> object:
    done = octavo(*arguments, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_ls_takes_lms_flags_and_prints_its_fields(models: Path) -> None:
    for arguments, keys in (
        ((), ["p/m", "q/embed"]),
        (("--llm",), ["p/m"]),
        (("--embedding",), ["q/embed"]),
        (("embed", "--variants"), ["q/embed"]),
        (("m",), ["p/m", "q/embed"]),
        (("nothing",), []),
    ):
        rows = told("ls", *arguments)
        assert isinstance(rows, list) and [row["modelKey"] for row in rows] == keys
    (row,) = told("ls", "p/m")  # type: ignore[misc]
    wanted = {"type", "modelKey", "format", "displayName", "publisher", "path", "sizeBytes"}
    wanted |= {"indexedModelIdentifier", "deviceIdentifier", "paramsString", "architecture", "quantization"}
    wanted |= {"variants", "selectedVariant", "vision", "trainedForToolUse", "maxContextLength"}
    assert wanted <= set(row) and row["sizeBytes"] == len(SOUND) and "bits" in row["quantization"]
    done = octavo("ls", "--detailed")
    assert "ARCH" in done.stdout and str(models / "p/m/x.gguf") in done.stdout


def test_b13_ls_says_what_is_offline(models: Path, octavo_home: Path, tmp_path: Path) -> None:
    put(tmp_path / "drive/r/away/a.gguf", SOUND + b"x")
    (octavo_home / "settings.toml").write_text(f'[library]\nfolders = ["{tmp_path / "drive"}"]\n')
    told("ls")
    (tmp_path / "drive").rename(tmp_path / "gone")
    rows = told("ls")
    assert isinstance(rows, list)
    assert {row["key"]: row["is_offline"] for row in rows} == {"p/m": False, "q/embed": False, "r/away": True}
    assert "offline: The folder" in octavo("ls").stdout
    done = octavo("show", "r/away", "--json")
    assert done.returncode == 1 and "not found" in json.loads(done.stdout)["fault"]
    done = octavo("rm", "r/away", "-y", "--json")
    assert done.returncode == 1 and json.loads(done.stdout)["error"]["code"] == "folder_not_found"


def test_rm_says_what_goes_asks_and_deletes(models: Path) -> None:
    path = models / "p/m/x.gguf"
    dry = octavo("rm", "p/m", "--dry-run", "--permanently")
    assert dry.returncode == 0 and "Would go" in dry.stdout and str(path) in dry.stdout and path.exists()
    unasked = octavo("rm", "p/m")
    assert unasked.returncode == 2 and "--yes" in unasked.stderr and path.exists()
    gone = told("rm", "p/m", "-y", "--permanently")
    assert isinstance(gone, dict) and gone["model"] == "p/m" and not path.parent.exists()
    assert octavo("rm", "p/m", "-y").returncode == 1


def test_verify_remembers_then_finds_damage(models: Path) -> None:
    first = told("verify", "p/m")
    assert isinstance(first, dict) and first["files"][0]["outcome"] == "remembered"
    assert "remembered now" not in octavo("verify", "p/m").stdout
    put(models / "p/m/x.gguf", SOUND[:-1] + b"\1")
    done = octavo("verify", "p/m")
    assert done.returncode == 1 and "CHANGED" in done.stdout
    assert octavo("verify", "p/m", "--accept").returncode == 0 and octavo("verify", "p/m").returncode == 0


def test_show_takes_a_projector_and_ls_finds_duplicates(models: Path, tmp_path: Path) -> None:
    eyes = put(tmp_path / "eyes.gguf", projector())
    shown = told("show", "p/m", "--projector", str(eyes))
    assert isinstance(shown, dict) and shown["projector"] == str(eyes) and shown["capabilities"]["vision"]
    shown = told("show", "p/m", "--projector", "none")
    assert isinstance(shown, dict) and shown["projector"] is None
    assert octavo("show", "p/m", "--projector", "nowhere").returncode == 1
    assert told("ls", "--duplicates") == []
    put(models / "z/again/x.gguf")
    (group,) = told("ls", "--duplicates")  # type: ignore[misc]
    assert group["models"] == ["p/m", "z/again"] and "too many" in octavo("ls", "--duplicates").stdout


def test_load_ps_and_unload_take_lms_flags(
    models: Path, octavo_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(models / "p/m2/y.gguf", SOUND + b"y")
    with fake_services(octavo_home, monkeypatch):
        asyncio.run(running(Home(octavo_home)))
        exact = octavo("load", "m2", "--exact", "--json")
        assert exact.returncode == 1 and json.loads(exact.stdout)["error"]["code"] == "model_not_found"
        loaded = told(
            "load", "p/m", "--exact", "--gpu", "0.5", "-c", "512", "--parallel", "2", "--ttl", "60", "-y"
        )
        assert isinstance(loaded, dict) and loaded["instance_id"] == "p/m"
        (row,) = told("ps")  # type: ignore[misc]
        assert row["identifier"] == row["modelKey"] == "p/m" and row["ttlMs"] == 60_000
        assert row["status"] == "idle" and row["sizeBytes"] == len(SOUND) and row["contextLength"] > 0
        freed = told("unload")
        assert isinstance(freed, list) and [one["instance_id"] for one in freed] == ["p/m"]
        several = octavo("load", "p/", "-y", "--identifier", "first", "--gpu", "1")
        assert several.returncode == 0 and "The first is taken" in several.stderr
        told("load", "p/m2", "--id", "second", "--gpu", "off")
        both = octavo("unload")
        assert both.returncode == 2 and "first" in both.stderr and "second" in both.stderr
        assert isinstance(told("unload", "-a"), list) and told("ps") == []
