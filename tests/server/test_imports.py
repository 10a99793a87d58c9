"""Imports by the service and by the command line: progress, calling off, and what is left then."""

import asyncio
import contextlib
import json
import os
import pty
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from octavo.core.client.types import ImportAnswer
from octavo.core.config.paths import Home
from octavo.core.errors import Cancelled, InvalidRequest, NotFound
from octavo.core.events import ImportProgressed
from octavo.core.library import importer, plans
from octavo.server.imports import ImportWish, import_path
from tests.core.library.import_scene import tree
from tests.fixtures.gguf_builder import pair, tiny
from tests.fixtures.import_units import projector, small_set, starter_set
from tests.server.processes import end_service, fake_service_command, wait
from tests.server.support import Served, in_loop, raises, served, until

SLOW_BLOCK_S = 0.02


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plans, "QUIET_S", 0.0)


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Copies that take a while: each report of progress waits."""
    made = importer._made

    def slowly(files, folder, progress, cancelled):  # type: ignore[no-untyped-def]
        def tell(done: int, total: int) -> None:
            progress(done, total)
            time.sleep(SLOW_BLOCK_S)

        return made(files, folder, tell, cancelled)

    monkeypatch.setattr(importer, "_made", slowly)


@pytest.fixture
def files(smollm2: Path, tmp_path: Path) -> list[Path]:
    return starter_set(smollm2, tmp_path / "sources")


async def followed(at: Served, told: list[tuple[float, ImportProgressed]]) -> None:
    async for event in at.client.events():
        if isinstance(event, ImportProgressed):
            told.append((time.monotonic(), event))


@in_loop
async def test_progress_is_told_at_most_four_times_a_second(
    octavo_home: Path, files: list[Path], slow: None
) -> None:
    told: list[tuple[float, ImportProgressed]] = []
    async with served(octavo_home) as at:
        following = asyncio.create_task(followed(at, told))
        await asyncio.sleep(0.1)
        answer = await at.client.import_model(str(files[1]), "p/m", "copy", id="mine")
        await until(lambda: bool(told) and told[-1][1].done_bytes == told[-1][1].total_bytes)
        following.cancel()
        assert [model.key for model in await at.client.models()] == ["p/m"]
    total = sum(path.stat().st_size for path in files)
    assert {(event.id, event.source, event.total_bytes) for _, event in told} == {
        ("mine", str(files[1]), total)
    }
    counts = [event.done_bytes for _, event in told]
    assert counts == sorted(counts) and counts[-1] == total
    seconds = told[-1][0] - told[0][0]
    print(f"{len(told)} reports in {seconds:.2f} s")
    assert len(told) <= 4 * seconds + 3
    assert [file.model for file in answer.files] == ["p/m"] * 4
    assert {file.mode for file in answer.files} == {"copy"}


@in_loop
async def test_a_client_that_leaves_calls_its_import_off(
    octavo_home: Path, files: list[Path], slow: None
) -> None:
    async with served(octavo_home) as at:
        importing = asyncio.create_task(at.client.import_model(str(files[0]), "p/m", "copy"))
        await until(lambda: any(at.home.models.rglob(".import-*.part/00001")))
        importing.cancel()
        began = time.monotonic()
        await until(lambda: tree(at.home.models) == [])
        print(f"nothing is left after {time.monotonic() - began:.2f} s")
        assert all(path.exists() for path in files) and await at.client.models() == []


@in_loop
async def test_an_import_is_called_off_by_its_id(octavo_home: Path, files: list[Path], slow: None) -> None:
    async with served(octavo_home) as at:
        importing = asyncio.create_task(at.client.import_model(str(files[0]), "p/m", "copy", id="a b/c"))
        await until(lambda: any(at.home.models.rglob(".import-*.part/00001")))
        await raises(NotFound, at.client.cancel_import("another"))
        await at.client.cancel_import("a b/c")
        fault = await raises(Cancelled, importing)
        assert "nothing was changed" in str(fault) and tree(at.home.models) == []


@in_loop
async def test_a_service_that_stops_calls_imports_off(
    octavo_home: Path, files: list[Path], slow: None
) -> None:
    async with served(octavo_home) as at:
        importing = asyncio.create_task(at.client.import_model(str(files[0]), "p/m", "copy"))
        await until(lambda: any(at.home.models.rglob(".import-*.part/00001")))
        at.studio.stop()
        await raises(Exception, importing)
    assert tree(Home(octavo_home).models) == [] and all(path.exists() for path in files)


def test_a_folder_of_quants_with_one_projector_is_moved_whole(octavo_home: Path, tmp_path: Path) -> None:
    folder = tmp_path / "vision"
    folder.mkdir()
    for number, name in enumerate(("base-Q4_0", "base-Q8_0")):
        model = tiny("gemma3", embedding_length=640, context_length=100 + number)
        model.pairs[1] = pair("general.name", "Base")
        (folder / f"{name}.gguf").write_bytes(model.build())
    (folder / "mmproj-base-f16.gguf").write_bytes(projector(640))
    answer = import_path(Home(octavo_home), ImportWish(str(folder), repo="p/m"))
    assert not answer.failures and tree(folder) == []
    assert sorted(path.name for path in (octavo_home / "models/p/m").iterdir()) == [
        "base-Q4_0.gguf",
        "base-Q8_0.gguf",
        "mmproj-base-f16.gguf",
    ]


def test_models_of_a_folder_that_do_not_fit_together_stay_out(
    octavo_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "folder"
    for number in range(3):
        small_set(folder / str(number), f"m{number}")
    one = sum(path.stat().st_size for path in (folder / "0").iterdir())
    room = shutil._ntuple_diskusage(10**9, 0, (64 << 20) + 2 * one)  # type: ignore[attr-defined]
    monkeypatch.setattr(shutil, "disk_usage", lambda path: room)
    answer = import_path(Home(octavo_home), ImportWish(str(folder), mode="copy", dry_run=True))
    assert len(answer.files) == 8 and len(answer.failures) == 1
    assert answer.failures[0].error.code == "storage_failed" and not (octavo_home / "models").exists()


def test_a_folder_that_is_called_off_tells_what_came_before(octavo_home: Path, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    for number in range(2):
        small_set(folder / str(number), f"m{number}")
    seen: list[int] = []
    total = sum(path.stat().st_size for path in folder.rglob("*.gguf"))

    def is_called_off() -> bool:
        return bool(seen) and seen[-1] > total // 2

    with pytest.raises(Cancelled, match="1 of 2"):
        import_path(
            Home(octavo_home),
            ImportWish(str(folder), mode="copy"),
            lambda done, _total: seen.append(done),
            is_called_off,
        )
    assert len(list((octavo_home / "models").rglob("*.gguf"))) == 4


def test_a_projector_goes_with_one_model(octavo_home: Path, tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match="one model"):
        import_path(Home(octavo_home), ImportWish(str(tmp_path), projector="x.gguf"))


def test_the_hub_is_asked_only_when_told(octavo_home: Path, tmp_path: Path) -> None:
    source, home = small_set(tmp_path / "d")[0], Home(octavo_home)

    def propose(name: str) -> tuple[str, str]:
        return "org", name.partition("-")[0]

    plain = import_path(home, ImportWish(str(source), dry_run=True), propose_from_hub=propose)
    looked = import_path(home, ImportWish(str(source), dry_run=True, look_up=True), propose_from_hub=propose)
    assert (plain.models, looked.models) == (["imported/Tiny-small"], ["org/Tiny"])
    with pytest.raises(InvalidRequest, match="can't be asked"):
        import_path(home, ImportWish(str(source), dry_run=True, look_up=True))


def test_a_folder_import_skips_what_is_in_the_library(octavo_home: Path, tmp_path: Path) -> None:
    home = Home(octavo_home)
    files = small_set(home.models / "pub" / "set")
    before = tree(tmp_path), tree(octavo_home)
    for folder in (home.models, home.models / "pub", octavo_home):
        answer = import_path(home, ImportWish(str(folder)))
        assert not answer.failures and answer.models == ["pub/set"]
        assert all(file.present for file in answer.files) and len(answer.files) == len(files)
        assert "in the library already" in answer.notes[0]
    assert (tree(tmp_path), tree(octavo_home)) == before


def test_a_folder_import_takes_nothing_from_behind_links(octavo_home: Path, tmp_path: Path) -> None:
    folder, outside = tmp_path / "folder", tmp_path / "outside"
    theirs, linked = outside / "theirs.gguf", outside / "linked.gguf"
    outside.mkdir()
    theirs.write_bytes(tiny(context_length=1).build())
    linked.write_bytes(tiny(context_length=2).build())
    small_set(folder)
    (folder / "out").symlink_to(outside)
    (folder / "loop").symlink_to(folder)
    (folder / "linked.gguf").symlink_to(linked)
    answer = import_path(Home(octavo_home), ImportWish(str(folder), repo="p/m"))
    assert not answer.failures and "1 linked folder" in answer.notes[-1]
    assert tree(folder) == ["loop", "out"] and theirs.is_file() and linked.is_file()
    assert len(list((octavo_home / "models/p/m").iterdir())) == 5


@pytest.mark.parametrize("path", ["", ".", "a.gguf", "~/a.gguf"])
@in_loop
async def test_the_service_takes_absolute_paths_only(octavo_home: Path, tmp_path: Path, path: str) -> None:
    async with served(octavo_home) as at:
        wishes = ({"path": path}, {"path": str(tmp_path / "x.gguf"), "projector": path})
        for wish in wishes:
            answer = await at.control.post("/api/v1/models/import", json=wish)
            error = answer.json()["error"]
            assert answer.status_code == 400 and error["code"] == "invalid_request"
            assert "absolute" in error["message"]


# --- the command line ---


def test_an_empty_path_is_no_folder(
    octavo_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    files = small_set(tmp_path / "here")
    monkeypatch.chdir(tmp_path / "here")
    assert [told("", "-y")[0], told(str(files[0]), "--projector", "")[0]] == [2, 2]
    assert all(path.exists() for path in files)
    monkeypatch.setenv("HOME", str(tmp_path / "here"))
    code, answer, _ = told(f"~/{files[0].name}", files[1].name, "--dry-run")
    assert code == 0 and [len(one["files"]) for one in answer] == [4, 4]  # type: ignore[index]


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-P", "-m", "octavo.server.cli.main", "import", *arguments]


def told(*arguments: str) -> tuple[int, list[ImportAnswer] | dict[str, object], str]:
    done = subprocess.run(
        command(*arguments, "--json"), capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL
    )
    return done.returncode, json.loads(done.stdout or "{}"), done.stderr


@pytest.mark.parametrize(
    ("flags", "mode"),
    [
        (("-l",), "symlink"),
        (("--symbolic-link",), "symlink"),
        (("-L",), "hard_link"),
        (("--hard-link",), "hard_link"),
        (("-c",), "copy"),
        (("--copy",), "copy"),
        (("--move",), "move"),
        ((), "move"),
    ],
)
def test_the_flags_are_those_of_lms(
    octavo_home: Path, tmp_path: Path, flags: tuple[str, ...], mode: str
) -> None:
    files = small_set(tmp_path / "sources")
    before = tree(octavo_home)
    code, answer, _ = told(str(files[2]), "--user-repo", "p/m", "-y", "--dry-run", *flags)
    assert code == 0 and tree(octavo_home) == before and all(path.exists() for path in files)
    assert [file["mode"] for file in answer[0]["files"]] == [mode] * 4  # type: ignore[index]


def test_several_paths_and_no_projector(octavo_home: Path, tmp_path: Path) -> None:
    one, two = small_set(tmp_path / "one", "one"), small_set(tmp_path / "two", "two")
    code, answer, _ = told(str(one[1]), str(two[0]), "--no-projector", "--yes", "--repo", "p/m")
    assert code == 0 and len(answer) == 2
    assert len(list((octavo_home / "models" / "p" / "m").iterdir())) == 6 and one[3].exists()
    assert told(str(one[0]), str(two[0]), "--projector", "x.gguf")[0] == 2
    assert told(str(one[0]), "--no-projector", "--projector", "x.gguf")[0] == 2


@pytest.fixture
def another_disk() -> Iterator[Path]:
    if not Path("/dev/shm").is_dir():
        pytest.skip("this machine has no shared memory")
    with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="octavo-test-") as folder:
        yield Path(folder)


@contextlib.contextmanager
def service(home: Path, patch: pytest.MonkeyPatch) -> Iterator[None]:
    patch.setenv("PYTHONPATH", str(Path(__file__).resolve().parents[2]))
    with subprocess.Popen(fake_service_command()) as process:
        try:
            wait(lambda: (home / "run" / "service.json").exists(), "the service begins")
            yield
        finally:
            end_service(home)
            process.wait(20)


@pytest.mark.parametrize("with_service", [False, True])
def test_ctrl_c_calls_an_import_off_and_changes_nothing(
    with_service: bool, octavo_home: Path, smollm2: Path, another_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = starter_set(smollm2, another_disk)
    context = service(octavo_home, monkeypatch) if with_service else contextlib.nullcontext()
    with context:
        code, err = interrupted(octavo_home, command(str(files[0]), "--copy", "--repo", "p/m"))
        assert code == 1, err
        assert "nothing was changed" in err and "Traceback" not in err and " %  " in err
        wait(lambda: tree(octavo_home / "models") == [], "nothing is left")
    assert all(path.exists() for path in files)


def interrupted(home: Path, arguments: list[str]) -> tuple[int, str]:
    """Run on a terminal, press Ctrl+C once bytes are copied; gives the exit code and what was on stderr."""
    reading, writing = pty.openpty()
    with subprocess.Popen(
        arguments, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=writing
    ) as process:
        os.close(writing)
        wait(lambda: any((home / "models").rglob(".import-*.part/00001")), "the copy begins")
        process.send_signal(signal.SIGINT)
        heard = b""
        with contextlib.suppress(OSError):
            while block := os.read(reading, 4096):
                heard += block
        code = process.wait(30)
    os.close(reading)
    return code, heard.decode()
