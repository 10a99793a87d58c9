"""The index: what it remembers, how a name is understood, and what a damaged one does."""

import os
import threading
from pathlib import Path

import pytest

from octavo.core.errors import AmbiguousModel, InvalidGguf, ModelNotFound
from octavo.core.library import Catalog, catalog
from tests.fixtures.gguf_builder import pair, tiny

SOUND = tiny("llama", pair("general.file_type", 15)).build()
Read = list[str]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "models"
    for name in ("google/gemma-3-270m", "HuggingFaceTB/SmolLM2-135M-Instruct", "one/same", "two/same"):
        (root / name).mkdir(parents=True)
        (root / name / "model.gguf").write_bytes(SOUND)
    return root


@pytest.fixture
def library(root: Path, tmp_path: Path) -> Catalog:
    return Catalog([root], tmp_path / "cache" / "catalog.msgpack")


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> Read:
    """The names of the files whose headers were read."""
    names: Read = []
    examine = catalog.examine
    monkeypatch.setattr(catalog, "examine", lambda found: (names.append(found.path.name), examine(found))[1])
    return names


def another(library: Catalog, tmp_path: Path) -> Catalog:
    return Catalog(library.roots, tmp_path / "cache" / "catalog.msgpack")


def test_b01_a_second_start_reads_no_header(library: Catalog, tmp_path: Path, read: Read):
    first = library.models()
    assert len(read) == 4
    assert another(library, tmp_path).models() == first
    assert len(read) == 4


def test_only_new_and_changed_files_are_read_again(library: Catalog, root: Path, read: Read):
    library.models()
    changed, new = root / "one/same/model.gguf", root / "one/same/new.gguf"
    new.write_bytes(SOUND)
    changed.write_bytes(SOUND + b"more")
    (root / "two/same/model.gguf").unlink()
    read.clear()
    assert len(library.refresh()) == 4
    assert sorted(read) == ["model.gguf", "new.gguf"]


def test_a_file_of_the_same_size_with_another_time_is_read_again(library: Catalog, root: Path, read: Read):
    library.models()
    os.utime(root / "one/same/model.gguf", ns=(1, 1))
    read.clear()
    library.refresh()
    assert read == ["model.gguf"]


def test_rows_stay_as_they_were_until_a_refresh(library: Catalog, root: Path):
    before = library.models()
    (root / "new.gguf").write_bytes(SOUND)
    assert library.models() == before
    assert len(library.refresh()) == len(library.models()) == 5


@pytest.mark.parametrize("damage", [b"", b"\xff\xfe not msgpack", b"\x82\xa6format\x01"])
def test_a_damaged_index_is_set_aside_and_built_anew(damage: bytes, library: Catalog, tmp_path: Path):
    expected = library.models()
    index = tmp_path / "cache" / "catalog.msgpack"
    index.write_bytes(damage)
    assert another(library, tmp_path).models() == expected
    assert index.with_name("catalog.msgpack.damaged").read_bytes() == damage
    assert index.stat().st_size > 100


def test_an_index_that_cant_be_written_costs_no_row(root: Path, tmp_path: Path):
    (tmp_path / "file").write_bytes(b"")
    assert len(Catalog([root], tmp_path / "file" / "catalog").models()) == 4


