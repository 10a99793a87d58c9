"""A split model and its projector are imported as one."""

import os
import unicodedata
from pathlib import Path

import pytest

from octavo.core.errors import (
    Cancelled,
    InvalidGguf,
    InvalidRequest,
    StorageFailed,
    TargetExists,
    UnreadableFile,
)
from octavo.core.library import Catalog, ImportMode, plan_import, plans, run_import, staging
from octavo.core.library.importer import remove_shared
from octavo.core.library.units import sources_below
from tests.core.library.import_scene import person_at, tree
from tests.fixtures.gguf_builder import pair, tiny
from tests.fixtures.import_units import TINY_WIDTH, projector, small_set


@pytest.fixture(autouse=True)
def person(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    person_at(tmp_path / "home", monkeypatch)
    return tmp_path / "home"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "models"


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    return small_set(tmp_path / "downloads")


def base(name: str = "Base", width: int = TINY_WIDTH) -> bytes:
    model = tiny("gemma3", embedding_length=width)
    model.pairs[1] = pair("general.name", name)
    return model.build()


def put(path: Path, data: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def names(root: Path) -> list[str]:
    return sorted(path.name for path in root.rglob("*.gguf"))


@pytest.mark.parametrize("given", [0, 1, 2])
def test_any_part_brings_the_whole_set_and_its_projector(given: int, files: list[Path], root: Path):
    contents = [path.read_bytes() for path in files]
    target = run_import(plan_import(files[given], root, "p/m"))
    targets = [root / "p" / "m" / path.name for path in files]
    assert target == targets[0] and [path.read_bytes() for path in targets] == contents
    assert not any(path.exists() for path in files)
    (model,) = Catalog([root], root.parent / "cache").models()
    assert model.id == "p/m" and model.projector is not None and model.is_loadable


def test_a_set_is_named_after_the_model_not_after_a_part(files: list[Path], root: Path):
    plan = plan_import(files[1], root)
    assert plan.model == "Tiny-small" and plan.target.name == files[0].name
    assert [file.target.name for file in plan.files] == [path.name for path in files]
    assert plan.size_bytes == sum(path.stat().st_size for path in files)


def test_a_set_that_lacks_a_part_is_refused_by_name(files: list[Path], root: Path):
    files[1].unlink()
    with pytest.raises(InvalidGguf, match=files[1].name) as caught:
        plan_import(files[0], root)
    assert caught.value.details["fault"] == "missing_shard" and not root.exists()


def test_without_the_projector_it_stays(files: list[Path], root: Path):
    run_import(plan_import(files[0], root, with_projector=False))
    assert len(names(root)) == 3 and files[3].exists()


def test_a_named_projector_comes_instead_and_is_found_again(files: list[Path], root: Path, tmp_path: Path):
    own = put(tmp_path / "elsewhere" / "mmproj-another-thing-F16.gguf", projector(TINY_WIDTH, "Another"))
    run_import(plan_import(files[0], root, "p/m", projector=own))
    assert files[3].exists() and not own.exists()
    (model,) = Catalog([root], root.parent / "cache").models()
    assert model.projector is not None and model.projector.path.name == "mmproj-Tiny-small-Q4_0.gguf"


def test_what_is_no_projector_is_refused_as_one(files: list[Path], root: Path, tmp_path: Path):
    with pytest.raises(InvalidRequest, match="no projector"):
        plan_import(files[0], root, projector=put(tmp_path / "x" / "other.gguf", base()))
    assert not root.exists()


def test_a_projector_that_others_need_stays_for_them(root: Path, tmp_path: Path):
    folder = tmp_path / "downloads"
    first, second = put(folder / "base-Q4_0.gguf", base()), put(folder / "base-Q8_0.gguf", base() + b"")
    shared = put(folder / "mmproj-base-f16.gguf", projector(TINY_WIDTH))
    run_import(plan_import(first, root, "p/m"))
    assert not first.exists() and shared.exists()
    run_import(plan_import(second, root, "p/m"))
    assert names(root) == ["base-Q4_0.gguf", "base-Q8_0.gguf", "mmproj-base-f16.gguf"]


@pytest.mark.parametrize("mode", [ImportMode.COPY, ImportMode.HARD_LINK, ImportMode.SYMLINK])
def test_b12_every_mode_takes_the_unit_and_keeps_the_sources(mode: ImportMode, files: list[Path], root: Path):
    before = [path.read_bytes() for path in files]
    run_import(plan_import(files[0], root, "p/m", mode))
    assert [path.read_bytes() for path in files] == before
    for path in files:
        target = root / "p" / "m" / path.name
        assert target.read_bytes() == path.read_bytes()
        assert target.samefile(path) is (mode is not ImportMode.COPY)
        assert target.is_symlink() is (mode is ImportMode.SYMLINK)


@pytest.mark.parametrize("taken", [0, 2, 3])
def test_b12_one_name_that_is_taken_keeps_the_whole_unit_out(taken: int, files: list[Path], root: Path):
    there = put(root / "p" / "m" / files[taken].name.upper(), b"other")
    with pytest.raises(TargetExists, match=there.name):
        plan_import(files[0], root, "p/m")
    assert tree(root) == ["p", "p/m", f"p/m/{there.name}"] and all(path.exists() for path in files)


def test_b12_a_name_taken_after_the_plan_keeps_the_whole_unit_out(files: list[Path], root: Path):
    plan = plan_import(files[0], root, "p/m")
    there = put(root / "p" / "m" / files[1].name, b"other")
    with pytest.raises(TargetExists, match=files[1].name):
        run_import(plan)
    assert tree(root) == ["p", "p/m", f"p/m/{there.name}"] and all(path.exists() for path in files)


def test_b12_what_is_there_of_a_unit_is_kept_and_the_rest_comes(files: list[Path], root: Path):
    run_import(plan_import(files[0], root, "p/m", ImportMode.COPY))
    (root / "p" / "m" / files[1].name).unlink()
    plan = plan_import(files[0], root, "p/m")
    assert [file.present for file in plan.files] == [True, False, True, True] and not plan.present
    run_import(plan)
    assert len(names(root)) == 4 and [path.exists() for path in files] == [True, False, True, True]
    assert plan_import(root / "p" / "m" / files[2].name, root, "p/m").present


def test_b12_a_source_that_cant_be_removed_keeps_the_whole_unit_out(
    files: list[Path], root: Path, monkeypatch: pytest.MonkeyPatch
):
    plan = plan_import(files[0], root, "p/m")
    unlink = Path.unlink

    def refuse(path: Path, missing_ok: bool = False) -> None:
        if path in files:
            raise PermissionError(1, "Operation not permitted")
        unlink(path, missing_ok=missing_ok)

    monkeypatch.setattr(Path, "unlink", refuse)
    with pytest.raises(StorageFailed, match="Nothing was changed"):
        run_import(plan)
    assert not root.exists() and all(path.exists() for path in files)


def test_b12_a_half_moved_unit_is_whole_at_its_new_place(
    files: list[Path], root: Path, monkeypatch: pytest.MonkeyPatch
):
    plan = plan_import(files[0], root, "p/m")
    unlink = Path.unlink

    def refuse(path: Path, missing_ok: bool = False) -> None:
        if path == files[1]:
            raise PermissionError(1, "Operation not permitted")
        unlink(path, missing_ok=missing_ok)

    monkeypatch.setattr(Path, "unlink", refuse)
    with pytest.raises(StorageFailed, match="was brought in"):
        run_import(plan)
    assert len(names(root)) == 4 and not list(root.rglob(".import*"))


def test_a_cancelled_unit_leaves_nothing(files: list[Path], root: Path):
    plan = plan_import(files[0], root, "p/m", ImportMode.COPY)
    seen: list[tuple[int, int]] = []
    with pytest.raises(Cancelled, match="nothing was changed"):
        run_import(plan, lambda *told: seen.append(told), lambda: len(seen) > 1)
    assert seen and not root.exists() and all(path.exists() for path in files)


def test_progress_counts_the_bytes_of_all_files(files: list[Path], root: Path):
    seen: list[tuple[int, int]] = []
    plan = plan_import(files[0], root, "p/m", ImportMode.COPY)
    run_import(plan, lambda *told: seen.append(told))
    assert [done for done, _ in seen] == sorted({done for done, _ in seen})
    assert seen[-1] == (plan.size_bytes, plan.size_bytes) and len(seen) >= 4


def test_b08_a_file_that_grows_is_refused(tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch):
    whole = base()
    cut = put(tmp_path / "d" / "growing.gguf", whole[:-1000])
    with pytest.raises(InvalidGguf) as caught:
        plan_import(cut, root)
    assert caught.value.details["fault"] == "truncated_data"
    full = put(tmp_path / "d" / "room-taken.gguf", whole)

    def write_on(_seconds: float) -> None:
        full.write_bytes(whole[:-1] + b"x")

    monkeypatch.setattr(plans.time, "sleep", write_on)
    with pytest.raises(UnreadableFile, match="changed"):
        plan_import(full, root)
    assert not root.exists() and full.exists()


def test_b08_a_part_that_changes_while_the_others_are_copied_keeps_the_unit_out(
    files: list[Path], root: Path
):
    plan = plan_import(files[0], root, "p/m", ImportMode.COPY)

    def touch(done: int, _total: int) -> None:
        if done > plan.size_bytes // 2:
            os.utime(files[0], (1, 1))

    with pytest.raises(UnreadableFile, match="changed"):
        run_import(plan, touch)
    assert not root.exists()


def test_b12_a_source_on_a_drive_that_is_gone_is_told(tmp_path: Path, root: Path):
    link = tmp_path / "model.gguf"
    link.symlink_to(tmp_path / "unplugged" / "model.gguf")
    with pytest.raises(UnreadableFile):
        plan_import(link, root)
    assert not root.exists() and link.is_symlink()


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        (unicodedata.normalize("NFD", "café-Q4_0.gguf"), "café-Q4_0.gguf"),
        (unicodedata.normalize("NFD", "한국어 모델.gguf"), "한국어-모델.gguf"),
        ("n" * 250 + ".gguf", "n" * 229 + ".gguf"),
        ("가" * 83 + ".gguf", "가" * 76 + ".gguf"),
    ],
)
def test_b12_any_name_becomes_a_sound_one(name: str, kept: str, tmp_path: Path, root: Path):
    target = run_import(plan_import(put(tmp_path / "d" / name, base()), root))
    assert target.name == kept and target.read_bytes() == base()
    assert len(Catalog([root], root.parent / "cache").models()) == 1


