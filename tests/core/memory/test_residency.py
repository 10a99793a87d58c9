"""What the scanner sees of real files, as their pages come and go; both ways to look must agree."""

import errno
import functools
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from octavo.core.gguf import read_model
from octavo.core.memory import page_cache
from octavo.core.memory.layout import MapLayout
from octavo.core.memory.residency import Scanner, Snapshot
from tests.core.memory.naive_map import naive_bytes, naive_cells, naive_total
from tests.core.memory.test_layout import moe, tensor_of
from tests.fixtures.page_cache import PAGE, copy, disk_folder, drop, undisturbed, warm
from tests.fixtures.split_gguf import split_three

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="pages are dropped with Linux's fadvise")
ROOT = Path(__file__).resolve().parents[3]
NOBODY = 65534


@pytest.fixture(params=["cachestat", "mincore"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Look in one way and in the other."""
    monkeypatch.setattr(page_cache, "HAS_CACHESTAT", request.param == "cachestat")
    return str(request.param)


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """A folder on a disk."""
    with disk_folder() as lent:
        yield lent


@pytest.fixture(scope="module")
def small(folder: Path, smollm2: Path) -> Path:
    """A copy of the starter model whose pages may be dropped."""
    return copy(smollm2, folder / "small.gguf")


@pytest.fixture(scope="module")
def shards(folder: Path, smollm2: Path) -> list[Path]:
    """The same in three files."""
    written = split_three(smollm2, folder / "written", "small")
    return [copy(path, folder / path.name) for path in written]


@pytest.fixture(scope="module")
def mixture(folder: Path) -> Path:
    """A tiny mixture of experts, whose slices are a little over two pages and aligned to none."""
    return copy(moe(folder / "written.gguf"), folder / "moe.gguf")


@functools.cache
def layout_of(path: Path) -> MapLayout:
    """Read the header once, while all is cached: read-ahead would bring folios that only go whole."""
    return MapLayout.of(read_model(path))


class Watched:
    """A model's files, a scanner of them, and which pages must be there."""

    def __init__(self, paths: list[Path]) -> None:
        self.paths, self.layout = paths, layout_of(paths[0])
        self.scanner = Scanner(self.layout, paths)
        self.vectors = [[1] * -(-size // PAGE) for size in self.layout.file_bytes]
        for path in paths:
            warm(path, 0, path.stat().st_size)

    def drop(self, file: int, start: int, stop: int) -> None:
        """Drop what lies wholly between two places."""
        for page in drop(self.paths[file], start, stop):
            self.vectors[file][page] = 0

    def drop_layer(self, layer: int) -> None:
        """Drop a layer's ranges."""
        for place in self.layout.ranges([layer]):
            self.drop(place.file, place.start, place.stop)

    def check(self) -> list[int]:
        """Scan; the map, the tensors and the sum must be those of the pages that must be there."""
        seen = self.scanner.scan()
        cells: list[int] = seen.cells.tolist()
        assert cells == naive_cells(self.layout, self.vectors, PAGE)
        assert seen.tensor_bytes.tolist() == naive_bytes(self.layout, self.vectors, PAGE)
        assert seen.resident_bytes == naive_total(self.layout, self.vectors, PAGE)
        assert (seen.reason, seen.total_bytes) == ("", sum(p.stat().st_size for p in self.paths))
        return cells


def shares(snapshot: Snapshot, layout: MapLayout) -> dict[int | None, float | None]:
    """Give each layer's resident share, None where it is unknown."""
    return {
        row.layer: None if row.resident_bytes is None else row.resident_bytes / row.total_bytes
        for row in snapshot.by_layer(layout)
    }


def changed_layers(layout: MapLayout, before: list[int], after: list[int]) -> set[int | None]:
    """Give the layers of which a cell differs."""
    return {
        tensor.layer
        for tensor in layout.tensors
        for cell in range(tensor.first_cell, tensor.first_cell + tensor.cells)
        if before[cell] != after[cell]
    }


def check_layer_cold_and_warm(paths: list[Path], layer: int, background: int) -> None:
    """Drop a layer where another one is cold already, see it alone turn cold, warm it, see what was."""
    watched = Watched(paths)
    with closing(watched.scanner):
        watched.drop_layer(background)
        before = watched.check()
        first = watched.scanner.scan()
        watched.drop_layer(layer)
        after = watched.check()
        second = watched.scanner.scan()
        assert second.generation == first.generation + 1
        assert changed_layers(watched.layout, before, after) == {layer}
        assert (shares(second, watched.layout)[layer] or 0) < 0.01
        assert shares(first, watched.layout)[layer] == 1.0
        for place in watched.layout.ranges([layer]):
            warm(watched.paths[place.file], place.start, place.stop)
        third = watched.scanner.scan()
        assert third.cells.tolist() == before
        assert (third.resident_bytes, third.generation) == (first.resident_bytes, second.generation + 1)


@pytest.mark.parametrize("layer", [0, 7, 29])
def test_dropped_layer_turns_cold_alone_and_warm_again(way: str, small: Path, layer: int) -> None:
    undisturbed(lambda: check_layer_cold_and_warm([small], layer, background=20))


def test_layers_of_a_second_model_too(way: str, folder: Path, gemma: Path) -> None:
    path = copy(gemma, folder / f"gemma-{way}.gguf")
    undisturbed(lambda: check_layer_cold_and_warm([path], 3, background=11))
    path.unlink()


@pytest.mark.parametrize("layer", [2, 25])
def test_dropped_layer_of_a_split_model(way: str, shards: list[Path], layer: int) -> None:
    undisturbed(lambda: check_layer_cold_and_warm(shards, layer, background=12))


def test_dropped_expert_turns_cold_alone(way: str, mixture: Path) -> None:
    def attempt() -> None:
        watched = Watched([mixture])
        with closing(watched.scanner):
            before = watched.check()
            experts = tensor_of(watched.layout, "blk.1.ffn_up_exps.weight")
            nbytes = experts.nbytes // experts.experts
            start = experts.offset + 5 * nbytes
            watched.drop(0, start, start + nbytes)
            after = watched.check()
            assert [cell for cell in range(len(after)) if after[cell] != before[cell]] == [
                experts.first_cell + 5
            ]
            warm(mixture, start, start + nbytes)
            assert watched.scanner.scan().cells.tolist() == before

    undisturbed(attempt)


def test_page_that_two_tensors_share_counts_for_both(way: str, mixture: Path) -> None:
    def attempt() -> None:
        watched = Watched([mixture])
        with closing(watched.scanner):
            experts = tensor_of(watched.layout, "blk.0.ffn_up_exps.weight")
            edge = (experts.offset + experts.nbytes // experts.experts) // PAGE * PAGE
            before = watched.check()
            watched.drop(0, edge, edge + PAGE)
            after = watched.check()
            cold = [cell - experts.first_cell for cell in range(len(after)) if after[cell] != before[cell]]
            assert cold == [0, 1]
            assert all(0 < after[experts.first_cell + cell] < 254 for cell in cold)

    undisturbed(attempt)


@pytest.mark.parametrize("start", [0, 0.4])
def test_cold_half_and_nothing(way: str, mixture: Path, start: float) -> None:
    def attempt() -> None:
        watched = Watched([mixture])
        with closing(watched.scanner):
            size = mixture.stat().st_size
            watched.drop(0, int(start * size), size)
            assert watched.check()[-1] == 0
            if not start:
                assert watched.scanner.scan().resident_bytes == 0

    undisturbed(attempt)


def test_generation_stays_and_arrays_are_shared_while_nothing_changes(way: str, small: Path) -> None:
    def attempt() -> None:
        watched = Watched([small])
        with closing(watched.scanner):
            first, second = watched.scanner.scan(), watched.scanner.scan()
            assert first.generation == second.generation == 1
            assert first.cells is second.cells
            assert first.tensor_bytes is second.tensor_bytes
            assert second.at >= first.at
            assert second.summary().resident_bytes == small.stat().st_size

    undisturbed(attempt)


def test_snapshots_cant_be_written(small: Path) -> None:
    watched = Watched([small])
    with closing(watched.scanner), pytest.raises(ValueError, match="read-only"):
        watched.scanner.scan().cells[0] = 1


def test_file_cut_short_is_unknown(way: str, folder: Path, mixture: Path) -> None:
    path = copy(mixture, folder / f"cut-{way}.gguf")
    watched = Watched([path])
    with closing(watched.scanner):
        assert watched.scanner.scan().resident_bytes is not None
        os.truncate(path, 50_000)
        seen = watched.scanner.scan()
        assert set(seen.cells.tolist()) == {255}
        assert (seen.resident_bytes, seen.generation) == (None, 2)
        assert seen.reason == f"cut-{way}.gguf is shorter than its header said."
        assert set(shares(seen, watched.layout).values()) == {None}
    path.unlink()


def test_one_unknown_shard_leaves_the_others_known(way: str, shards: list[Path], tmp_path: Path) -> None:
    layout = MapLayout.of(read_model(shards[0]))
    gone = tmp_path / shards[2].name
    with closing(Scanner(layout, [*shards[:2], gone])) as scanner:
        seen = scanner.scan()
    assert {tensor.file for tensor in layout.tensors if seen.cells[tensor.first_cell] == 255} == {2}
    assert {tensor.file for tensor in layout.tensors if seen.cells[tensor.first_cell] != 255} == {1}
    assert (seen.resident_bytes, seen.total_bytes) == (None, layout.total_bytes)
    assert seen.reason == f"{gone.name} can't be opened: No such file or directory."
    assert seen.tensor_bytes.min() == -1


def test_file_system_on_which_cachestat_is_blind(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # overlayfs: the pages belong to the file below, and cachestat counts none (seen on Linux 6.18)
    monkeypatch.setattr(page_cache, "_cached", lambda descriptor, length: 0)

    def attempt() -> None:
        watched = Watched([small])
        with closing(watched.scanner):
            watched.check()
            watched.drop_layer(4)
            watched.check()

    undisturbed(attempt)


@pytest.mark.parametrize("number", [errno.ENOSYS, errno.EPERM, errno.EOPNOTSUPP])
def test_refused_cachestat_leads_to_mincore(
    small: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def refuse(descriptor: int, length: int) -> int:
        raise OSError(number, "refused")

    monkeypatch.setattr(page_cache, "_cached", refuse)

    def attempt() -> None:
        watched = Watched([small])
        with closing(watched.scanner):
            watched.check()

    undisturbed(attempt)


def test_file_that_the_kernel_alone_hides_is_unknown(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hidden = small.stat().st_size

    def refuse(descriptor: int, length: int) -> int:
        if length >= hidden:
            raise PermissionError(errno.EPERM, "hidden")
        return 0

    monkeypatch.setattr(page_cache, "_cached", refuse)
    watched = Watched([small])
    with closing(watched.scanner):
        for _ in range(2):
            seen = watched.scanner.scan()
            assert (seen.resident_bytes, seen.reason) == (None, page_cache.HIDDEN)


def test_closed_scanner_knows_nothing_and_closes_again(way: str, small: Path) -> None:
    watched = Watched([small])
    watched.scanner.scan()
    before = len(os.listdir("/proc/self/fd"))
    watched.scanner.close()
    watched.scanner.close()
    assert len(os.listdir("/proc/self/fd")) == before - 1
    assert small.name not in Path("/proc/self/maps").read_text()
    assert watched.scanner.scan().resident_bytes is None


def test_no_page_is_touched(way: str, mixture: Path) -> None:
    watched = Watched([mixture])
    with closing(watched.scanner):
        drop(mixture, 0, mixture.stat().st_size)
        for _ in range(3):
            assert watched.scanner.scan().resident_bytes == 0


CHILD = """
import json, os, sys
from contextlib import closing
from pathlib import Path
from octavo.core.gguf import read_model
from octavo.core.memory import page_cache
from octavo.core.memory.layout import MapLayout
from octavo.core.memory.residency import Scanner, Snapshot
from tests.fixtures.page_cache import copy, drop

foreign, room, user = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
page_cache.HAS_CACHESTAT = sys.argv[4] == "cachestat"
os.setgroups([]), os.setgid(user), os.setuid(user)
own = copy(foreign, room / "own.gguf")
size = own.stat().st_size
drop(own, size // 2, size)
told = []
for path in (foreign, own):
    layout = MapLayout.of(read_model(path))
    with closing(Scanner(layout, [path])) as scanner:
        seen = scanner.scan()
    told.append([sorted(set(seen.cells.tolist())), seen.resident_bytes, seen.reason])
print(json.dumps([size, told]))
"""


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can become another user"
)
def test_foreign_file_is_unknown_and_the_own_one_true(way: str, small: Path) -> None:
    small.parent.chmod(0o755)
    small.chmod(0o644)
    room = small.parent / f"room-{way}"
    room.mkdir()
    os.chown(room, NOBODY, NOBODY)
    command = [sys.executable, "-c", CHILD, str(small), str(room), str(NOBODY), way]
    drop(small, 0, small.stat().st_size)  # mincore would call it resident all the same

    def attempt() -> None:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        size, (foreign, own) = json.loads(done.stdout)
        assert foreign == [[255], None, page_cache.HIDDEN]
        cells, resident, reason = own
        assert abs(resident - size / 2) <= PAGE
        assert (cells[0], cells[-1], reason) == (0, 254, "")

    undisturbed(attempt)
