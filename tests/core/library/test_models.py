"""The ids of models: readable, unequal, and the same for the same files."""

import os
import unicodedata
from pathlib import Path

import msgspec

from octavo.core.library import Catalog
from tests.fixtures.gguf_builder import pair, tiny

Q4, Q8 = (
    tiny("llama", pair("general.file_type", 15)).build(),
    tiny("llama", pair("general.file_type", 7)).build(),
)


def ids(tmp_path: Path, *names: str, **files: bytes) -> list[str]:
    root = tmp_path / "models"
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(files.get(path.stem, Q4))
    return [model.id for model in Catalog([root], tmp_path / "cache").models()]


def test_a_file_alone_in_its_folder_is_called_by_publisher_and_model(tmp_path: Path):
    assert ids(tmp_path, "google/gemma-3/gemma.Q4_K_M.gguf") == ["google/gemma-3"]


def test_several_in_a_folder_are_told_apart_by_quant(tmp_path: Path):
    found = ids(tmp_path, "p/m/four.gguf", "p/m/eight.gguf", four=Q4, eight=Q8)
    assert sorted(found) == ["p/m@Q4_K_M", "p/m@Q8_0"]


def test_equal_quants_in_a_folder_are_told_apart_by_file(tmp_path: Path):
    found = ids(tmp_path, "p/m/a.gguf", "p/m/b.gguf", "p/m/c.gguf", a=Q4, b=Q4, c=Q8)
    assert sorted(found) == ["p/m/a", "p/m/b", "p/m@Q8_0"]


def test_what_is_no_model_doesnt_change_the_name_of_one_beside_it(tmp_path: Path):
    projector = tiny("clip", pair("general.type", "mmproj")).build()
    found = ids(
        tmp_path, "p/m/base.gguf", "p/m/mmproj.gguf", "p/m/broken.gguf", mmproj=projector, broken=b"GG"
    )
    assert sorted(found) == ["p/m", "p/m/broken"]


def test_files_in_no_publishers_folder_are_local(tmp_path: Path):
    assert ids(tmp_path, "root.gguf", "one/x.gguf") == ["local/one", "local/root"]


def test_deeper_folders_belong_to_the_model(tmp_path: Path):
    assert ids(tmp_path, "p/m/UD-Q4/x.gguf") == ["p/m/UD-Q4"]


def test_a_hub_cache_is_named_by_its_repository(tmp_path: Path):
    assert ids(tmp_path, "models--org--some--repo/snapshots/abc123/x.gguf") == ["org/some--repo"]


def test_b10_ids_go_through_json_and_stay_on_one_line(tmp_path: Path):
    root = tmp_path / "models"
    nfc, nfd = (unicodedata.normalize(form, "café.gguf") for form in ("NFC", "NFD"))
    odd = (
        "출판사/모델 é/x.gguf",
        "emoji/🦙-repo/🦙🏽‍♀️.gguf",
        "line\nbreak/m/x.gguf",
        f"n/r/{nfc}",
        f"n/r/{nfd}",
    )
    found = ids(tmp_path, *odd, 'q/it\'s "100%" #1 & $(touch X)/x.gguf')
    raw = os.fsencode(root) + b"/bytes/caf\xe9/"
    os.makedirs(raw)
    Path(os.fsdecode(raw + b"x.gguf")).write_bytes(Q4)
    found = [model.id for model in Catalog([root], tmp_path / "cache2").models()]
    assert len(set(found)) == len(found) == 7
    assert msgspec.json.decode(msgspec.json.encode(found)) == found
    assert not any("\n" in name for name in found)
    assert {"emoji/🦙-repo", "출판사/모델 é", "n/r/café", "n/r/café~2"} <= set(found)


def test_names_that_differ_by_case_only_are_two(tmp_path: Path):
    assert sorted(ids(tmp_path, "c/r/Model.gguf", "c/r/model.gguf")) == ["c/r/Model", "c/r/model"]


def test_the_same_model_in_two_roots_gets_two_ids(tmp_path: Path):
    for root in ("one", "two"):
        (tmp_path / root / "p/m").mkdir(parents=True)
        (tmp_path / root / "p/m/x.gguf").write_bytes(Q4)
    catalog = Catalog([tmp_path / "one", tmp_path / "two"], tmp_path / "cache")
    assert [model.id for model in catalog.models()] == ["p/m/x", "p/m/x~2"]
