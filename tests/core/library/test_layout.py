"""A folder of odd names, links and entries (B10): each is what it should be, and nothing stops the scan."""

import asyncio
import json
import os
import sqlite3
import time
from pathlib import Path
from urllib.parse import quote, unquote

import msgspec
import pytest

from octavo.core.library import Catalog, Model
from octavo.core.library.removal import plan_removal, run_removal
from octavo.server.records import model_records
from tests.core.engine.real_engine import ask, real_engine
from tests.fixtures.layouts import Layout, build_layout

SCAN_GOAL_S = 2.0


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    return build_layout(tmp_path / "models")


def scanned(layout: Layout) -> Catalog:
    catalog = Catalog([layout.root], layout.root.parent / "cache" / "catalog")
    catalog.models()
    return catalog


def by_file(catalog: Catalog, layout: Layout) -> dict[str, Model]:
    rows = {}
    for model in catalog.models():
        rows |= {os.fspath(path.relative_to(layout.root)): model for path in model.files}
    return rows


def test_b10_every_entry_is_what_it_should_be(layout: Layout) -> None:
    assert len(layout.expected) >= 59 and not layout.skipped
    began = time.monotonic()
    catalog = scanned(layout)
    took = time.monotonic() - began
    print(f"a scan of {len(layout.expected)} odd entries: {took:.2f} s, goal {SCAN_GOAL_S} s")
    rows = by_file(catalog, layout)
    projectors = {os.fspath(one.path.relative_to(layout.root)) for one in catalog.projectors()}
    for name, verdict in layout.expected.items():
        told = _verdict(name, rows.get(name), projectors)
        assert told == verdict, (name, verdict, told, rows.get(name))
    assert not (layout.root.parent / "X").exists() and not Path("X").exists()


def _verdict(name: str, row: Model | None, projectors: set[str]) -> str:
    if row is None:
        return "projector" if name in projectors else "nothing"
    if "-of-0000" in name and "-00001-of-00001" not in name:
        return "part" if row.is_loadable else "hole"
    return "row" if row.is_loadable else "fault"


def test_b10_rows_are_distinct_and_pairing_follows_names(layout: Layout) -> None:
    rows = by_file(scanned(layout), layout)
    ids = [model.id for model in scanned(layout).models()]
    assert len(set(ids)) == len(ids)
    for name in ("Model.gguf", "model.gguf", "UPPER.GGUF"):
        assert rows[f"case/repo/{name}"].is_loadable
    assert rows["vision/repo/base-Q4_K_M.gguf"].sees_images
    assert rows["flat/othermodel-vl-7b.gguf"].sees_images
    assert not rows["flat/text-only-8b.gguf"].sees_images
    whole = {
        model.size_bytes for name, model in rows.items() if name.startswith(("shards/ok", "shards/dots"))
    }
    assert len(whole) == 1 and all(
        len(rows[name].files) == 3 for name in rows if name.startswith("shards/ok")
    )
    assert rows["rootfile.gguf"].publisher == "local"


def test_b10_ids_survive_json_urls_sqlite_and_a_line_of_a_log(layout: Layout) -> None:
    models = scanned(layout).models()
    ids = [model.id for model in models]
    records = msgspec.json.encode(model_records(models))
    assert [row["key"] for row in json.loads(records)] == ids
    assert [unquote(quote(name, safe="")) for name in ids] == ids
    database = sqlite3.connect(":memory:")
    database.execute("create table kept (id text)")
    database.executemany("insert into kept values (?)", [(name,) for name in ids])
    assert [row[0] for row in database.execute("select id from kept order by rowid")] == ids
    database.close()
    assert all(len(name.splitlines()) == 1 for name in ids)


def test_b10_names_find_the_right_one_of_two_twins(layout: Layout) -> None:
    catalog = scanned(layout)
    twins = [model for model in catalog.models() if model.path.parent.name == "repo" and "caf" in model.id]
    named = [model for model in twins if "norm" in os.fspath(model.path)]
    assert len(named) == 2
    assert {catalog.find(model.id).path for model in named} == {model.path for model in named}
    assert {catalog.find(os.fspath(model.path)).path for model in named} == {model.path for model in named}


def test_b10_deleting_a_link_leaves_its_target_and_twins_alone(layout: Layout) -> None:
    catalog = scanned(layout)
    target = layout.root / "apple/repo/good.gguf"
    rows = by_file(catalog, layout)
    nfc, nfd = sorted(path for path in (layout.root / "norm/repo").iterdir())
    for name in ("links/repo/abs.gguf", "links/repo/dangling.gguf", os.fspath(nfd.relative_to(layout.root))):
        plan = plan_removal(rows[name], catalog.models(), catalog.roots, permanently=True)
        run_removal(plan)
        assert not os.path.lexists(layout.root / name)
    assert target.is_file() and nfc.is_file()
    assert len(catalog.refresh()) == len({model.id for model in rows.values()}) - 3


def test_b10_real_models_under_odd_names_load_and_answer(smollm2: Path, tmp_path: Path) -> None:
    layout = build_layout(tmp_path / "é ñ 漢字 models", smollm2)
    rows = by_file(scanned(layout), layout)

    async def answers(model: Model) -> str:
        async with real_engine(model.path, tmp_path) as engine:
            return (await ask(engine, "1, 2, 3, 4,", 4)).text

    told = {name: asyncio.run(answers(rows[name])) for name in layout.real[:4]}
    assert len(set(told.values())) == 1 and all(told.values())
