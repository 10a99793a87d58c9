"""The map's sums, against counting page by page; page vectors are made up."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as some

from octavo.core.memory.layout import MapLayout, MapTensor
from octavo.core.memory.map_cells import CellSums
from octavo.core.memory.page_cache import range_counts
from tests.core.memory.naive_map import naive_bytes, naive_cells, naive_total

PAGE = 16
Vectors = list[list[int] | None]


@some.composite
def layouts(draw: some.DrawFn) -> MapLayout:
    """Make a table of tensors that begin anywhere, share pages, hold experts, or nothing."""
    tensors: list[MapTensor] = []
    sizes, cell = [], 0
    for file in range(draw(some.integers(1, 3))):
        offset = draw(some.integers(0, 40))
        for number in range(draw(some.integers(0, 5))):
            experts = draw(some.sampled_from([0, 0, 1, 3, 8]))
            nbytes = draw(some.integers(0, 90)) * max(experts, 1)
            name = f"blk.{number}.{file}"
            tensor = MapTensor(
                name=name,
                layer=number,
                type="Q8_0",
                shape=(1,),
                file=file,
                offset=offset,
                nbytes=nbytes,
                experts=experts,
                first_cell=cell,
            )
            tensors.append(tensor)
            cell += tensor.cells
            offset += nbytes + draw(some.sampled_from([0, 0, 1, 40]))
        sizes.append(offset)
    return MapLayout(tensors=tensors, cells=cell, files=["f"] * len(sizes), file_bytes=sizes)


@some.composite
def maps(draw: some.DrawFn) -> tuple[MapLayout, Vectors]:
    """Make a layout and what is in memory of its files; None is a file that nobody can tell of."""
    layout = draw(layouts())
    vectors: Vectors = []
    for size in layout.file_bytes:
        pages = -(-size // PAGE)
        bits = some.lists(some.sampled_from([0, 1]), min_size=pages, max_size=pages)
        even = some.sampled_from([[0] * pages, [1] * pages])
        vectors.append(draw(some.one_of(bits, even, some.none())))
    return layout, vectors


@given(maps())
def test_sums_are_those_of_counting_page_by_page(drawn: tuple[MapLayout, Vectors]) -> None:
    layout, vectors = drawn
    sums = CellSums(layout, PAGE)
    for view, edges, vector in zip(sums.views, sums.edges, vectors, strict=True):
        if vector:
            # mincore leaves all bits but the lowest open
            view[:] = range_counts(np.array(vector, np.uint8) | np.uint8(0x60), edges)
    sums.add_up()
    known = np.array([vector is not None for vector in vectors])
    assert sums.cells(known).tolist() == naive_cells(layout, vectors, PAGE)
    assert sums.tensor_bytes(known).tolist() == naive_bytes(layout, vectors, PAGE)
    assert sums.resident_bytes(known) == naive_total(layout, vectors, PAGE)


def test_one_page_of_many_is_not_nothing_and_all_but_one_is_not_all() -> None:
    tensor = MapTensor(
        name="t",
        layer=None,
        type="F32",
        shape=(1,),
        file=0,
        offset=0,
        nbytes=2000 * PAGE,
        experts=0,
        first_cell=0,
    )
    layout = MapLayout(tensors=[tensor], cells=1, files=["f"], file_bytes=[2000 * PAGE])
    sums, known = CellSums(layout, PAGE), np.array([True])
    shares = []
    for resident in (0, 1, 1999, 2000):
        vector = np.array([1] * resident + [0] * (2000 - resident), np.uint8)
        sums.views[0][:] = range_counts(vector, sums.edges[0])
        sums.add_up()
        shares.append(sums.cells(known).tolist())
    assert shares == [[0], [1], [253], [254]]
