"""Deleting: what will go is said before, and nothing else goes."""

import os
from pathlib import Path

import pytest

from octavo.core.errors import FolderNotFound, ForeignFile, InvalidRequest, StorageFailed
from octavo.core.library import Catalog
from octavo.core.library.removal import Removal, plan_removal, run_removal
from octavo.core.library.roots import Root
from octavo.core.library.trash import has_trash
from tests.fixtures.foreign import hub_revision, ollama_model
from tests.fixtures.gguf_builder import pair, tiny
from tests.fixtures.layouts import parts, projector
from tests.fixtures.split_gguf import part_name

SOUND = tiny(embedding_length=64).build()
OTHER = tiny("llama", pair("general.file_type", 7), embedding_length=64).build()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "models").mkdir()
    return tmp_path / "models"


def put(path: Path, data: bytes = SOUND) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def library(*roots: Root) -> Catalog:
    return Catalog(list(roots), roots[0].path.parent / "cache" / "catalog")


def remove(catalog: Catalog, name: str, *, permanently: bool = True) -> Removal:
    plan = plan_removal(catalog.find(name), catalog.models(), catalog.roots, permanently=permanently)
    before = {str(path) for path in catalog.roots[0].path.rglob("*")}
    assert before == {str(path) for path in catalog.roots[0].path.rglob("*")} and plan.told.dry_run
    return run_removal(plan)


def left(root: Path) -> list[str]:
    return sorted(path.relative_to(root).as_posix() for path in root.rglob("*"))


def test_b11_deleting_one_of_two_equal_names_hits_that_one(root: Path) -> None:
    put(root / "dup-pub-1/same/gemma.gguf")
    put(root / "dup-pub-2/same/gemma.gguf", OTHER)
    catalog = library(Root(root, "octavo"))
    sizes = {model.id: model.size_bytes for model in catalog.models()}
    assert sizes == {"dup-pub-1/same": len(SOUND), "dup-pub-2/same": len(OTHER)}
    told = remove(catalog, "dup-pub-1/same")
    assert told.freed_bytes == len(SOUND) and not told.dry_run
    assert left(root) == ["dup-pub-2", "dup-pub-2/same", "dup-pub-2/same/gemma.gguf"]
    assert [model.id for model in catalog.refresh()] == ["dup-pub-2/same"]


def test_all_parts_and_a_projector_of_its_own_go_with_the_empty_folders(root: Path) -> None:
    for number, data in enumerate(parts(), 1):
        put(root / "p/m" / part_name("base", number, 3), data)
    put(root / "p/m/mmproj-base-f16.gguf", projector())
    told = remove(library(Root(root, "octavo")), "p/m")
    assert [file.kind for file in told.files] == ["model"] * 3 + ["projector"]
    assert [Path(folder).name for folder in told.folders] == ["m", "p"]
    assert left(root) == []


def test_a_projector_that_another_model_uses_stays_and_so_does_what_else_is_there(root: Path) -> None:
    put(root / "p/m/base-Q4_K_M.gguf")
    put(root / "p/m/base-Q8_0.gguf", OTHER)
    put(root / "p/m/mmproj-base-f16.gguf", projector())
    put(root / "p/m/README.md", b"")
    catalog = library(Root(root, "octavo"))
    first, second = catalog.models()
    told = remove(catalog, first.id)
    assert any("stays" in note and second.id in note for note in told.notes) and told.folders == []
    catalog.refresh()
    remove(catalog, "p/m")
    assert left(root) == ["p", "p/m", "p/m/README.md"]


def test_folders_that_are_not_ours_stay_though_empty(root: Path) -> None:
    put(root / "p/m/x.gguf")
    remove(library(Root(root)), "p/m")
    assert left(root) == ["p", "p/m"]


def test_links_are_told_of_and_their_data_stays(root: Path, tmp_path: Path) -> None:
    data = put(tmp_path / "elsewhere/data.gguf")
    for name in ("soft", "hard"):
        (root / f"p/{name}").mkdir(parents=True)
    (root / "p/soft/x.gguf").symlink_to(data)
    (root / "p/hard/y.gguf").hardlink_to(data)
    catalog = library(Root(root, "octavo"))
    for name, words in (("p/soft", "is a link"), ("p/hard", "another name")):
        told = remove(catalog, name)
        assert words in told.notes[0] and told.freed_bytes == 0
    assert data.read_bytes() == SOUND and left(root) == []


def test_other_programs_files_are_refused_with_the_way_to_do_it(root: Path, tmp_path: Path) -> None:
    lm, hub, ollama = (tmp_path / name for name in ("lm", "hub", "ollama"))
    put(lm / "p/theirs/x.gguf")
    hub_revision(hub, "o/m", "r", {"m.gguf": OTHER})
    ollama_model(ollama, "registry.ollama.ai/library/l:1b", SOUND + b"x")
    (root / "linked").symlink_to(lm / "p")
    roots = (Root(root, "octavo"), Root(lm, "lm_studio"), Root(hub, "hugging_face"), Root(ollama, "ollama"))
    catalog = library(*roots)
    for name, words in (("theirs", "LM Studio"), ("o/m", "hf cache rm"), ("ollama/l:1b", "ollama rm")):
        with pytest.raises(ForeignFile) as caught:
            remove(catalog, name)
        assert words in str(caught.value)
    assert (lm / "p/theirs/x.gguf").exists()


def test_what_is_not_in_the_library_or_away_is_refused(root: Path, tmp_path: Path) -> None:
    outside = put(tmp_path / "elsewhere/x.gguf")
    put(root / "p/m/y.gguf", OTHER)
    catalog = library(Root(root, "octavo"))
    with pytest.raises(InvalidRequest, match="isn't in the library"):
        remove(catalog, str(outside))
    catalog.models()
    root.rename(tmp_path / "away")
    catalog.refresh()
    with pytest.raises(FolderNotFound):
        remove(catalog, "p/m")


def test_into_the_trash_where_there_is_one(root: Path) -> None:
    import send2trash.plat_other as trash

    put(root / "p/m/thrown-away.gguf")
    catalog = library(Root(root, "octavo"))
    assert has_trash(root / "p/m/thrown-away.gguf")
    assert not has_trash(root / ("n" * 250))
    told = remove(catalog, "p/m", permanently=False)
    assert told.to_trash and left(root) == []
    (thrown,) = Path(trash.HOMETRASH, "files").glob("thrown-away*")
    assert thrown.read_bytes() == SOUND
    thrown.unlink()


def test_without_a_trash_that_is_said(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("octavo.core.library.removal.has_trash", lambda path: False)
    put(root / "p/m/x.gguf")
    told = remove(library(Root(root, "octavo")), "p/m", permanently=False)
    assert not told.to_trash and "for good" in told.notes[0] and left(root) == []


def test_a_trash_that_fails_deletes_nothing(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(path: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("octavo.core.library.removal.has_trash", lambda path: True)
    monkeypatch.setattr("send2trash.send2trash", fails)
    put(root / "p/m/x.gguf")
    with pytest.raises(StorageFailed, match="could not be deleted") as caught:
        remove(library(Root(root, "octavo")), "p/m", permanently=False)
    assert "--permanently" in caught.value.hint and os.path.exists(root / "p/m/x.gguf")
