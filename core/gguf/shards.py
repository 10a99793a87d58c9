"""A model split over several files, read as one.

The parts are called ``NAME-00001-of-00003.gguf`` and so on and carry ``split.no`` (from 0), ``split.count``
and ``split.tensors.count`` (of all parts together). The engine is given part 1 and finds the others beside it
by these very names; the metadata that counts is part 1's. Source: ``llama_split_path`` and
``llama_model_loader`` in ``src/llama-model-loader.cpp`` as vendored by llama-cpp-python 0.3.36.
"""

import dataclasses
import os
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from octavo.core.errors import InvalidGguf
from octavo.core.gguf.cursor import printable
from octavo.core.gguf.header import Header, read_header

_NAME = re.compile(r"(.+)-(\d{5})-of-(\d{5})\.gguf", re.DOTALL)
_MOST_PARTS = 4096
_NAMED_AT_MOST = 3


def split_name(name: str) -> tuple[str, int, int] | None:
    """Take a part's file name apart: (name of the set, number from 1, count); None for any other file."""
    found = _NAME.fullmatch(name)
    if not found:
        return None
    number, count = int(found[2]), int(found[3])
    return (found[1], number, count) if 1 <= number <= count <= _MOST_PARTS and count > 1 else None


def member_names(name: str) -> tuple[str, ...]:
    """Give the file names of all parts of the set that ``name`` is one of, in order; else just ``name``."""
    parts = split_name(name)
    if parts is None:
        return (name,)
    stem, _, count = parts
    return tuple(f"{stem}-{number:05d}-of-{count:05d}.gguf" for number in range(1, count + 1))


def members(path: Path) -> tuple[Path, ...]:
    """Give the paths of all parts of the model that ``path`` is a part of, in order, there or not."""
    return tuple(path.with_name(name) for name in member_names(path.name))


def read_model(path: Path) -> Header:
    """Read a model of one file or of several, given any part of it; what it gives is ready for a load.

    Raises ``InvalidGguf`` (``missing_shard``, ``shard_mismatch``, ``duplicate_tensor``, ``truncated_data``
    and what ``read_header`` and ``Header.check_loadable`` raise) and ``UnreadableFile``.
    """
    paths = members(path)
    if len(paths) > 1 and is_whole_alone(path):
        paths = (path,)
    check_present(paths)
    header = joined([read_header(part) for part in paths])
    header.check_loadable()
    return header


def is_whole_alone(path: Path) -> bool:
    """Tell whether a file named like a part is a whole model: no part in its header, none beside it."""
    if any(part != path and os.path.lexists(part) for part in members(path)):
        return False
    return path.exists() and read_header(path).shard is None


def check_present(paths: Sequence[Path]) -> None:
    """Raise ``InvalidGguf`` (``missing_shard``; details: ``missing``, file names) unless all are there."""
    missing = [path for path in paths if not path.exists()]
    if len(paths) > 1 and missing:
        raise missing_shard(missing, len(paths))


def missing_shard(missing: Sequence[Path], count: int) -> InvalidGguf:
    """Make the error that names the parts that a split model of ``count`` parts lacks."""
    names = [printable(path.name) for path in missing]
    more = f" and {len(names) - _NAMED_AT_MOST} more" if len(names) > _NAMED_AT_MOST else ""
    verb = "is" if len(names) == 1 else "are"
    return InvalidGguf(
        f"{', '.join(names[:_NAMED_AT_MOST])}{more} {verb} missing: the model is split into {count} files.",
        hint="Download what is missing into the same folder, or wait until its download is finished.",
        path=printable(missing[0]),
        fault="missing_shard",
        offset=0,
        missing=names,
    )


def joined(headers: Sequence[Header]) -> Header:
    """Check that these parts, in order, make one model, and give them as one; a lone whole file as it is.

    Raises ``InvalidGguf``: ``shard_mismatch``, ``duplicate_tensor``.
    """
    if len(headers) == 1:
        _check_alone(headers[0])
        return headers[0]
    for place, header in enumerate(headers):
        _check_number(header, place, len(headers))
    whole = gathered(headers)
    _check_tensors(whole)
    return whole


def gathered(headers: Sequence[Header]) -> Header:
    """Give what these parts tell together, unchecked: the first one's metadata, everyone's tensors."""
    first = headers[0]
    if len(headers) == 1:
        return first
    tensors = tuple(
        dataclasses.replace(tensor, file=place)
        for place, header in enumerate(headers)
        for tensor in header.tensors
    )
    return dataclasses.replace(
        first,
        tensors=tensors,
        parts=tuple(part for header in headers for part in header.files),
        file_size=sum(header.file_size for header in headers),
    )


def _check_alone(header: Header) -> None:
    if not header.shard or header.shard[0]:
        return
    name, count = os.path.basename(header.name), header.shard[1]
    raise _mismatch(
        header,
        f"{name} is part 1 of {count} of a split model, but not named so: the engine looks for the other "
        f"parts by name.",
        f"Give it its own name back, such as {Path(name).stem}-00001-of-{count:05d}.gguf.",
    )


def _check_number(header: Header, place: int, count: int) -> None:
    told = header.shard
    if told == (place, count):
        return
    says = f"part {told[0] + 1} of {told[1]}" if told else "a whole model"
    raise _mismatch(
        header,
        f"{os.path.basename(header.name)} is named part {place + 1} of {count}, but its header says that it "
        f"is {says}.",
        "Download the files again, and don't rename them.",
    )


def _check_tensors(whole: Header) -> None:
    twice = _first_twice(tensor.name for tensor in whole.tensors)
    if twice is not None:
        raise InvalidGguf(
            f"{os.path.basename(whole.name)}: the tensor {twice!r} is in two parts of the model.",
            hint="Download the files again.",
            path=whole.name,
            fault="duplicate_tensor",
            offset=0,
        )
    stated = whole.integer("split.tensors.count")
    if stated is not None and stated != len(whole.tensors):
        raise _mismatch(
            whole,
            f"{os.path.basename(whole.name)} says that the parts hold {stated:,} tensors together; they hold "
            f"{len(whole.tensors):,}.",
            "Download the files again.",
        )


def _first_twice(names: Iterable[str]) -> str | None:
    return next((name for name, count in Counter(names).items() if count > 1), None)


def _mismatch(header: Header, message: str, hint: str) -> InvalidGguf:
    return InvalidGguf(message, hint=hint, path=header.name, fault="shard_mismatch", offset=0)
