"""Split models and projectors in the library: one row for all parts, and none for a projector."""

import asyncio
import os
from pathlib import Path

import pytest

from octavo.core.errors import InvalidGguf
from octavo.core.library import Catalog, Model
from octavo.core.prompts import builtin
from tests.core.engine.real_engine import ask, real_engine
from tests.fixtures.gguf_builder import F16, GgufFile, TensorEntry, pair, tiny
from tests.fixtures.split_gguf import marks, part_name, split_three

SOUND = tiny().build()
SPLIT_GEMMA_BYTES = 253_113_952


def put(path: Path, data: bytes = SOUND) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def put_parts(folder: Path, stem: str, skipped: tuple[int, ...] = (), count: int = 3) -> list[Path]:
    first = tiny("gemma3", *marks(0, count, count - 1))
    first.tensors = []
    files = [first] + [
        GgufFile(marks(number, count, count - 1), [TensorEntry(f"blk.{number}.ffn_up.weight", [64, 64])])
        for number in range(1, count)
    ]
    paths = [folder / part_name(stem, number, count) for number in range(1, count + 1)]
    return [
        put(path, file.build())
        for number, (path, file) in enumerate(zip(paths, files, strict=True), 1)
        if number not in skipped
    ]


def library(root: Path) -> Catalog:
    return Catalog([root], root.parent / "cache" / "catalog")


def rows(root: Path) -> dict[str, Model]:
    return {model.id: model for model in library(root).models()}


def projector(*pairs: bytes, width: int = 640) -> bytes:
    model = tiny(
        "clip",
        pair("general.type", "mmproj"),
        pair("clip.has_vision_encoder", True),
        pair("clip.vision.projection_dim", width),
        *pairs,
    )
    model.pairs = [entry for entry in model.pairs if b"Tiny" not in entry] if not pairs else model.pairs
    return model.build()


def base(name: str = "Base", width: int = 640) -> bytes:
    model = tiny("gemma3", embedding_length=width)
    model.pairs[1] = pair("general.name", name)
    return model.build()


def test_b06_a_split_model_is_one_row(tmp_path: Path):
    paths = put_parts(tmp_path / "models/p/m", "tiny")
    (model,) = rows(tmp_path / "models").values()
    assert (model.id, model.path, model.files) == ("p/m", paths[0], tuple(paths))
    assert model.size_bytes == sum(path.stat().st_size for path in paths)
    assert model.is_loadable and model.description is not None
    assert model.description.parameters == 2 * 64 * 64


@pytest.mark.parametrize("skipped", [1, 2, 3])
def test_b06_a_missing_part_is_named_and_the_row_is_not_loadable(skipped: int, tmp_path: Path):
    there = put_parts(tmp_path / "models/p/m", "tiny", (skipped,))
    (model,) = rows(tmp_path / "models").values()
    missing = part_name("tiny", skipped, 3)
    assert model.fault is not None and model.fault.details["missing"] == [missing]
    assert (model.id, model.files, model.is_loadable) == ("p/m/tiny", tuple(there), False)
    with pytest.raises(InvalidGguf, match=missing):
        model.require_sound()


def test_b06_a_part_that_is_still_downloaded_counts_as_missing_until_it_is_there(tmp_path: Path):
    paths = put_parts(tmp_path / "models/p/m", "tiny")
    partial = paths[1].with_name(paths[1].name + ".part")
    paths[1].rename(partial)
    catalog = library(tmp_path / "models")
    (model,) = catalog.models()
    assert model.size_bytes == paths[0].stat().st_size + paths[2].stat().st_size
    assert model.fault is not None
    partial.rename(paths[1])
    (model,) = catalog.refresh()
    assert model.is_loadable


def test_b06_any_part_by_path_or_name_is_the_row(tmp_path: Path):
    paths = put_parts(tmp_path / "models/p/m", "Tiny_26B.BF16")
    catalog = library(tmp_path / "models")
    names = [*map(str, paths), *(path.name for path in paths), "Tiny_26B.BF16"]
    assert {catalog.find(name).id for name in names} == {"p/m"}


def test_a_part_outside_the_library_is_the_whole_model(tmp_path: Path):
    paths = put_parts(tmp_path / "elsewhere", "tiny")
    model = library(tmp_path / "models").find(str(paths[1]))
    assert (model.id, model.path, model.files) == (str(paths[0]), paths[0], tuple(paths))
    paths[2].unlink()
    assert library(tmp_path / "models").find(str(paths[1])).fault is not None