def test_b12_a_long_name_of_a_set_keeps_its_numbers(tmp_path: Path, root: Path):
    files = small_set(tmp_path / "d", "세" * 78)
    run_import(plan_import(files[0], root, "p/m"))
    (model,) = Catalog([root], root.parent / "cache").models()
    assert model.is_loadable and len(model.files) == 3 and model.projector


def test_b12_names_in_two_forms_or_cases_are_one_name(tmp_path: Path, root: Path):
    first = put(tmp_path / "d" / unicodedata.normalize("NFC", "café.gguf"), base())
    run_import(plan_import(first, root, "p/m"))
    other = put(tmp_path / "d" / unicodedata.normalize("NFD", "CAFÉ.gguf"), base("Other"))
    with pytest.raises(TargetExists):
        plan_import(other, root, "p/m")


def test_the_hub_is_asked_only_when_told_and_only_where_nothing_says_it(files: list[Path], root: Path):
    asked: list[str] = []

    def propose(name: str) -> tuple[str, str] | None:
        asked.append(name)
        return ("Some/../Org", "Repo-GGUF")

    assert plan_import(files[0], root, "p/m", propose_from_hub=propose).publisher == "p" and not asked
    plan = plan_import(files[1], root, propose_from_hub=propose)
    assert asked == [files[0].name] and (plan.publisher, plan.model) == ("Some-..-Org", "Repo-GGUF")
    assert plan_import(files[0], root, propose_from_hub=lambda name: None).model == "Tiny-small"


