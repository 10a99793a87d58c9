"""Imports: every mode, whole or not at all, never over another file."""

import errno
import os
import shutil
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
from octavo.core.library import Catalog, ImportMode, importer, plan_import, plans, run_import, transfer
from octavo.core.library.staging import finish_interrupted
from tests.fixtures.gguf_builder import pair, tiny
from tests.fixtures.hostile_ggufs import HOSTILE, UNLOADABLE

METADATA = (
    pair("general.organization", "Some Org"),
    pair("general.basename", "tiny"),
    pair("general.file_type", 15),
)
SOUND = tiny("llama", *METADATA).build()
real_link = os.link


@pytest.fixture(autouse=True)
def person(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A person's home folder, so that nobody's real caches matter."""
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    for name in ("XDG_CACHE_HOME", "HF_HOME", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "OLLAMA_MODELS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(plans, "QUIET_S", 0.0)
    return home


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "models"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "downloads" / "Tiny-1B.Q4_K_M.gguf"
    path.parent.mkdir()
    path.write_bytes(SOUND)
    return path


def tree(root: Path) -> list[str]:
    return sorted(str(path.relative_to(root)) for path in root.rglob("*"))


def refuse_links_into(root: Path, patch: pytest.MonkeyPatch) -> None:
    """Refuse hard links into ``root`` as the system does between disks."""

    def link(source: str | Path, target: str | Path, **options: bool) -> None:
        if Path(source).is_relative_to(root) != Path(target).is_relative_to(root):
            raise OSError(errno.EXDEV, "Invalid cross-device link")
        real_link(source, target, **options)

    patch.setattr(os, "link", link)


@pytest.fixture
def two_disks(monkeypatch: pytest.MonkeyPatch, root: Path) -> None:
    refuse_links_into(root, monkeypatch)
    monkeypatch.setattr(importer, "_device", lambda path: 2 if path.is_relative_to(root) else 1)


def test_a_move_is_the_default_and_leaves_one_file(source: Path, root: Path):
    plan = plan_import(source, root)
    assert (plan.mode, plan.copies_bytes, plan.size_bytes) == (ImportMode.MOVE, False, len(SOUND))
    target = run_import(plan)
    assert target == root / "Some Org".replace(" ", "-") / "Tiny-1B" / "Tiny-1B.Q4_K_M.gguf"
    assert target.read_bytes() == SOUND and not source.exists()
    assert [model.id for model in Catalog([root], root.parent / "cache").models()] == ["Some-Org/Tiny-1B"]


def test_a_copy_keeps_the_source(source: Path, root: Path):
    target = run_import(plan_import(source, root, mode=ImportMode.COPY))
    assert target.read_bytes() == source.read_bytes() == SOUND
    assert not target.samefile(source)


def test_a_hard_link_shares_the_file(source: Path, root: Path):
    assert run_import(plan_import(source, root, mode=ImportMode.HARD_LINK)).samefile(source)


def test_a_symlink_is_absolute_even_for_a_relative_source(
    source: Path, root: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(source.parent)
    target = run_import(plan_import(Path(source.name), root, mode=ImportMode.SYMLINK))
    assert Path(os.readlink(target)) == source
    monkeypatch.chdir("/")
    assert target.read_bytes() == SOUND


def test_a_relative_link_that_is_moved_still_leads_to_its_file(source: Path, root: Path):
    link = source.parent / "link.gguf"
    link.symlink_to(source.name)
    target = run_import(plan_import(link, root))
    assert Path(os.readlink(target)) == source and source.exists() and not os.path.lexists(link)


def test_a_dry_run_changes_nothing_at_all(source: Path, root: Path, tmp_path: Path):
    before = tree(tmp_path)
    plan = plan_import(source, root)
    assert plan.sentence == f"Move {source} to {plan.target}"
    assert tree(tmp_path) == before


def test_b12_a_move_across_disks_copies_compares_and_removes(source: Path, root: Path, two_disks: None):
    plan = plan_import(source, root)
    assert (plan.mode, plan.copies_bytes) == (ImportMode.MOVE, True)
    assert run_import(plan).read_bytes() == SOUND
    assert not source.exists() and len(tree(root)) == 3


def test_b12_a_move_between_real_file_systems(source: Path):
    shared_memory = Path("/dev/shm")
    if not shared_memory.is_dir() or shared_memory.stat().st_dev == source.stat().st_dev:
        pytest.skip("this machine has one file system")
    root = shared_memory / f"octavo-test-{os.getpid()}"
    try:
        assert run_import(plan_import(source, root)).read_bytes() == SOUND
        assert not source.exists()
    finally:
        shutil.rmtree(root)


def test_b12_a_copy_that_differs_keeps_the_source_and_leaves_nothing(
    source: Path, root: Path, two_disks: None, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(transfer, "_digest", lambda *_all: b"another")
    with pytest.raises(StorageFailed, match="differs"):
        run_import(plan_import(source, root))
    assert source.read_bytes() == SOUND and not root.exists()


def test_a_hard_link_across_disks_is_refused_when_asked_for(source: Path, root: Path, two_disks: None):
    with pytest.raises(InvalidRequest, match="hard link"):
        plan_import(source, root, mode=ImportMode.HARD_LINK)


@pytest.mark.parametrize(
    ("place", "owner"),
    [
        (".lmstudio/models/pub/repo", "LM Studio"),
        (".cache/huggingface/hub/models--org--repo/snapshots/abc", "the Hugging Face cache"),
        (".ollama/models/blobs", "Ollama"),
    ],
)
def test_a_file_of_another_program_is_linked_not_moved(
    place: str, owner: str, source: Path, root: Path, person: Path
):
    theirs = person / place / source.name
    theirs.parent.mkdir(parents=True)
    source.rename(theirs)
    plan = plan_import(theirs, root)
    assert plan.mode is ImportMode.HARD_LINK and owner in plan.reason
    assert run_import(plan).samefile(theirs)


def test_a_file_of_another_program_is_copied_across_disks(
    source: Path, root: Path, person: Path, two_disks: None
):
    theirs = person / ".ollama" / source.name
    theirs.parent.mkdir()
    source.rename(theirs)
    plan = plan_import(theirs, root)
    assert plan.mode is ImportMode.COPY
    assert run_import(plan).read_bytes() == SOUND and theirs.exists()


def test_a_refused_hard_link_becomes_a_copy_unless_it_was_asked_for(
    source: Path, root: Path, person: Path, monkeypatch: pytest.MonkeyPatch
):
    theirs = person / ".ollama" / source.name
    theirs.parent.mkdir()
    source.rename(theirs)
    plan, asked = plan_import(theirs, root), plan_import(theirs, root, mode=ImportMode.HARD_LINK)
    refuse_links_into(root, monkeypatch)
    with pytest.raises(StorageFailed):
        run_import(asked)
    assert not run_import(plan).samefile(theirs)


def test_a_file_of_another_program_is_moved_when_asked_by_name(source: Path, root: Path, person: Path):
    theirs = person / ".lmstudio" / source.name
    theirs.parent.mkdir()
    source.rename(theirs)
    run_import(plan_import(theirs, root, mode=ImportMode.MOVE))
    assert not theirs.exists()


def test_a_hub_snapshot_is_named_by_its_repository_and_linked_to_its_blob(
    source: Path, root: Path, person: Path
):
    repository = person / ".cache/huggingface/hub/models--Some--Repo-GGUF"
    (repository / "blobs").mkdir(parents=True)
    source.rename(repository / "blobs/abc")
    snapshot = repository / "snapshots/1/tiny.gguf"
    snapshot.parent.mkdir(parents=True)
    snapshot.symlink_to("../../blobs/abc")
    target = run_import(plan_import(snapshot, root))
    assert target == root / "Some/Repo-GGUF/tiny.gguf"
    assert not target.is_symlink() and target.samefile(snapshot)


def test_a_blob_without_a_name_is_called_after_its_header(source: Path, root: Path):
    blob = source.rename(source.with_name("sha256-0a1b2c"))
    target = plan_import(blob, root).target
    assert target == root / "Some-Org/Tiny/Tiny.Q4_K_M.gguf"


def test_without_a_publisher_in_the_header_it_is_imported(source: Path, root: Path):
    source.write_bytes(tiny("llama", pair("general.file_type", 15)).build())
    assert plan_import(source, root).target.parent == root / "imported" / "Tiny-1B"


def test_the_starter_model_gets_its_makers_name(smollm2: Path, root: Path):
    plan = plan_import(smollm2, root, mode=ImportMode.SYMLINK)
    place = "HuggingFaceTB/SmolLM2-135M-Instruct/SmolLM2-135M-Instruct.Q4_1.gguf"
    assert plan.target == root / place
    run_import(plan)
    (model,) = Catalog([root], root.parent / "cache").models()
    assert (model.id, model.size_bytes) == ("HuggingFaceTB/SmolLM2-135M-Instruct", 98_362_432)


@pytest.mark.parametrize(
    "place",
    [
        "../x",
        "x/..",
        "a/b/c",
        "alone",
        "/x",
        "x/",
        "a\\b/c",
        ".hidden/x",
        "CON/x",
        "x/nul.txt",
        "x/com1",
        "x/a:b",
        "x/a\nb",
        "x/a\0b",
        "x/trailing.",
        " x/y",
        "x/" + "y" * 300,
        "x/\ud83d",
    ],
)
def test_a_place_that_is_no_sound_name_is_refused(place: str, source: Path, root: Path):
    with pytest.raises(InvalidRequest) as caught:
        plan_import(source, root, place)
    str(caught.value).encode()
    assert source.exists() and not root.exists()


def test_a_place_is_composed(source: Path, root: Path):
    assert plan_import(source, root, "출판사/모델 é").target.parent == root / "출판사" / "모델 é"


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("--help.gguf", "help.gguf"),
        ("a:b?.gguf", "a-b.gguf"),
        ("CON.gguf", "model-CON.gguf"),
        ("한국어 모델.GGUF", "한국어-모델.gguf"),
    ],
)
def test_a_file_name_is_made_sound_for_every_system(name: str, kept: str, source: Path, root: Path):
    assert plan_import(source.rename(source.with_name(name)), root).target.name == kept


def test_b12_an_existing_target_is_named_and_kept(source: Path, root: Path):
    target = plan_import(source, root).target
    target.parent.mkdir(parents=True)
    target.write_bytes(b"other")
    with pytest.raises(TargetExists) as caught:
        plan_import(source, root)
    assert caught.value.details["path"] == str(target)
    assert (target.read_bytes(), source.read_bytes()) == (b"other", SOUND)


def test_b12_a_dangling_link_and_another_case_are_targets_too(source: Path, root: Path):
    target = plan_import(source, root).target
    target.parent.mkdir(parents=True)
    target.symlink_to("/nonexistent/file")
    with pytest.raises(TargetExists):
        plan_import(source, root)
    target.unlink()
    target.with_name(target.name.upper()).write_bytes(b"other")
    with pytest.raises(TargetExists, match=target.name.upper()):
        plan_import(source, root)


def test_a_folder_of_another_case_is_used(source: Path, root: Path):
    (root / "some-ORG").mkdir(parents=True)
    assert run_import(plan_import(source, root)).parent.parent == root / "some-ORG"


@pytest.mark.parametrize("mode", ImportMode)
def test_b12_a_target_that_appears_after_the_plan_is_kept(mode: ImportMode, source: Path, root: Path):
    plan = plan_import(source, root, mode=mode)
    plan.target.parent.mkdir(parents=True)
    plan.target.write_bytes(b"other")
    with pytest.raises(TargetExists):
        run_import(plan)
    assert (plan.target.read_bytes(), source.read_bytes()) == (b"other", SOUND)
    assert os.listdir(plan.target.parent) == [plan.target.name]


def test_b12_a_source_in_its_place_already_is_said_to_be_there(source: Path, root: Path):
    target = run_import(plan_import(source, root))
    plan = plan_import(target, root)
    assert plan.present and "in the library already" in plan.sentence and run_import(plan) == target
    assert target.read_bytes() == SOUND


def test_the_same_bytes_again_are_there_already_and_other_bytes_are_not(source: Path, root: Path):
    target = run_import(plan_import(source, root, mode=ImportMode.COPY))
    assert plan_import(source, root).present
    assert run_import(plan_import(source, root)) == target and source.exists()
    target.write_bytes(SOUND[:-1] + b"x")
    with pytest.raises(TargetExists):
        plan_import(source, root)


def test_what_a_killed_import_left_goes_and_what_is_being_written_stays(source: Path, root: Path):
    plan = plan_import(source, root, mode=ImportMode.COPY)
    plan.target.parent.mkdir(parents=True)
    (plan.target.parent / ".import-0123.part").write_bytes(b"as older versions left it")
    left = plan.target.parent / ".import-4567.part"
    left.mkdir()
    (left / "00000").write_bytes(b"half")
    seen: list[list[Path]] = []

    def look(_done: int, _total: int) -> None:
        finish_interrupted(root)
        seen.append(list(plan.target.parent.glob(".import-*.part")))

    run_import(plan, look)
    assert seen and all(len(found) == 1 and found[0] != left for found in seen)
    assert os.listdir(plan.target.parent) == [plan.target.name]


def test_b12_a_source_elsewhere_in_the_library_is_moved(root: Path):
    (root / "x").mkdir(parents=True)
    (root / "x/Tiny-1B.gguf").write_bytes(SOUND)
    target = run_import(plan_import(root / "x/Tiny-1B.gguf", root, "p/m"))
    assert target == root / "p/m/Tiny-1B.gguf" and not (root / "x/Tiny-1B.gguf").exists()


def test_what_is_in_the_library_stays_where_it_is(source: Path, root: Path, tmp_path: Path):
    there = root / "pub/set/a.gguf"
    there.parent.mkdir(parents=True)
    source.rename(there)
    (tmp_path / "link.gguf").symlink_to(there)
    (tmp_path / "library").symlink_to(root)
    before = tree(tmp_path)
    for path in (there, tmp_path / "library/pub/set/a.gguf", tmp_path / "link.gguf"):
        plan = plan_import(path, root)
        assert plan.present and "in the library already" in plan.sentence
        assert (plan.publisher, plan.model) == ("pub", "set")
        run_import(plan)
    assert tree(tmp_path) == before


@pytest.mark.parametrize("case", [*HOSTILE, "no tensors", "no architecture", "data cut short"])
def test_a_file_that_cant_be_loaded_is_refused_before_anything_moves(case: str, source: Path, root: Path):
    fault, build = (HOSTILE | UNLOADABLE)[case]
    source.write_bytes(build())
    with pytest.raises(InvalidGguf) as caught:
        plan_import(source, root)
    assert caught.value.details["fault"] == fault
    assert source.exists() and not root.exists()


@pytest.mark.parametrize("case", ["a projector", "an adapter", "a later shard"])
def test_what_belongs_to_a_model_may_be_imported(case: str, source: Path, root: Path):
    source.write_bytes(UNLOADABLE[case][1]())
    assert run_import(plan_import(source, root)).exists()


def test_a_folder_and_a_missing_file_are_refused(source: Path, root: Path):
    with pytest.raises(InvalidRequest, match="folder"):
        plan_import(source.parent, root)
    with pytest.raises(UnreadableFile, match="no file"):
        plan_import(source.with_name("nothing.gguf"), root)


def test_d04_too_little_room_is_told_before_the_start(
    source: Path, root: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(100, 90, 10))
    with pytest.raises(StorageFailed, match=str(root)) as caught:
        plan_import(source, root, mode=ImportMode.COPY)
    assert (caught.value.details["needed_bytes"], caught.value.details["free_bytes"]) == (len(SOUND), 10)
    plan_import(source, root, mode=ImportMode.HARD_LINK)


def test_d04_a_disk_that_fills_up_leaves_no_trace(source: Path, root: Path, monkeypatch: pytest.MonkeyPatch):
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    plan = plan_import(source, root, mode=ImportMode.COPY)
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StorageFailed, match="full"):
        run_import(plan)
    assert source.read_bytes() == SOUND and not root.exists()


def test_a_cancelled_copy_leaves_no_trace(source: Path, root: Path, two_disks: None):
    seen: list[int] = []
    plan = plan_import(source, root)
    with pytest.raises(Cancelled):
        run_import(plan, lambda done, total: seen.append(done), lambda: bool(seen))
    assert seen and source.read_bytes() == SOUND and not root.exists()


def test_progress_counts_up_to_the_whole(source: Path, root: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(transfer, "_BLOCK", 5_000)
    seen: list[tuple[int, int]] = []
    run_import(
        plan_import(source, root, mode=ImportMode.COPY), lambda done, total: seen.append((done, total))
    )
    assert [done for done, _ in seen] == sorted({done for done, _ in seen})
    assert len(seen) > 2 and seen[-1] == (len(SOUND), len(SOUND))


def test_a_source_that_grew_since_the_plan_is_refused(source: Path, root: Path):
    plan = plan_import(source, root)
    source.write_bytes(SOUND + b"more")
    with pytest.raises(UnreadableFile, match="changed"):
        run_import(plan)
    assert not root.exists()


def test_b12_a_source_on_a_drive_that_was_pulled_is_told(source: Path, root: Path):
    plan = plan_import(source, root)
    source.unlink()
    with pytest.raises(UnreadableFile, match="gone"):
        run_import(plan)
    assert not root.exists()


def test_b12_a_target_folder_that_cant_be_made_is_named(source: Path, root: Path):
    root.write_bytes(b"a file where the folder should be")
    with pytest.raises(StorageFailed, match="models"):
        run_import(plan_import(source, root))
    assert source.read_bytes() == SOUND


def test_b12_a_source_that_cant_be_removed_stays_and_the_target_goes(
    source: Path, root: Path, monkeypatch: pytest.MonkeyPatch
):
    plan = plan_import(source, root)
    unlink = Path.unlink

    def refuse(path: Path, missing_ok: bool = False) -> None:
        if path == source:
            raise PermissionError(errno.EACCES, "Permission denied")
        unlink(path, missing_ok=missing_ok)

    monkeypatch.setattr(Path, "unlink", refuse)
    with pytest.raises(StorageFailed, match=source.name):
        run_import(plan)
    assert source.read_bytes() == SOUND and not root.exists()
