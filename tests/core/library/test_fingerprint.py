"""What is on disk twice, and finding models by words."""

import time
from pathlib import Path

import pytest

from octavo.core.library import Catalog, fingerprint
from octavo.core.library.fingerprint import SAMPLE_BYTES, Fingerprints, duplicates
from octavo.core.library.search import matching
from tests.fixtures.gguf_builder import pair, tiny
from tests.fixtures.layouts import parts
from tests.fixtures.split_gguf import part_name

SOUND = tiny().build()


def put(path: Path, data: bytes = SOUND) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def test_equal_content_is_found_and_links_waste_nothing(tmp_path: Path) -> None:
    root = tmp_path / "models"
    long = SOUND + bytes(40 * SAMPLE_BYTES)
    put(root / "p/a/x.gguf", long)
    put(root / "p/b/y.gguf", long)
    put(root / "p/other/z.gguf", long[:-SAMPLE_BYTES] + b"\1" * SAMPLE_BYTES)
    put(root / "p/alone/w.gguf", SOUND + b"w")
    (root / "p/link").mkdir()
    (root / "p/link/l.gguf").symlink_to(root / "p/a/x.gguf")
    for name in ("one", "two"):
        for number, data in enumerate(parts(), 1):
            put(root / "s" / name / part_name(name, number, 3), data)
    catalog = Catalog([root], tmp_path / "cache" / "catalog")
    found = duplicates(catalog.models(), Fingerprints(tmp_path / "cache" / "marks"))
    assert {(tuple(group.models), group.wasted_bytes) for group in found} == {
        (("p/a", "p/b", "p/link"), len(long)),
        (("s/one", "s/two"), sum(map(len, parts()))),
    }


def test_fingerprints_are_remembered_until_the_file_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = put(tmp_path / "x.gguf")
    marks = Fingerprints(tmp_path / "cache" / "marks")
    first = marks.of(path)
    marks.save()
    read: list[Path] = []
    sampled = fingerprint._sampled
    monkeypatch.setattr(
        fingerprint, "_sampled", lambda path, size: (read.append(path), sampled(path, size))[1]
    )
    assert Fingerprints(tmp_path / "cache" / "marks").of(path) == first and read == []
    put(path, SOUND + b"x")
    assert Fingerprints(tmp_path / "cache" / "marks").of(path) != first and read == [path]
    (tmp_path / "cache" / "marks").write_bytes(b"\xff damaged")
    assert Fingerprints(tmp_path / "cache" / "marks").of(tmp_path / "gone") is None


def test_every_word_must_be_in_id_name_architecture_quant_or_publisher(tmp_path: Path) -> None:
    root = tmp_path / "models"
    put(root / "google/gemma-3/g.gguf", tiny("gemma3", pair("general.file_type", 15)).build())
    put(root / "meta/llama/l.gguf", tiny("llama", pair("general.file_type", 7)).build())
    models = Catalog([root], tmp_path / "cache" / "catalog").models()

    def found(text: str) -> list[str]:
        return [model.name for model in matching(models, text)]

    assert found("GEMMA q4_k") == found("google") == ["gemma-3"]
    assert found("tiny") == found("") == found("  ") == ["gemma-3", "llama"]
    assert found("q8_0 llama") == ["llama"] and found("gemma q8_0") == []
    began = time.perf_counter()
    matching(models * 2500, "gemma q4")
    print(f"5,000 models searched in {(time.perf_counter() - began) * 1000:.0f} ms, goal 50 ms")