def test_a_folder_is_taken_apart_into_units(files: list[Path], tmp_path: Path):
    alone = put(tmp_path / "downloads" / "sub" / "mmproj-nobodys.gguf", projector(99, "Nobody"))
    put(tmp_path / "downloads" / "._hidden.gguf", b"junk")
    assert sources_below(tmp_path / "downloads") == ([files[0]], [alone], 0)


def test_a_folder_ends_where_its_links_lead_out(files: list[Path], tmp_path: Path):
    folder, outside = tmp_path / "downloads", tmp_path / "outside"
    put(outside / "theirs.gguf", base())
    (folder / "out").symlink_to(outside)
    (folder / "sub").mkdir()
    (folder / "sub" / "up").symlink_to(tmp_path)
    (folder / "sub" / "loop").symlink_to(folder)
    (folder / "models--a--b").mkdir()
    put(tmp_path / "cache" / "revision" / "theirs.gguf", base())
    (folder / "models--a--b" / "snapshots").symlink_to(tmp_path / "cache")
    assert sources_below(folder) == ([files[0]], [], 3)
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "out").symlink_to(outside)
    with pytest.raises(UnreadableFile) as caught:
        sources_below(tmp_path / "links")
    assert "left out" in caught.value.hint


def test_a_projector_for_a_model_of_the_library_goes_beside_it(root: Path, tmp_path: Path):
    there = put(root / "pub" / "set" / "base.gguf", base())
    own = put(tmp_path / "elsewhere" / "mmproj-base.gguf", projector(TINY_WIDTH))
    assert run_import(plan_import(there, root, projector=own)) == there
    assert names(root) == ["base.gguf", "mmproj-base.gguf"] and not own.exists()


def test_a_shared_projector_in_its_place_is_not_removed(root: Path):
    folder = root / "p" / "m"
    for quant in ("Q4_0", "Q8_0"):
        put(folder / f"a  base-{quant}.gguf", base())
    put(folder / "mmproj-a-base.gguf", projector(TINY_WIDTH))
    planned = [plan_import(path, root, "p/m") for path in sources_below(folder)[0]]
    for plan in planned:
        run_import(plan)
    remove_shared(planned)
    assert names(root) == ["a-base-Q4_0.gguf", "a-base-Q8_0.gguf", "mmproj-a-base.gguf"]


def test_a_killed_import_with_a_damaged_journal_is_left_alone(root: Path, caplog: pytest.LogCaptureFixture):
    folder = root / ".import-0.part"
    put(folder / "journal", b"\xff")
    assert staging.finish_interrupted(root) == {} and folder.is_dir()
    assert "can't be cleared" in caplog.text
