"""How fast the library is listed and searched: many small models, whose weights are holes in the files.

    python -m tests.benchmarks.library                    # 2,000 files, then 5,000
    python -m tests.benchmarks.library --models 500

Printed: the cold scan, which opens every file; the warm list of a new start, which opens none; a second look
in the same process; a search; and how long after a new file appears the watch says so. The exit code is 1
where a goal is missed (the best of the rounds counts: the machine may be busy).
"""

import argparse
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

from octavo.core.library import Catalog
from octavo.core.library.search import matching
from octavo.core.library.watch import Watch
from tests.fixtures.gguf_builder import pair, tiny

WEIGHTS_BYTES = 4_000_000_000
TEMPLATE_CHARACTERS = 3_000
GOALS_S = {2000: 0.3, 5000: 0.7}
SEARCH_GOAL_S = 0.05
WATCH_GOAL_S = 2.0
ROUNDS = 5


def put_models(root: Path, count: int) -> None:
    """Write ``count`` models of some GB each that take a few KB of the disk."""
    template = pair("tokenizer.chat_template", "x" * TEMPLATE_CHARACTERS)
    data = tiny("llama", pair("general.file_type", 15), template).build()
    for number in range(count):
        name = f"model-{number:05d}"
        path = root / f"publisher-{number % 50}" / name / f"{name}-Q4_K_M.gguf"
        path.parent.mkdir(parents=True)
        path.write_bytes(data)
        os.truncate(path, len(data) + WEIGHTS_BYTES)


def seconds(work: Callable[[], object]) -> float:
    """Time one call."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def measure(count: int, folder: Path) -> bool:
    """Print all figures for a library of this many files; tells whether the goals were met."""
    root, cache = folder / "models", folder / "cache" / "catalog"
    put_models(root, count)
    cold = seconds(Catalog([root], cache).models)
    warm = [seconds(Catalog([root], cache).models) for _ in range(ROUNDS)]
    library = Catalog([root], cache)
    models = library.models()
    assert len(models) == count
    again = [seconds(library.refresh) for _ in range(ROUNDS)]
    found = [seconds(lambda: matching(models, "model-0001 q4_k llama")) for _ in range(ROUNDS)]
    noticed = watch(library, root)
    goal = GOALS_S.get(count, 0.7 * count / 5000)
    print(f"{count:,} files: cold {cold:.2f} s ({cold / count * 1000:.2f} ms each)")
    print(f"  warm list {min(warm):.3f} to {max(warm):.3f} s, goal {goal:.1f} s; index {size(cache)}")
    print(f"  second look {min(again):.3f} to {max(again):.3f} s")
    print(
        f"  search {min(found) * 1000:.1f} to {max(found) * 1000:.1f} ms, goal {SEARCH_GOAL_S * 1000:.0f} ms"
    )
    print(f"  a new file was noticed after {noticed:.2f} s, goal {WATCH_GOAL_S:.0f} s")
    return min(warm) <= goal and min(found) <= SEARCH_GOAL_S and noticed <= WATCH_GOAL_S


def watch(library: Catalog, root: Path) -> float:
    """Give the seconds from a new file to the watch's word of it."""
    changed = threading.Event()
    watching = Watch(library, changed.set)
    watching.start()
    time.sleep(2)
    changed.clear()
    began = time.perf_counter()
    (root / "publisher-0" / "new").mkdir()
    (root / "publisher-0" / "new" / "new.gguf").write_bytes(tiny().build())
    changed.wait(30)
    took = time.perf_counter() - began
    watching.close()
    return took


def size(path: Path) -> str:
    """Write a file's length."""
    return f"{path.stat().st_size / 1e6:.1f} MB"


def main() -> int:
    """Measure the asked sizes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--models", type=int, nargs="*", default=[2000, 5000])
    held = []
    for count in parser.parse_args().models:
        with tempfile.TemporaryDirectory() as folder:
            held.append(measure(count, Path(folder)))
    return 0 if all(held) else 1


if __name__ == "__main__":
    sys.exit(main())
