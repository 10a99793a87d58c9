"""Folders of other programs, read where they are: LM Studio, the Hub's cache, Ollama; and folders that go."""

import json
import os
import threading
from pathlib import Path

import pytest

from octavo.core.config.paths import Home
from octavo.core.config.settings import Library
from octavo.core.errors import FolderNotFound
from octavo.core.library import Catalog, catalog
from octavo.core.library.reach import Reach
from octavo.core.library.roots import Root, library_roots
from tests.fixtures.foreign import hub_revision, ollama_model
from tests.fixtures.gguf_builder import pair, tiny
from tests.fixtures.layouts import parts, projector
from tests.fixtures.split_gguf import part_name

SOUND, OTHER = tiny().build(), tiny("gemma3", pair("general.file_type", 7)).build()


@pytest.fixture
def person(tmp_path: Path) -> Path:
    folder = tmp_path / "person"
    folder.mkdir()
    return folder


def put(path: Path, data: bytes = SOUND) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def opened(person: Path, chosen: Library | None = None, **environment: str) -> Catalog:
    home, environ = Home(person.parent / "octavo"), {"HOME": str(person), **environment}
    settings = chosen or Library()
    # Ollama's folder of the whole machine is nobody's business here
    environ.setdefault("OLLAMA_MODELS", str(person / ".ollama/models"))
    return Catalog(lambda: library_roots(home, settings, environ), home.cache / "catalog")


def snapshot(folder: Path) -> dict[str, tuple[int, int]]:
    every = [path for path in folder.rglob("*")]
    return {str(path): (path.lstat().st_size, path.lstat().st_mtime_ns) for path in every}


def test_models_of_all_programs_are_listed_and_nothing_of_theirs_is_written(person: Path) -> None:
    put(person / ".lmstudio/models/lmstudio-community/gemma/gemma.gguf")
    hub_revision(person / ".cache/huggingface/hub", "org/name", "abc", {"name.gguf": OTHER}, is_main=True)
    ollama_model(person / ".ollama/models", "registry.ollama.ai/library/llama3.2:3b", SOUND + b"o")
    before = snapshot(person)
    library = opened(person)
    found = {model.id: model.source for model in library.models()}
    assert found == {
        "lmstudio-community/gemma": "lm_studio",
        "org/name": "hugging_face",
        "ollama/llama3.2:3b": "ollama",
    }
    assert snapshot(person) == before
    assert opened(person, Library(lm_studio=False, hugging_face=False, ollama=False)).models() == []


def test_lm_studios_own_setting_and_the_hubs_variables_say_where(person: Path, tmp_path: Path) -> None:
    put(tmp_path / "drive/lm/p/m/x.gguf")
    put(person / ".lmstudio/models/p/left/x.gguf")
    (person / ".lmstudio/settings.json").write_text(
        json.dumps({"downloadsFolder": str(tmp_path / "drive/lm")})
    )
    hub_revision(tmp_path / "hf/hub", "o/one", "r", {"a.gguf": SOUND})
    hub_revision(tmp_path / "cache", "o/two", "r", {"a.gguf": OTHER})
    hf = {"HF_HOME": str(tmp_path / "hf")}
    assert {model.id for model in opened(person, None, **hf).models()} == {"p/m", "o/one"}
    both = opened(person, None, **hf, HF_HUB_CACHE=str(tmp_path / "cache"))
    assert {model.id for model in both.models()} == {"p/m", "o/two"}


@pytest.mark.parametrize(
    "text", ["", "[]", '{"downloadsFolder": 3}', '{"downloadsFolder": "not/absolute"}', "\xff"]
)
def test_odd_settings_of_lm_studio_are_no_error(text: str, person: Path) -> None:
    put(person / ".lmstudio/models/p/m/x.gguf")
    (person / ".lmstudio/settings.json").write_text(text)
    assert [model.id for model in opened(person).models()] == ["p/m"]


def test_folders_that_a_person_names_are_live(person: Path, tmp_path: Path) -> None:
    put(tmp_path / "mine/p/m/x.gguf")
    folders: list[str] = []
    home, environ = Home(tmp_path / "octavo"), {"HOME": str(person), "OLLAMA_MODELS": str(person / "none")}
    library = Catalog(
        lambda: library_roots(home, Library(folders=tuple(folders)), environ), home.cache / "catalog"
    )
    assert library.models() == []
    folders.append(str(tmp_path / "mine"))
    assert [model.id for model in library.refresh()] == ["p/m"]
    folders.clear()
    assert library.refresh() == []


def test_a_hub_repository_has_one_row_for_a_blob_and_the_newest_whole_revision(person: Path) -> None:
    cache = person / ".cache/huggingface/hub"
    hub_revision(cache, "o/m", "aaa", {"m.gguf": SOUND, "old.gguf": OTHER})
    newest = hub_revision(cache, "o/m", "bbb", {"m.gguf": SOUND}, is_main=True)
    two = parts(2)
    names = [part_name("big", number, 2) for number in (1, 2)]
    hub_revision(cache, "o/split", "whole", dict(zip(names, two, strict=True)))
    hub_revision(cache, "o/split", "half", {names[0]: two[0] + b"x"}, is_main=True)
    hub_revision(cache, "o/hurt", "only", {names[0]: two[0] + b"y"}, is_main=True)
    (cache / "datasets--o--d/snapshots/r").mkdir(parents=True)
    rows = {model.id: model for model in opened(person).models()}
    same = [model for model in rows.values() if model.path.name == "m.gguf"]
    assert [model.path.parent for model in same] == [newest]
    assert sum(model.path.name == "old.gguf" for model in rows.values()) == 1
    assert rows["o/split"].path.parent.name == "whole" and rows["o/split"].is_loadable
    (hurt,) = [model for model in rows.values() if model.publisher == "o" and model.name == "hurt"]
    assert hurt.fault is not None and names[1] in str(hurt.fault.details["missing"])


