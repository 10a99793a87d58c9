"""Which model a person means by a name: an id, a part of one, or the name of a file."""

import difflib
import os
from collections.abc import Callable, Sequence

from octavo.core.errors import AmbiguousModel, ModelNotFound
from octavo.core.gguf import printable
from octavo.core.library.models import Model, clean_text, file_stem


def chosen(name: str, models: Sequence[Model]) -> Model | None:
    """Pick the one model that ``name`` means, trying the strictest reading first; None where none fits.

    Raises ``AmbiguousModel`` where several fit equally well.
    """
    wanted = _folded(name)
    readings: tuple[Callable[[Model], bool], ...] = (
        lambda model: model.id == name,
        lambda model: _folded(model.id) == wanted,
        lambda model: wanted in _parts(model),
        lambda model: wanted in _folded(model.id),
    )
    for reading in readings:
        matches = [model for model in models if reading(model)]
        if matches := [model for model in matches if model.is_loadable] or matches:
            return _only(name, matches)
    return None


def not_found(name: str, models: Sequence[Model]) -> ModelNotFound:
    """Make the error that no model is called that; it names the nearest."""
    candidates = _near(name, models)
    hint = f"Did you mean {candidates[0]}?" if candidates else "`octavo ls` lists the models."
    return ModelNotFound(f"There is no model {printable(name)!r}.", hint=hint, candidates=list(candidates))


def unnamed(name: str) -> ModelNotFound:
    """Make the error for a name without a letter or digit."""
    said = f"There is no model {printable(name)!r}." if name.strip() else "No model was named."
    return ModelNotFound(said, hint="`octavo ls` lists the models.", candidates=[])


def looks_like_path(name: str) -> bool:
    """Tell whether a name may be the path of a file."""
    return os.sep in name or "/" in name or name.lower().endswith(".gguf")


def _folded(text: str) -> str:
    return clean_text(text).casefold()


def _parts(model: Model) -> set[str]:
    """What a person may call the model: ``model``, ``model@QUANT``, the file with and without its ending."""
    short = _folded(model.id).removeprefix(_folded(model.publisher) + "/")
    return {
        short,
        *short.split("/"),
        short.partition("@")[0],
        _folded(file_stem(model.path)),
        *(_folded(path.name) for path in model.files),
        *(_folded(path.stem) for path in model.files),
    }


def _only(name: str, matches: Sequence[Model]) -> Model:
    if len(matches) == 1:
        return matches[0]
    ids = [model.id for model in matches]
    listed = ", ".join(ids[:8]) + (" …" if len(ids) > 8 else "")
    raise AmbiguousModel(
        f"{printable(name)!r} fits {len(ids)} models: {listed}.",
        hint="Give more of the id.",
        candidates=list(ids),
    )


def _near(name: str, models: Sequence[Model], most: int = 5) -> list[str]:
    """Name the models whose id, or a part of it, is spelled most like ``name``, the nearest first."""
    wanted = _folded(name)

    def likeness(model: Model) -> float:
        spellings = {_folded(model.id), *_parts(model)}
        return max(difflib.SequenceMatcher(None, wanted, spelling).ratio() for spelling in spellings)

    scored = sorted(((likeness(model), model.id) for model in models if model.is_loadable), reverse=True)
    return [name for score, name in scored[:most] if score >= 0.5]
