"""New and removed files are noticed though nobody asks."""

import os
import queue
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from octavo.core.library import Catalog
from octavo.core.library.roots import Root
from octavo.core.library.watch import Watch
from tests.fixtures.foreign import hub_revision
from tests.fixtures.gguf_builder import tiny

SOUND = tiny().build()
GOAL_S = 2.0
DEADLINE_S = 15.0


class Watched:
    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog
        self.changes: queue.Queue[float] = queue.Queue()

    def until(self, ids: set[str], began: float) -> None:
        """Wait until the rows are these, by what the watch said alone, and print how long it took."""
        give_up = time.monotonic() + DEADLINE_S
        while {model.id for model in self.catalog.models() if not model.is_offline} != ids:
            at = self.changes.get(timeout=max(0.0, give_up - time.monotonic()))
        print(f"noticed after {at - began:.2f} s, goal {GOAL_S} s")


@contextmanager
def watched(*roots: Path | Root) -> Iterator[Watched]:
    first = roots[0].path if isinstance(roots[0], Root) else roots[0]
    catalog = Catalog(roots, first.parent / "cache" / "catalog")
    told = Watched(catalog)
    watch = Watch(catalog, lambda: told.changes.put(time.monotonic()))
    watch.start()
    time.sleep(0.5)
    try:
        yield told
    finally:
        watch.close()
        assert not any(thread.name == "library watch" for thread in threading.enumerate())


def put(path: Path, data: bytes = SOUND) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def test_files_that_come_and_go_are_noticed(tmp_path: Path) -> None:
    root = tmp_path / "models"
    put(root / "p/one/x.gguf")
    with watched(root) as told:
        began = time.monotonic()
        put(root / "p/two/y.gguf")
        told.until({"p/one", "p/two"}, began)
        began = time.monotonic()
        (root / "p/one/x.gguf").unlink()
        told.until({"p/two"}, began)


def test_b13_a_folder_that_appears_goes_and_is_back_is_noticed(tmp_path: Path) -> None:
    root, drive = tmp_path / "models", tmp_path / "drive"
    root.mkdir()
    with watched(root, drive) as told:
        began = time.monotonic()
        put(drive / "p/m/x.gguf")
        told.until({"p/m"}, began)
        began = time.monotonic()
        drive.rename(tmp_path / "away")
        told.until(set(), began)
        assert [model.is_offline for model in told.catalog.models()] == [True]
        began = time.monotonic()
        (tmp_path / "away").rename(drive)
        told.until({"p/m"}, began)


def test_b08_a_growing_file_is_not_offered_until_it_is_whole_and_partial_names_change_nothing(
    tmp_path: Path,
) -> None:
    root = tmp_path / "models"
    root.mkdir()
    with watched(root) as told:
        hidden = put(root / "p/.new/x.gguf.part", SOUND[:100])
        put(root / "p/m/y.gguf.crdownload")
        path = put(root / "p/m/growing.gguf", SOUND[:-200])
        began = time.monotonic()
        told.until({"p/m/growing"}, began)
        (row,) = told.catalog.models()
        assert not row.is_loadable
        with open(path, "ab") as file:
            for byte in SOUND[-200:-100], SOUND[-100:]:
                time.sleep(0.2)
                file.write(byte)
                file.flush()
        began = time.monotonic()
        told.until({"p/m"}, began)
        assert told.catalog.models()[0].is_loadable
        os.replace(hidden, root / "p/.new/again.part")


def test_a_file_behind_a_linked_folder_is_noticed(tmp_path: Path) -> None:
    root, elsewhere = tmp_path / "models", tmp_path / "elsewhere"
    put(elsewhere / "m/x.gguf")
    root.mkdir()
    (root / "p").symlink_to(elsewhere)
    with watched(root) as told:
        began = time.monotonic()
        put(elsewhere / "n/y.gguf")
        told.until({"p/m", "p/n"}, began)


def test_a_new_repository_of_the_hubs_cache_is_noticed(tmp_path: Path) -> None:
    cache = tmp_path / "hub"
    hub_revision(cache, "o/one", "r", {"a.gguf": SOUND})
    with watched(Root(cache, "hugging_face")) as told:
        began = time.monotonic()
        hub_revision(cache, "o/two", "r", {"b.gguf": SOUND + b"b"})
        told.until({"o/one", "o/two"}, began)
        began = time.monotonic()
        hub_revision(cache, "o/two", "newer", {"c.gguf": SOUND + b"c"})
        told.until({"o/one", "o/two/b", "o/two/c"}, began)
