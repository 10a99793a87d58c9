"""Bring files into the library, for the route and for the command line alike."""

import logging
import os
from pathlib import Path

from octavo.core.client.types import ImportAnswer, ImportedFile
from octavo.core.config.paths import Home
from octavo.core.errors import InvalidRequest, OctavoError, UnreadableFile
from octavo.core.gguf import printable
from octavo.core.library import Catalog, ImportMode, ImportPlan, plan_import, run_import

STARTER_VARIABLE = "OCTAVO_STARTER_MODEL"
STARTER_PLACE = "HuggingFaceTB/SmolLM2-135M-Instruct"

_log = logging.getLogger(__name__)


def import_path(
    home: Home, path: Path, repo: str | None = None, mode: str | None = None, dry_run: bool = False
) -> ImportAnswer:
    """Import a file, or all GGUF files of a folder; all are checked before the first is touched."""
    plans = [plan_import(source, home.models, repo, import_mode(mode)) for source in _sources(path)]
    if not dry_run:
        for plan in plans:
            run_import(plan)
    return ImportAnswer(
        mode=", ".join(sorted({plan.mode.value for plan in plans})),
        dry_run=dry_run,
        models=sorted({f"{plan.publisher}/{plan.model}" for plan in plans}),
        files=[_file(plan) for plan in plans],
        notes=[f"{plan.sentence} ({plan.reason})." for plan in plans],
    )


def import_mode(name: str | None) -> ImportMode | None:
    """Read a mode's name; None leaves the choice to the plan."""
    try:
        return ImportMode(name.replace("-", "_")) if name else None
    except ValueError as fault:
        modes = ", ".join(mode.value for mode in ImportMode)
        raise InvalidRequest(
            f"There is no import mode {name!r}.", hint=f"One of: {modes}.", param="mode"
        ) from fault


def adopt_starter(home: Home, catalog: Catalog) -> None:
    """Take the starter model into an empty library: by hard link, else as a copy."""
    named = os.environ.get(STARTER_VARIABLE)
    if not named or not os.path.exists(named) or any(model.is_loadable for model in catalog.models()):
        return
    for mode in (ImportMode.HARD_LINK, ImportMode.COPY):
        try:
            run_import(plan_import(Path(named), home.models, STARTER_PLACE, mode))
        except OctavoError as error:
            _log.warning("the starter model can't be taken in by %s: %s", mode.value, error)
        else:
            catalog.refresh()
            return


def _sources(path: Path) -> list[Path]:
    path = path.expanduser()
    if not path.is_dir():
        return [path]
    found = sorted(entry for entry in path.rglob("*") if entry.suffix.lower() == ".gguf" and entry.is_file())
    if not found:
        raise UnreadableFile(f"There is no .gguf file in {printable(path)}.", path=printable(path))
    return found


def _file(plan: ImportPlan) -> ImportedFile:
    return ImportedFile(printable(plan.source), printable(plan.target), plan.size_bytes)
