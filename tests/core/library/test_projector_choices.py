"""A person may say what goes with a model, whatever the headers say."""

from pathlib import Path

import pytest

from octavo.core.errors import InvalidRequest
from octavo.core.library import Catalog
from octavo.server.library import projector_chosen
from tests.fixtures.gguf_builder import tiny
from tests.fixtures.layouts import projector

SOUND = tiny(embedding_length=64).build()


def put(path: Path, data: bytes = SOUND) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


@pytest.fixture
def library(tmp_path: Path) -> Catalog:
    put(tmp_path / "models/p/m/base.gguf")
    put(tmp_path / "models/p/m/mmproj-base-f16.gguf", projector())
    return Catalog([tmp_path / "models"], tmp_path / "cache/catalog", tmp_path / "projectors.json")


def test_b07_none_another_and_auto(library: Catalog, tmp_path: Path) -> None:
    beside = library.find("p/m").projector
    assert beside is not None
    assert projector_chosen(library, "p/m", "none").projector is None
    assert not library.find("p/m").sees_images
    other = put(tmp_path / "elsewhere/eyes.gguf", projector())
    assert projector_chosen(library, "p/m", str(other)).projector == str(other)
    # it outlasts a start, and a new name of the model
    put(tmp_path / "models/p/m/second-Q8_0.gguf", tiny("gemma3").build())
    again = Catalog([tmp_path / "models"], tmp_path / "cache/catalog", tmp_path / "projectors.json")
    (row,) = [model for model in again.models() if model.path.name == "base.gguf"]
    assert row.projector is not None and row.projector.path == other
    assert projector_chosen(again, row.id, "auto").projector == str(beside.path)
    assert [path.name for path in (tmp_path / "models/p/m").iterdir() if "json" in path.name] == []


def test_b07_what_does_not_fit_is_refused(library: Catalog, tmp_path: Path) -> None:
    wide = put(tmp_path / "wide.gguf", projector(width=128))
    for path, words in (
        (wide, "vectors of 128"),
        (put(tmp_path / "model.gguf"), "no projector"),
        (put(tmp_path / "bad.gguf", b"GG"), "can't be a projector"),
        (tmp_path / "gone.gguf", "no projector"),
    ):
        with pytest.raises(InvalidRequest, match=words):
            projector_chosen(library, "p/m", str(path))
    chosen = library.find("p/m").projector
    assert chosen is not None and chosen.path.name == "mmproj-base-f16.gguf"


def test_a_chosen_file_that_is_gone_and_a_damaged_file_of_choices_are_no_error(
    library: Catalog, tmp_path: Path
) -> None:
    other = put(tmp_path / "elsewhere/eyes.gguf", projector())
    projector_chosen(library, "p/m", str(other))
    other.unlink()
    again = Catalog([tmp_path / "models"], tmp_path / "cache/catalog", tmp_path / "projectors.json")
    assert again.find("p/m").projector is None
    (tmp_path / "projectors.json").write_bytes(b"[\xff")
    assert again.refresh()[0].projector is not None