def test_d10_sets_of_one_folder_and_of_sub_folders_are_kept_apart(tmp_path: Path):
    root = tmp_path / "models"
    put_parts(root / "p/m/UD-Q4_K_XL", "big-UD-Q4_K_XL", (2,), count=2)
    put(root / "p/m/UD-Q2_K_XL" / part_name("big-UD-Q2_K_XL", 1, 1))
    put_parts(root / "p/n", "a")
    put_parts(root / "p/n", "b", count=2)
    found = rows(root)
    assert sorted(found) == ["p/m/UD-Q2_K_XL", "p/m/UD-Q4_K_XL/big-UD-Q4_K_XL", "p/n/a", "p/n/b"]
    assert [name for name, model in found.items() if not model.is_loadable] == [
        "p/m/UD-Q4_K_XL/big-UD-Q4_K_XL"
    ]
    assert len(found["p/n/a"].files) == 3 and len(found["p/n/b"].files) == 2


def test_a_whole_model_named_like_a_part_is_a_sound_row(tmp_path: Path):
    put(tmp_path / "models/p/m" / part_name("x", 1, 3))
    (model,) = rows(tmp_path / "models").values()
    assert model.is_loadable and model.fault is None


def test_a_part_that_changes_is_read_again(tmp_path: Path):
    paths = put_parts(tmp_path / "models/p/m", "tiny")
    catalog = library(tmp_path / "models")
    catalog.models()
    before = paths[1].stat()
    data = bytearray(paths[1].read_bytes())
    data[:4] = b"XXXX"
    paths[1].write_bytes(data)
    os.utime(paths[1], ns=(1, 1))
    assert before.st_size == paths[1].stat().st_size
    (model,) = catalog.refresh()
    assert model.fault is not None and paths[1].name in model.fault.message


def test_a_dangling_part_is_a_fault(tmp_path: Path):
    paths = put_parts(tmp_path / "models/p/m", "tiny")
    paths[1].unlink()
    paths[1].symlink_to("/nonexistent/x.gguf")
    (model,) = rows(tmp_path / "models").values()
    assert model.fault is not None and "isn't there" in model.fault.message


def test_parts_in_a_hub_cache_are_links_and_one_row(tmp_path: Path):
    blobs = put_parts(tmp_path / "blobs", "tiny")
    folder = tmp_path / "models/models--org--repo/snapshots/abc"
    folder.mkdir(parents=True)
    for number, path in enumerate(blobs):
        blob = path.rename(path.with_name(f"sha{number}"))
        (folder / path.name).symlink_to(blob)
    (model,) = rows(tmp_path / "models").values()
    assert (model.id, model.is_loadable) == ("org/repo", True)


def test_b06_a_split_gemma_loads_from_any_part_and_goes_on_counting(gemma: Path, tmp_path: Path):
    template = pair("tokenizer.chat_template", builtin.GEMMA)
    paths = split_three(gemma, tmp_path / "models/google/gemma", "gemma-3-270m-it", template)
    model = library(tmp_path / "models").find(str(paths[1]))
    assert (model.size_bytes, model.path) == (SPLIT_GEMMA_BYTES, paths[0])
    assert model.description is not None and model.description.parameters == 268_098_176

    async def counted() -> str:
        async with real_engine(model.path, tmp_path) as engine:
            return (await ask(engine, "1, 2, 3, 4,", 6)).text

    assert asyncio.run(counted()) == " 5, 6,"


@pytest.mark.parametrize("name", ["vision/mmproj-base-f16", "suffix/base.BF16-mmproj", "x/mmproj_base-Q8_0"])
def test_b07_a_projector_has_no_row_and_goes_with_the_model_of_its_name(name: str, tmp_path: Path):
    root = tmp_path / "models"
    path = put(root / "p" / f"{name}.gguf", projector(width=64))
    put(path.with_name("base-Q4_K_M.gguf"), base())
    catalog = library(root)
    (model,) = catalog.models()
    assert model.projector is not None and model.projector.path == path and model.sees_images
    assert model.size_bytes == len(base())
    assert [row.path for row in catalog.projectors()] == [path]


