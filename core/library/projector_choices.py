"""Which projector the person chose for a model, where the headers alone say something else."""

import json
import os
from pathlib import Path
from typing import Literal
from urllib.parse import quote, unquote

from octavo.core.config.settings import write_atomically
from octavo.core.errors import InvalidRequest
from octavo.core.gguf import printable
from octavo.core.library.models import Model

NONE = "none"


class ProjectorChoices:
    """Choices in a file of ours, by the path of the model's file, so that they outlast a change of its id."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read_at = -1
        self._chosen: dict[Path, Path | None] = {}

    def all(self) -> dict[Path, Path | None]:
        """Give the projector of each model that one was chosen for; None: it is to have none."""
        try:
            changed = os.stat(self._path).st_mtime_ns
        except OSError:
            return {}
        if changed != self._read_at:
            self._chosen, self._read_at = self._read(), changed
        return dict(self._chosen)

    def choose(self, model: Model, projector: Path | Literal["none", "auto"]) -> None:
        """Remember a projector for ``model``, that it has none, or that the headers decide again.

        Raises ``StorageFailed``; ``projector`` is taken as it is: ``check_projector`` before.
        """
        chosen = self.all()
        if projector == "auto":
            chosen.pop(model.path, None)
        else:
            chosen[model.path] = None if projector == NONE else Path(projector)
        told = {_written(path): NONE if one is None else _written(one) for path, one in chosen.items()}
        write_atomically(self._path, json.dumps(told, indent=1).encode())
        self._read_at = -1

    def _read(self) -> dict[Path, Path | None]:
        try:
            told = json.loads(self._path.read_text("utf-8"))
            return {_path(name): None if one == NONE else _path(one) for name, one in told.items()}
        except (OSError, ValueError, AttributeError, TypeError):
            # damaged: the headers decide, as they did before
            return {}


def check_projector(model: Model, projector: Model | None, named: str) -> None:
    """Raise ``InvalidRequest`` unless ``projector`` is one, and makes vectors of the model's width."""
    facts = projector.description if projector else None
    if projector is None or facts is None or projector.fault or not facts.is_projector:
        reason = projector.fault.message if projector and projector.fault else "it is no projector"
        raise InvalidRequest(
            f"{printable(named)} can't be a projector: {reason}.",
            hint="Name a GGUF file whose header says that it is one (mmproj), none, or auto.",
        )
    width = facts.projector.output_length if facts.projector else None
    wanted = model.description.embedding_length if model.description else None
    if width and wanted and width != wanted:
        raise InvalidRequest(
            f"{printable(named)} makes vectors of {width}, but {model.id} takes {wanted}.",
            hint="Use the projector that was made for this model.",
        )


def _written(path: Path) -> str:
    # any bytes may be in a name; a percent sign keeps them readable
    return quote(os.fsencode(path))


def _path(text: str) -> Path:
    return Path(os.fsdecode(unquote(text, errors="surrogateescape")))