def test_the_index_is_replaced_whole(library: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    library.models()
    index = tmp_path / "cache" / "catalog.msgpack"
    before = index.read_bytes()

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    os.utime(library.models()[0].path, ns=(1, 1))
    assert len(library.refresh()) == 4
    assert (index.read_bytes(), os.listdir(index.parent)) == (before, ["catalog.msgpack"])


def test_b13_an_unplugged_root_is_named_and_its_files_are_remembered(
    library: Catalog, root: Path, tmp_path: Path, read: Read
):
    before = library.models()
    root.rename(root.with_name("away"))
    away = library.refresh()
    assert [(model.id, model.files) for model in away] == [(model.id, model.files) for model in before]
    assert all(model.is_offline and not model.is_loadable for model in away)
    assert library.missing_roots() == [root]
    root.with_name("away").rename(root)
    read.clear()
    assert another(library, tmp_path).models() == before
    assert read == []


@pytest.mark.parametrize(
    "name",
    [
        "google/gemma-3-270m",
        "GOOGLE/Gemma-3-270M",
        "gemma-3-270m",
        "gemma",
        "270m",
    ],
)
def test_a_model_is_found_by_its_id_or_a_part_of_it(name: str, library: Catalog):
    assert library.find(name).id == "google/gemma-3-270m"


def test_a_whole_part_goes_before_a_piece_of_another(library: Catalog, root: Path):
    (root / "google/gemma-3").mkdir()
    (root / "google/gemma-3/model.gguf").write_bytes(SOUND)
    assert library.find("gemma-3").id == "google/gemma-3"


def test_b11_a_short_name_of_two_models_lists_both(library: Catalog):
    with pytest.raises(AmbiguousModel) as caught:
        library.find("same")
    assert caught.value.details["candidates"] == ["one/same", "two/same"]
    assert "one/same" in caught.value.message and "two/same" in caught.value.message
    assert library.find("two/same").id == "two/same"


def test_an_unknown_model_names_the_near_ones(library: Catalog):
    with pytest.raises(ModelNotFound) as caught:
        library.find("smollm2-135m-instrukt")
    assert caught.value.details["candidates"] == ["HuggingFaceTB/SmolLM2-135M-Instruct"]
    assert "Did you mean HuggingFaceTB/SmolLM2-135M-Instruct" in caught.value.hint


@pytest.mark.parametrize("name", ["", "  ", "x \ud83d", "a\0b/c.gguf", "../../../etc/nothing", "/"])
def test_odd_names_are_not_found_and_break_nothing(name: str, library: Catalog):
    with pytest.raises(ModelNotFound) as caught:
        library.find(name)
    str(caught.value).encode()


def test_a_file_copied_in_since_the_last_look_is_found(library: Catalog, root: Path):
    library.models()
    (root / "fresh.gguf").write_bytes(SOUND)
    assert library.find("fresh").id == "local/fresh"


def test_a_path_to_a_listed_file_is_that_row(library: Catalog, root: Path):
    assert library.find(str(root / "one/same/model.gguf")).id == "one/same"


def test_a_path_to_a_file_elsewhere_is_a_row_of_its_own(library: Catalog, tmp_path: Path):
    path = tmp_path / "elsewhere.gguf"
    path.write_bytes(SOUND)
    model = library.find(str(path))
    assert (model.id, model.path, model.is_loadable) == (str(path), path, True)
    with pytest.raises(ModelNotFound):
        library.find(str(path), allow_path=False)


def test_a_path_to_a_broken_file_tells_its_fault(library: Catalog, tmp_path: Path):
    (tmp_path / "bad.gguf").write_bytes(b"GG")
    model = library.find(str(tmp_path / "bad.gguf"))
    with pytest.raises(InvalidGguf, match=r"bad\.gguf"):
        model.require_sound()


def test_a_sound_model_is_meant_before_a_broken_one(library: Catalog, root: Path):
    (root / "google/gemma-3-270m/gemma-broken.gguf").write_bytes(b"GG")
    assert library.find("gemma").id == "google/gemma-3-270m"
    assert library.find("gemma-broken").fault is not None


def test_a_catalog_may_be_used_from_many_threads(library: Catalog):
    results: list[int] = []
    start = threading.Barrier(8)

    def look() -> None:
        start.wait()
        results.append(len(library.refresh()) + len(library.models()))
        library.find("gemma")

    threads = [threading.Thread(target=look) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [8] * 8


def test_a_listing_that_is_old_looks_again(library: Catalog, root: Path, monkeypatch: pytest.MonkeyPatch):
    before = len(library.fresh())
    (root / "by/hand").mkdir(parents=True)
    (root / "by/hand/x.gguf").write_bytes(SOUND)
    assert len(library.fresh()) == before
    monkeypatch.setattr(catalog, "FRESH_S", 0.0)
    assert len(library.fresh()) == before + 1 == len(library.models())


def test_a_name_without_a_letter_is_named(library: Catalog):
    with pytest.raises(ModelNotFound, match="\ufffd"):
        library.find("\ufffd\ufffd")
