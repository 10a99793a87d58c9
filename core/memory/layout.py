"""A model's files as a map of cells: one a tensor, and one an expert where a tensor holds many.

An expert tensor is a stack of equal slices along its last dimension, contiguous in the file (ggml: ``nb[2]``
is the stride from one expert to the next). Offsets are bytes from the start of the tensor's own file.
"""

import os
from collections.abc import Sequence

import msgspec

from octavo.core.errors import InvalidRequest
from octavo.core.gguf import Header, Tensor
from octavo.core.memory.weights import is_expert, layer_of

OTHER = -1
"""Among layers: what belongs to none, such as the embedding table."""

MOST_CELLS = 1 << 18
"""With more, experts are not told apart; the largest published models have 70,000."""


class MapTensor(msgspec.Struct, frozen=True, kw_only=True):
    """One tensor on the map: where it lies (bytes), and its cells.

    ``layer`` is None for a tensor of the whole model; ``type`` names the quantisation, ``shape`` has the
    fastest dimension first. ``experts`` is the number of its slices, each a cell from ``first_cell`` on; 0
    for a plain tensor, which is one cell.
    """

    name: str
    layer: int | None
    type: str
    shape: tuple[int, ...]
    file: int
    offset: int
    nbytes: int
    experts: int
    first_cell: int

    @property
    def cells(self) -> int:
        """The number of its cells."""
        return max(self.experts, 1)


class PageRange(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes from ``start`` to before ``stop`` of one of the model's files; not rounded to pages."""

    file: int
    start: int
    stop: int


class MapLayout(msgspec.Struct, frozen=True, kw_only=True):
    """What the map of a model is made of, the same for as long as its files are.

    ``tensors`` are ordered by file and offset; ``files`` are names without folders, ``file_bytes`` their
    sizes; ``cells`` is how many there are in all.
    """

    tensors: list[MapTensor]
    cells: int
    files: list[str]
    file_bytes: list[int]

    @classmethod
    def of(cls, header: Header) -> "MapLayout":
        """Make the layout of a model of one file or of several; reads nothing but the header."""
        ordered = sorted(header.tensors, key=lambda tensor: (tensor.file, tensor.offset))
        experts = [_experts(tensor) for tensor in ordered]
        if sum(max(count, 1) for count in experts) > MOST_CELLS:
            experts = [0] * len(ordered)
        tensors, cell = [], 0
        for tensor, count in zip(ordered, experts, strict=True):
            tensors.append(_placed(header, tensor, count, cell))
            cell += tensors[-1].cells
        files = header.files
        return cls(
            tensors=tensors,
            cells=cell,
            files=[os.path.basename(file.name) for file in files],
            file_bytes=[file.file_size for file in files],
        )

    @property
    def total_bytes(self) -> int:
        """The size of all files together, headers included."""
        return sum(self.file_bytes)

    @property
    def layers(self) -> list[int]:
        """The layers that have tensors, in order."""
        return sorted({tensor.layer for tensor in self.tensors if tensor.layer is not None})

    def ranges(self, layers: Sequence[int] | None) -> list[PageRange]:
        """Give the bytes of ``layers``' own tensors, merged where one ends as the next begins.

        None is the whole model: every file from its first byte to its last; ``OTHER`` among them is what
        belongs to no layer. Raises ``InvalidRequest`` for a
        layer that the model lacks; details: ``layers``.
        """
        if layers is None:
            sizes = enumerate(self.file_bytes)
            return [PageRange(file=file, start=0, stop=size) for file, size in sizes]
        wished = {None if layer == OTHER else layer for layer in layers}
        self._check({layer for layer in wished if layer is not None})
        return _merged([tensor for tensor in self.tensors if tensor.layer in wished])

    def _check(self, wished: set[int]) -> None:
        known = self.layers
        unknown = sorted(wished.difference(known))
        if not unknown:
            return
        noun, verb = ("Layer", "is") if len(unknown) == 1 else ("Layers", "are")
        raise InvalidRequest(
            f"{noun} {_named(unknown)} {verb} not in this model; {_existing(known)}.",
            hint="Name layers that it has, or none for the whole model.",
            layers=_named(known),
        )


def _placed(header: Header, tensor: Tensor, experts: int, cell: int) -> MapTensor:
    return MapTensor(
        name=tensor.name,
        layer=layer_of(tensor),
        type=tensor.type.name,
        shape=tensor.shape,
        file=tensor.file,
        offset=header.files[tensor.file].data_offset + tensor.offset,
        nbytes=tensor.nbytes,
        experts=experts,
        first_cell=cell,
    )


def _experts(tensor: Tensor) -> int:
    """Give the number of slices; 0 for what can't be cut into equal ones."""
    if not is_expert(tensor) or len(tensor.shape) != 3 or not tensor.shape[-1]:
        return 0
    return 0 if tensor.nbytes % tensor.shape[-1] else tensor.shape[-1]


def _merged(tensors: Sequence[MapTensor]) -> list[PageRange]:
    merged: list[PageRange] = []
    for tensor in tensors:
        start, stop = tensor.offset, tensor.offset + tensor.nbytes
        last = merged[-1] if merged else None
        if last and (last.file, last.stop) == (tensor.file, start):
            merged[-1] = PageRange(file=last.file, start=last.start, stop=stop)
        else:
            merged.append(PageRange(file=tensor.file, start=start, stop=stop))
    return merged


def _existing(layers: Sequence[int]) -> str:
    return f"it has {_named(layers)}" if layers else "it has no layers"


def _named(layers: Sequence[int]) -> str:
    """Write layers with runs shortened: 0–3, 7."""
    runs: list[tuple[int, int]] = []
    for layer in layers:
        if runs and runs[-1][1] == layer - 1:
            runs[-1] = (runs[-1][0], layer)
        else:
            runs.append((layer, layer))
    return ", ".join(f"{first}–{last}" if last > first else str(first) for first, last in runs)
