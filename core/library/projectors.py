"""Which projector (mmproj: the image or audio part of a model) belongs to which model of its folder.

A header decides what is a projector. It goes with a model beside it when their file names are the same but
for ``mmproj`` and quants (``mmproj-base-f16.gguf``, ``base-Q4_K_M.gguf``), or when their headers name the
same model; a header that names another width than the model's embedding is no match then. A projector whose
name says nothing (``mmproj-F16.gguf``, ``mmproj-model-f16.gguf``) and whose header names no model goes with
the one model of its folder, in whatever quants, if it has that model's embedding length. Nothing else is ever
guessed: a projector that does not fit kills the load.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from octavo.core.gguf import Description
from octavo.core.library.models import Model, file_stem

_QUANT = re.compile(
    r"(?<![a-z0-9])(ud[-_.])?(i?q\d\w*|tq\d\w*|bf16|fp?16|fp?32|mxfp4\w*|nvfp4)(?![a-z0-9])", re.IGNORECASE
)
_MARK = re.compile(r"mm[-_]?proj(ector)?", re.IGNORECASE)
_SAYS_NOTHING = {"", "model", "vision", "audio", "clip"}


def with_projectors(
    models: Iterable[Model], chosen: Mapping[Path, Model | None] | None = None
) -> tuple[list[Model], list[Model]]:
    """Give the models, each with its projector where it has one, and apart from them all sound projectors.

    ``chosen`` says by a model's path what goes with it, or that nothing does, whatever the headers say.
    """
    decided = chosen or {}
    folders: dict[Path, list[Model]] = defaultdict(list)
    rows, projectors = list[Model](), list[Model]()
    for model in models:
        is_projector = model.kind == "projector" and model.fault is None
        (projectors if is_projector else rows).append(model)
        folders[model.path.parent].append(model)
    # a folder without projectors, as most are, needs no look
    with_some = {projector.path.parent for projector in projectors}
    return [
        replace(model, projector=decided[model.path])
        if model.path in decided
        else _with_projector(model, folders[model.path.parent])
        if model.path.parent in with_some
        else model
        for model in rows
    ], projectors


def _with_projector(model: Model, folder: list[Model]) -> Model:
    if not model.is_loadable or model.kind != "model":
        return model
    is_alone = len({_base(other) for other in folder if other.is_loadable}) == 1
    near = [other for other in folder if other.kind == "projector" and other.fault is None]
    ranked = [(_likeness(model, other, is_alone), other) for other in near]
    fitting = [(-rank, *_preference(other), other) for rank, other in ranked if rank]
    return replace(model, projector=min(fitting, key=lambda row: row[:-1])[-1]) if fitting else model


def _likeness(model: Model, projector: Model, is_alone: bool) -> int:
    """Rank a match: 3 by file name, 2 by the headers' names, 1 by the embedding length; 0 is none."""
    base, own, its = _base(projector), model.description, projector.description
    if own is None or its is None:
        return 0
    if base not in _SAYS_NOTHING and base == _base(model):
        return 3
    width = its.projector.output_length if its.projector else None
    fits = width is not None and width == own.embedding_length
    if width is not None and own.embedding_length is not None and not fits:
        return 0
    if _names(own) & _names(its) or (fits and _same(own.basename, its.basename)):
        return 2
    says_nothing = base in _SAYS_NOTHING and not _names(its) and not its.basename
    return int(says_nothing and is_alone and fits)


def _preference(projector: Model) -> tuple[bool, int, str]:
    """Of several that fit: F16, which every device computes with, else the smallest."""
    quant = projector.description.quant if projector.description else None
    return quant != "F16", projector.size_bytes, str(projector.path)


def _base(model: Model) -> str:
    """Give the file's name without ending, shard, quants and the mark of a projector."""
    bare = _MARK.sub(" ", _QUANT.sub(" ", file_stem(model.path)))
    return "-".join(re.findall(r"[^\W_]+", bare.casefold()))


def _names(description: Description) -> set[str]:
    return {_letters(name) for name in (description.name, description.base_model) if name} - _SAYS_NOTHING


def _same(one: str | None, other: str | None) -> bool:
    return bool(one and other) and _letters(one or "") == _letters(other or "")


def _letters(name: str) -> str:
    return re.sub(r"[\W_]+", "", name).casefold()
