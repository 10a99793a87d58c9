"""The map's sums as a person would count them: cell by cell, page by page."""

from collections.abc import Iterator, Sequence

from octavo.core.memory.layout import MapLayout, MapTensor


def pages_of(offset: int, nbytes: int, page: int) -> range:
    """Give the numbers of the pages that some bytes lie on."""
    return range(offset // page, -(-(offset + nbytes) // page)) if nbytes else range(0)


def naive_cells(layout: MapLayout, vectors: Sequence[Sequence[int] | None], page: int) -> list[int]:
    """Count every cell; ``vectors`` say of each file's pages whether they are there, None is unknown."""
    return [
        _share(vectors[tensor.file], pages) for tensor in layout.tensors for pages in _cells(tensor, page)
    ]


def naive_bytes(layout: MapLayout, vectors: Sequence[Sequence[int] | None], page: int) -> list[int]:
    """Count every tensor's resident bytes, by the share of its pages."""
    counted = []
    for tensor in layout.tensors:
        vector, pages = vectors[tensor.file], pages_of(tensor.offset, tensor.nbytes, page)
        found = -1 if vector is None else sum(vector[number] for number in pages)
        counted.append(-1 if found < 0 else tensor.nbytes * found // max(len(pages), 1))
    return counted


def naive_total(layout: MapLayout, vectors: Sequence[Sequence[int] | None], page: int) -> int | None:
    """Count the resident bytes of all files, byte by byte of the last page."""
    total = 0
    for size, vector in zip(layout.file_bytes, vectors, strict=True):
        if vector is None:
            return None
        total += sum(min(page, size - number * page) for number, there in enumerate(vector) if there)
    return total


def _cells(tensor: MapTensor, page: int) -> Iterator[range]:
    nbytes = tensor.nbytes // tensor.cells
    for expert in range(tensor.cells):
        yield pages_of(tensor.offset + expert * nbytes, nbytes, page)


def _share(vector: Sequence[int] | None, pages: range) -> int:
    if vector is None:
        return 255
    found = sum(vector[number] for number in pages)
    if found in (0, len(pages)):
        return 254 if found else 0
    return max(found * 254 // len(pages), 1)