def test_ollamas_manifest_names_models_and_their_projectors(person: Path) -> None:
    store = person / ".ollama/models"
    blob = ollama_model(store, "registry.ollama.ai/library/llava:7b", SOUND, projector())
    ollama_model(store, "registry.ollama.ai/library/llava:latest", SOUND, projector())
    ollama_model(store, "registry.ollama.ai/someone/tuned:q4", OTHER)
    ollama_model(store, "hf.co/org/name:Q8_0", SOUND + b"hf")
    for number, text in enumerate(["{", "[]", '{"layers": [{"digest": "sha256:../../x"}]}', '{"layers": 3}']):
        put(store / f"manifests/registry.ollama.ai/library/odd/{number}", text.encode())
    library = opened(person)
    rows = {model.id: model for model in library.models()}
    assert set(rows) == {"ollama/llava:7b", "ollama/someone/tuned:q4", "ollama/hf.co/org/name:Q8_0"}
    assert rows["ollama/llava:7b"].path == blob and rows["ollama/llava:7b"].sees_images
    assert rows["ollama/someone/tuned:q4"].projector is None
    assert library.find("llava:7b").id == "ollama/llava:7b"


def test_a_blob_that_ollama_lacks_is_a_row_with_its_reason(person: Path) -> None:
    ollama_model(person / ".ollama/models", "registry.ollama.ai/library/gone:1b", SOUND).unlink()
    (row,) = opened(person).models()
    assert row.fault is not None and not row.is_loadable and row.id.startswith("ollama/gone:1b")


def test_a_folder_in_two_settings_is_read_once(person: Path) -> None:
    models = person / ".lmstudio/models"
    put(models / "p/m/x.gguf")
    (person / "link").symlink_to(models)
    chosen = Library(folders=(str(models), str(person / "link"), str(models / "p")))
    assert [model.id for model in opened(person, chosen).models()] == ["p/m"]


def test_b13_a_renamed_folder_keeps_its_rows_greyed_and_is_back_afterwards(tmp_path: Path) -> None:
    folder = tmp_path / "drive"
    for quant, data in (("Q4", SOUND), ("Q8", OTHER)):
        put(folder / f"p/m/x-{quant}.gguf", data)
    for number, data in enumerate(parts(), 1):
        put(folder / "p/split" / part_name("s", number, 3), data)
    put(folder / "p/bad/b.gguf", b"GG")
    cache = tmp_path / "cache/catalog"
    before = {model.id: model for model in Catalog([folder], cache).models()}
    folder.rename(tmp_path / "away")
    # the app begins while the folder is away
    library = Catalog([folder], cache)
    rows = {model.id: model for model in library.models()}
    assert set(rows) == set(before) and library.missing_roots() == [folder]
    assert all(row.is_offline and row.files == before[name].files for name, row in rows.items())
    with pytest.raises(FolderNotFound, match=r"drive.* is not found") as caught:
        library.find("p/split").require_sound()
    assert "drive" in caught.value.hint and caught.value.details["folder"] == str(folder)
    with pytest.raises(FolderNotFound):
        library.find(str(before["p/split"].path)).require_sound()
    put(tmp_path / "away/p/new/n.gguf")
    (tmp_path / "away").rename(folder)
    again = {model.id: model for model in library.refresh()}
    assert {name: again[name] for name in before} == before and "p/new" in again
    assert library.missing_roots() == []


def test_b13_an_empty_mount_point_is_a_drive_that_is_away(tmp_path: Path) -> None:
    folder = tmp_path / "mnt"
    file = put(folder / "p/m/x.gguf")
    library = Catalog([folder], tmp_path / "cache/catalog")
    library.models()
    name = os.fsencode(folder)
    # as if it had been on another drive
    library._index.devices[name] += 1
    file.unlink()
    (row,) = library.refresh()
    assert row.is_offline
    library._index.devices[name] -= 1
    assert library.refresh() == []


def test_a_drive_that_never_answers_holds_nobody_up(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    dead, answer = tmp_path / "dead", threading.Event()
    put(tmp_path / "alive/p/m/x.gguf")
    stat = os.stat

    def hangs(path: object, *rest: object, **named: object) -> os.stat_result:
        if path == dead:
            answer.wait(20)
        return stat(path, *rest, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "stat", hangs)
    library = Catalog([Root(dead), Root(tmp_path / "alive")], tmp_path / "cache/catalog")
    library._reach = Reach(patience_s=0.1)
    try:
        assert [model.id for model in library.models()] == ["p/m"]
        probes = [thread for thread in threading.enumerate() if thread.name == "folder probe"]
        library.refresh()
        library.refresh()
        assert (
            len([thread for thread in threading.enumerate() if thread.name == "folder probe"])
            == len(probes)
            == 1
        )
    finally:
        answer.set()


def test_b08_a_file_whose_room_is_taken_first_waits_until_it_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = put(tmp_path / "models/p/m/x.gguf")
    library = Catalog([tmp_path / "models"], tmp_path / "cache/catalog")
    assert library.models()[0].is_loadable
    put(path)
    (row,) = library.refresh()
    assert not row.is_loadable and row.fault is not None and "being written" in row.fault.message
    assert library.is_settling
    monkeypatch.setattr(catalog, "QUIET_S", 0.0)
    assert library.refresh()[0].is_loadable and not library.is_settling