def test_b07_a_stray_projector_goes_with_no_other_model(tmp_path: Path):
    root = tmp_path / "models/flat"
    for name in ("text-only-8b", "othermodel-vl-7b"):
        put(root / f"{name}.gguf", base(name, width=640))
    path = put(root / "mmproj-othermodel-vl-7b-f16.gguf", projector())
    found = rows(tmp_path / "models")
    attached = {model.path.stem: model.projector and model.projector.path for model in found.values()}
    assert attached == {"text-only-8b": None, "othermodel-vl-7b": path}


def test_b07_a_projector_alone_has_no_row(tmp_path: Path):
    put(tmp_path / "models/suffix/Model.BF16-mmproj.gguf", projector())
    catalog = library(tmp_path / "models")
    assert catalog.models() == [] and len(catalog.projectors()) == 1


@pytest.mark.parametrize(
    ("pairs", "width", "fits"),
    [
        ((pair("general.basename", "x"), pair("clip.a", 1)), 640, False),
        ((), 640, True),
        ((), 768, False),
    ],
)
def test_b07_a_name_that_says_nothing_needs_the_right_width(
    pairs: tuple[bytes, ...], width: int, fits: bool, tmp_path: Path
):
    root = tmp_path / "models/p/m"
    for quant in ("Q4_K_M", "Q8_0"):
        put(root / f"base-{quant}.gguf", base())
    put(root / "mmproj-F16.gguf", projector(*pairs, width=width))
    models = rows(tmp_path / "models").values()
    assert [model.projector is not None for model in models] == [fits] * 2


def test_b07_the_headers_may_name_the_same_model(tmp_path: Path):
    root = tmp_path / "models/p/m"
    put(root / "a-it-Q4_K_M.gguf", base("Base 4B It"))
    put(root / "b.gguf", base("Other"))
    put(root / "mmproj-model-f16.gguf", projector(pair("general.base_model.0.name", "base-4b-it")))
    attached = {model.path.stem: model.projector is not None for model in rows(tmp_path / "models").values()}
    assert attached == {"a-it-Q4_K_M": True, "b": False}


def test_of_several_projectors_f16_is_taken(tmp_path: Path):
    root = tmp_path / "models/p/m"
    put(root / "base-Q4_K_M.gguf", base())
    for quant, code in (("BF16", 32), ("F16", 1), ("F32", 0)):
        put(root / f"mmproj-base-{quant}.gguf", projector(pair("general.file_type", code)))
    (model,) = rows(tmp_path / "models").values()
    assert model.projector is not None and model.projector.path.stem == "mmproj-base-F16"


def test_a_projector_cut_short_is_a_row_with_its_fault_and_not_attached(tmp_path: Path):
    root = tmp_path / "models/p/m"
    put(root / "base.gguf", base())
    put(root / "mmproj-base.gguf", projector()[:-10])
    found = rows(tmp_path / "models")
    assert found["p/m"].projector is None and found["p/m/mmproj-base"].fault is not None


def test_b08_half_a_file_and_one_byte_less_are_flagged_with_what_is_missing(smollm2: Path, tmp_path: Path):
    root, size = tmp_path / "models", smollm2.stat().st_size
    for name, length in (("half", size // 2), ("minus1", size - 1)):
        with open(smollm2, "rb") as file:
            # the header for real, the rest a hole: what is read is the header
            path = put(root / name / "m.gguf", file.read(2 << 20))
        os.truncate(path, length)
    found = rows(root)
    missing = {name: model.fault.details["missing_bytes"] for name, model in found.items() if model.fault}
    assert missing == {"local/half/m": size - size // 2, "local/minus1/m": 1}
    assert not any(model.is_loadable for model in found.values())


def test_b08_bytes_after_the_last_tensor_are_harmless_and_a_growing_file_waits(tmp_path: Path):
    root = tmp_path / "models"
    put(root / "garbage/m.gguf", SOUND + b"\xee" * 1000)
    model = tiny()
    model.tensors = [TensorEntry("t.weight", [64, 64], F16)]
    whole = model.build()
    growing = put(root / "growing/m.gguf", whole[:-4096])
    catalog = library(root)
    assert {row.id: row.is_loadable for row in catalog.models()} == {
        "local/garbage": True,
        "local/growing/m": False,
    }
    growing.write_bytes(whole)
    assert all(row.is_loadable for row in catalog.refresh())
