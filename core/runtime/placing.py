"""What a worker is told about the files of its model: their names, and which tensor lies where."""

import logging
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from octavo.core.config.load_config import LoadConfig
from octavo.core.engine.protocol import Load, TensorPlace
from octavo.core.errors import InvalidGguf, UnreadableFile
from octavo.core.gguf import Header, read_model
from octavo.core.memory.shape import skipped_layers
from octavo.core.memory.types import Report
from octavo.core.memory.weights import MAPPING_MODES, unread_tensors

_log = logging.getLogger(__name__)


def load_command(path: Path, config: LoadConfig, report: Report | None = None) -> Load:
    """Make the command that loads a model; blocks while its header is read.

    Weights that are read into private memory have no pages to look after. Of a model that does not fit, the
    tensors that are hardly read are dropped from the page cache.
    """
    files, tensors = place_tensors(path) if config.load_mode in MAPPING_MODES else ([], [])
    return Load(
        str(path),
        config,
        files=files,
        tensors=tensors,
        drops_unread=report is not None and report.verdict.kind == "pages",
    )


def identities(files: Sequence[str]) -> list[tuple[int, int]]:
    """Give (device, inode) of each file, by which it is known again whatever its name means later."""
    found = []
    for file in files:
        try:
            status = os.stat(file)
        except OSError:
            return []
        found.append((status.st_dev, status.st_ino))
    return found


def place_tensors(path: Path) -> tuple[list[str], list[TensorPlace]]:
    """Read from a model's header which files it has, and where its tensors lie in them; blocks.

    A header that can't be read gives none: whether the model can be loaded is for the engine to say.
    """
    try:
        header = read_model(path)
    except (InvalidGguf, UnreadableFile) as fault:
        _log.warning("the pages of %s can't be looked after: %s", path.name, fault)
        return [], []
    return [str(part.path) for part in header.files], list(_places(header))


def _places(header: Header) -> Iterator[TensorPlace]:
    unread = unread_tensors(header, skipped_layers(header))
    for tensor in header.tensors:
        start = header.files[tensor.file].data_offset + tensor.offset
        stop = start + tensor.nbytes
        yield TensorPlace(tensor.name, tensor.file, start, stop, tensor.name in unread)
