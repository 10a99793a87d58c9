"""Checksums: what is known of a file, and what a second look at it says (B08)."""

import hashlib
import os
from pathlib import Path

import pytest

from octavo.core.config.paths import Home
from octavo.core.errors import Cancelled, FolderNotFound, StorageFailed
from octavo.core.library import Catalog, Model
from octavo.core.library.checksums import Checksums
from octavo.core.library.verify import is_sound, verify
from tests.fixtures.foreign import hub_revision
from tests.fixtures.gguf_builder import tiny
from tests.fixtures.layouts import parts, projector
from tests.fixtures.split_gguf import part_name

SOUND = tiny(embedding_length=64).build()


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "octavo")


def model_of(root: Path) -> Model:
    (model,) = Catalog([root], root.parent / "cache" / "catalog").models()
    return model


def put(path: Path, data: bytes = SOUND) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def flip(path: Path, *, keeps_time: bool = True) -> None:
    """Change one bit in the middle of a file, as a failing disk does."""
    times = path.stat()
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    if keeps_time:
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


def outcomes(model: Model, home: Home, *, accept: bool = False) -> list[str]:
    return [file.outcome for file in verify(model, Checksums(home), accept=accept)]


def test_b08_a_flipped_byte_is_found_against_the_published_checksum(home: Home, tmp_path: Path) -> None:
    path = put(tmp_path / "models/p/m/x.gguf")
    Checksums(home).note(path, hashlib.sha256(SOUND).hexdigest(), "https://hub/o/m")
    model = model_of(tmp_path / "models")
    assert outcomes(model, home) == ["sound"]
    flip(path, keeps_time=False)
    (file,) = verify(model, Checksums(home))
    assert (file.outcome, file.source) == ("damaged", "https://hub/o/m")
    assert file.sha256 != file.expected_sha256 == hashlib.sha256(SOUND).hexdigest()
    assert outcomes(model, home, accept=True) == ["damaged"]


def test_b08_without_a_published_one_the_first_is_remembered(home: Home, tmp_path: Path) -> None:
    path = put(tmp_path / "models/p/m/x.gguf")
    model = model_of(tmp_path / "models")
    assert outcomes(model, home) == ["remembered"]
    assert outcomes(model, home) == ["sound"]
    flip(path)
    assert outcomes(model, home) == ["damaged"]
    flip(path, keeps_time=False)
    flip(path, keeps_time=False)
    # written since, by whatever: that may be meant
    assert outcomes(model, home) == ["changed"]


def test_a_file_that_was_written_since_is_changed_until_it_is_accepted(home: Home, tmp_path: Path) -> None:
    path = put(tmp_path / "models/p/m/x.gguf")
    model = model_of(tmp_path / "models")
    outcomes(model, home)
    put(path, SOUND + b"more")
    assert outcomes(model, home) == ["changed"]
    assert outcomes(model, home, accept=True) == ["remembered"]
    assert outcomes(model, home) == ["sound"]


def test_all_parts_and_the_projector_are_read_with_progress(home: Home, tmp_path: Path) -> None:
    root = tmp_path / "models"
    for number, data in enumerate(parts(), 1):
        put(root / "p/m" / part_name("base", number, 3), data)
    put(root / "p/m/mmproj-base-f16.gguf", projector())
    seen: list[tuple[int, int]] = []
    model = model_of(root)
    results = verify(model, Checksums(home), lambda done, total: seen.append((done, total)))
    assert len(results) == 4 and is_sound(results)
    assert seen == sorted(seen) and seen[-1] == (seen[0][1], seen[0][1])
    assert model.files[1].unlink() is None
    results = verify(model, Checksums(home))
    assert [file.outcome for file in results] == ["sound", "unreadable", "sound", "sound"]
    assert not is_sound(results) and results[1].error is not None


def test_a_check_can_be_called_off(home: Home, tmp_path: Path) -> None:
    put(tmp_path / "models/p/m/x.gguf")
    with pytest.raises(Cancelled):
        verify(model_of(tmp_path / "models"), Checksums(home), cancelled=lambda: True)
    assert not (home.root / "checksums.jsonl").exists()


def test_a_cache_names_its_blobs_by_their_checksum(home: Home, tmp_path: Path) -> None:
    snapshot = hub_revision(tmp_path / "models", "o/m", "r", {"x.gguf": SOUND})
    model = model_of(tmp_path / "models")
    (file,) = verify(model, Checksums(home))
    assert (file.outcome, file.source) == ("sound", "the Hub")
    flip(Path(os.path.realpath(snapshot / "x.gguf")))
    assert outcomes(model, home) == ["damaged"]


def test_checksums_last_and_stand_odd_names_and_torn_lines(home: Home, tmp_path: Path) -> None:
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9 \n%.gguf"))
    path.write_bytes(SOUND)
    first, second = "0" * 64, "a" * 64
    Checksums(home).note(path, first, "first")
    with open(home.root / "checksums.jsonl", "ab") as file:
        file.write(b'{"path": "torn\n')
    other = Checksums(home)
    other.note(path, second.upper(), "somebody")
    known = Checksums(home).known(path)
    assert known is not None and (known.sha256, known.source) == (second, "somebody")
    assert known.is_published and Checksums(home).known(tmp_path / "other") is None
    with pytest.raises(ValueError, match="no SHA-256"):
        other.note(path, "12", "x")
    with pytest.raises(StorageFailed):
        other.note(tmp_path / "missing", first, "x")


def test_b13_a_model_whose_drive_is_away_is_not_checked(home: Home, tmp_path: Path) -> None:
    root = tmp_path / "models"
    put(root / "p/m/x.gguf")
    library = Catalog([root], tmp_path / "cache" / "catalog")
    library.models()
    root.rename(tmp_path / "away")
    with pytest.raises(FolderNotFound):
        verify(library.refresh()[0], Checksums(home))
