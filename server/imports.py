"""Bring files into the library, for the route and for the command line alike."""

import logging
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

from octavo.core.client.types import ImportAnswer, ImportedFile, ImportFailure
from octavo.core.config.paths import Home
from octavo.core.errors import InvalidRequest, OctavoError, UnreadableFile
from octavo.core.gguf import printable
from octavo.core.library import Catalog, ImportMode, ImportPlan, plan_import, run_import
from octavo.core.library.places import split_place
from octavo.core.library.transfer import remove_leftovers

STARTER_VARIABLE = "OCTAVO_STARTER_MODEL"
STARTER_PLACE = "HuggingFaceTB/SmolLM2-135M-Instruct"

Item = TypeVar("Item")

_log = logging.getLogger(__name__)


def import_path(
    home: Home, path: Path, repo: str | None = None, mode: str | None = None, dry_run: bool = False
) -> ImportAnswer:
    """Import a file, or all GGUF files of a folder; all are checked before the first is touched.

    What fails in a folder is told in ``failures`` while the others go on; a single file's failure is raised.
    """
    chosen = import_mode(mode)
    if repo:
        split_place(repo)  # a place that can't be is no file's own failure
    attempts = _Attempts(keeps=path.expanduser().is_dir())
    plans = attempts.each(
        _sources(path), lambda source: plan_import(source, home.models, repo, chosen), lambda source: source
    )
    if not dry_run:
        plans = attempts.each(plans, _run, lambda plan: plan.source)
    return ImportAnswer(
        mode=", ".join(sorted({plan.mode.value for plan in plans})),
        dry_run=dry_run,
        models=sorted({f"{plan.publisher}/{plan.model}" for plan in plans}),
        files=[_file(plan) for plan in plans],
        notes=[f"{plan.sentence} ({plan.reason})." for plan in plans],
        failures=attempts.failures,
    )


class _Attempts:
    """Does one step after the other for each of some files; ``keeps`` failures, or raises the first."""

    def __init__(self, *, keeps: bool) -> None:
        self.failures: list[ImportFailure] = []
        self._keeps = keeps

    def each(
        self, items: Iterable[Item], step: Callable[[Item], ImportPlan], source: Callable[[Item], Path]
    ) -> list[ImportPlan]:
        done: list[ImportPlan] = []
        for item in items:
            try:
                done.append(step(item))
            except OctavoError as error:
                if not self._keeps:
                    raise
                self.failures.append(ImportFailure(printable(source(item)), error.report()))
        return done


def _run(plan: ImportPlan) -> ImportPlan:
    run_import(plan)
    return plan


def import_mode(name: str | None) -> ImportMode | None:
    """Read a mode's name; None leaves the choice to the plan."""
    try:
        return ImportMode(name.replace("-", "_")) if name else None
    except ValueError as fault:
        modes = ", ".join(mode.value for mode in ImportMode)
        raise InvalidRequest(
            f"There is no import mode {name!r}.", hint=f"One of: {modes}.", param="mode"
        ) from fault


def tidy_and_adopt(home: Home, catalog: Catalog) -> None:
    """Remove what killed imports left behind, then take the starter model into an empty library."""
    remove_leftovers(home.models, below=True)
    adopt_starter(home, catalog)


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
    return ImportedFile(printable(plan.source), printable(plan.target), plan.size_bytes, plan.present)
