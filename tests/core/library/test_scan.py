"""Which files a scan finds, and that nothing in a folder stops or hangs it."""

import os
from pathlib import Path

import pytest

from octavo.core.errors import InvalidGguf
from octavo.core.gguf import ValueType
from octavo.core.library import Catalog, Model
from octavo.core.library.scan import find_files
from tests.fixtures.gguf_builder import GgufFile, pair, tiny
from tests.fixtures.hostile_ggufs import HOSTILE, UNLOADABLE, WRONG_KINDS

SOUND = tiny().build()


def put(path: Path, data: bytes = SOUND) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def names(root: Path) -> list[str]:
    return sorted(str(found.path.relative_to(root)) for found in find_files(root))


def rows(root: Path) -> dict[str, Model]:
    return {model.id: model for model in Catalog([root], root.parent / "cache" / "catalog").models()}


def test_files_are_found_at_any_depth_and_in_any_case(tmp_path: Path):
    root = tmp_path / "models"
    deep = "/".join(f"level{i}" for i in range(40))
    for name in ("root.gguf", "one/a.gguf", "p/m/b.GGUF", f"{deep}/c.gguf"):
        put(root / name)
    assert names(root) == sorted(["root.gguf", "one/a.gguf", "p/m/b.GGUF", f"{deep}/c.gguf"])


def test_what_is_hidden_partial_or_something_else_is_left_out(tmp_path: Path):
    root = tmp_path / "models"
    left_out = (
        "p/m/._good.gguf",
        "p/m/.hidden.gguf",
        "p/m/.gguf",
        "p/m/..gguf",
        "p/m/m.gguf.part",
        "p/m/m.gguf.incomplete",
        "p/m/m.gguf.crdownload",
        "p/__MACOSX/x.gguf",
        ".cache/x.gguf",
    )
    for name in left_out:
        put(root / name)
    put(root / "p/m/good.gguf")
    (root / "folder.gguf").mkdir()
    assert names(root) == ["p/m/good.gguf"]


def test_b10_pipes_and_devices_are_passed_over(tmp_path: Path):
    root = tmp_path / "models"
    put(root / "p/m/good.gguf")
    os.mkfifo(root / "p/m/pipe.gguf")
    (root / "p/m/dev.gguf").symlink_to("/dev/zero")
    assert names(root) == ["p/m/good.gguf"]


def test_b10_loops_end_and_linked_folders_are_followed_once(tmp_path: Path):
    root = tmp_path / "models"
    put(root / "z/m/good.gguf")
    (root / "a-link").symlink_to("z")
    (root / "z/m/up").symlink_to("../..")
    (root / "self").symlink_to("self")
    assert names(root) == ["z/m/good.gguf"]


def test_a_linked_folder_outside_the_root_is_read(tmp_path: Path):
    put(tmp_path / "elsewhere/m/good.gguf")
    (tmp_path / "models").mkdir()
    (tmp_path / "models/p").symlink_to(tmp_path / "elsewhere")
    assert names(tmp_path / "models") == ["p/m/good.gguf"]


def test_b10_a_link_to_a_file_is_listed_and_a_dangling_one_has_its_reason(tmp_path: Path):
    root = tmp_path / "models"
    put(root / "p/good/m.gguf")
    (root / "p/linked").mkdir()
    (root / "p/linked/m.gguf").symlink_to("../good/m.gguf")
    (root / "p/gone").mkdir()
    (root / "p/gone/m.gguf").symlink_to("/nonexistent/m.gguf")
    (root / "p/gone/self.gguf").symlink_to("self.gguf")
    found = rows(root)
    assert found["p/linked"].is_loadable and found["p/linked"].size_bytes == len(SOUND)
    for name in ("p/gone/m", "p/gone/self"):
        fault = found[name].fault
        assert fault is not None and "isn't there" in fault.message


def test_b01_a_bad_file_is_a_row_with_its_reason_and_the_others_are_listed(tmp_path: Path):
    root = tmp_path / "models"
    faults = {case: fault for case, (fault, _) in HOSTILE.items()}
    for number, (_, build) in enumerate(HOSTILE.values()):
        put(root / f"p/bad/{number}.gguf", build())
    put(root / "p/good/m.gguf")
    found = rows(root)
    assert found.pop("p/good").is_loadable
    told = [found[f"p/bad/{number}"] for number in range(len(faults))]
    assert [model.fault.details["fault"] for model in told if model.fault] == list(faults.values())
    assert not any(model.is_loadable for model in told)


@pytest.mark.parametrize("fault", WRONG_KINDS)
def test_b09_a_file_of_another_kind_is_a_row_with_its_reason(fault: str, tmp_path: Path):
    put(tmp_path / "models/p/m/x.gguf", WRONG_KINDS[fault])
    (model,) = rows(tmp_path / "models").values()
    assert model.fault is not None and model.fault.details["fault"] == fault
    assert (model.kind, model.description) == ("unreadable", None)


def test_b08_a_cut_file_is_flagged_with_the_bytes_it_lacks(tmp_path: Path):
    put(tmp_path / "models/p/m/x.gguf", SOUND[:-100])
    (model,) = rows(tmp_path / "models").values()
    assert model.fault is not None and model.fault.details["missing_bytes"] == 100
    assert model.description is not None and not model.is_loadable


def test_b07_what_is_no_model_is_typed_and_not_loadable(tmp_path: Path):
    root = tmp_path / "models"
    cases = {"an adapter": "adapter", "no tensors": "vocabulary"}
    for case in ("a projector", *cases):
        put(root / f"p/m/{case}.gguf", UNLOADABLE[case][1]())
    put(root / "p/m/base.gguf")
    put(root / "p/embed/bert.gguf", tiny("bert").build())
    found = rows(root)
    assert {case: found[f"p/m/{case}"].kind for case in cases} == cases
    assert [found[f"p/m/{case}"].fault for case in cases] == [None] * 2
    assert "p/m/a projector" not in found
    assert (found["p/m"].kind, found["p/embed"].kind) == ("model", "embedding")
    assert [name for name, model in found.items() if model.is_loadable] == ["p/embed", "p/m"]


@pytest.mark.parametrize(
    ("pairs", "says"),
    [([], "weights"), (["banana"], "weights"), ([b"\xff\xfe"], "weights")],
    ids=["nothing", "an architecture", "no text"],
)
def test_a_file_of_nothing_is_no_vocabulary_but_a_fault(
    pairs: list[str | bytes], says: str, tmp_path: Path
) -> None:
    keys = [pair("general.architecture", value, ValueType.STRING) for value in pairs]
    put(tmp_path / "models/p/m/x.gguf", GgufFile(keys).build())
    (model,) = rows(tmp_path / "models").values()
    assert model.fault is not None and says in model.fault.message and not model.is_loadable
    with pytest.raises(InvalidGguf):
        model.require_sound()


def test_an_architecture_that_is_no_text_is_a_fault(tmp_path: Path) -> None:
    model = tiny()
    model.pairs[0] = pair("general.architecture", b"\xff\xfe", ValueType.STRING)
    put(tmp_path / "models/p/m/x.gguf", model.build())
    (row,) = rows(tmp_path / "models").values()
    assert row.fault is not None and row.fault.details["fault"] == "no_architecture"


def test_what_is_no_model_is_refused_before_a_load(tmp_path: Path) -> None:
    put(tmp_path / "models/p/m/x.gguf", UNLOADABLE["no tensors"][1]())
    (model,) = rows(tmp_path / "models").values()
    with pytest.raises(InvalidGguf, match="vocabulary"):
        model.require_sound()


def test_a_missing_root_has_no_rows(tmp_path: Path):
    assert names(tmp_path / "nowhere") == []


def test_an_unknown_architecture_is_a_row_without_fault(tmp_path: Path):
    put(tmp_path / "models/p/m/x.gguf", tiny("zorblax", pair("a.b", 1)).build())
    (model,) = rows(tmp_path / "models").values()
    assert model.is_loadable and model.description is not None
    assert model.description.architecture == "zorblax"
