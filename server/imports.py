"""Bring models into the library, for the route and for the command line alike."""

import logging
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

import msgspec

from octavo.core.client.types import ImportAnswer, ImportedFile, ImportFailure
from octavo.core.config.paths import Home
from octavo.core.errors import Cancelled, InvalidRequest, OctavoError
from octavo.core.gguf import printable
from octavo.core.library import Catalog, ImportMode, ImportPlan, plan_import, run_import
from octavo.core.library.importer import remove_shared
from octavo.core.library.places import split_place
from octavo.core.library.plans import PlannedFile, ProposeFromHub
from octavo.core.library.staging import finish_interrupted
from octavo.core.library.transfer import Cancel, Progress
from octavo.core.library.units import sources_below

STARTER_VARIABLE = "OCTAVO_STARTER_MODEL"
STARTER_PLACE = "HuggingFaceTB/SmolLM2-135M-Instruct"

Item = TypeVar("Item")

_log = logging.getLogger(__name__)


class ImportWish(msgspec.Struct):
    """What to bring into the library, and how.

    ``path``, an absolute one, is a file, any part of a split model, or a folder. ``projector``, absolute too,
    is taken instead of the one beside the model, and none where ``with_projector`` is false. ``look_up`` asks
    the Hub where the file is from. ``id``, any text, is what the import is called in events, and when it is
    called off.
    """

    path: str
    repo: str | None = None
    mode: str | None = None
    dry_run: bool | None = None
    projector: str | None = None
    with_projector: bool | None = None
    look_up: bool | None = None
    id: str | None = None


def import_path(
    home: Home,
    wish: ImportWish,
    progress: Progress | None = None,
    cancelled: Cancel | None = None,
    propose_from_hub: ProposeFromHub | None = None,
) -> ImportAnswer:
    """Import a model, or all models of a folder; all are checked before the first is touched.

    What fails in a folder is told in ``failures`` while the others go on; a single model's failure is raised.
    A split model and its projector are one: all or nothing. What a killed import left is settled first.
    Raises ``InvalidRequest`` for a path that is empty or relative: here nobody knows to which folder.
    """
    path = _absolute(wish.path, "path")
    planner = _Planner(home, wish, propose_from_hub if wish.look_up else None)
    finished = {} if wish.dry_run else finish_interrupted(home.models)
    attempts = _Attempts(keeps=path.is_dir())
    sources, left_out = _sources(path, finished)
    plans = attempts.each(sources, planner.plan, lambda source: source)
    if not wish.dry_run:
        runner = _Runner(plans, progress or _silent, cancelled or _never)
        plans = attempts.each(plans, runner.run, lambda plan: plan.source)
        if path.is_dir() and not attempts.failures:
            remove_shared(plans)
    return ImportAnswer(
        mode=", ".join(sorted({plan.mode.value for plan in plans})),
        dry_run=bool(wish.dry_run),
        models=sorted({f"{plan.publisher}/{plan.model}" for plan in plans}),
        files=[_told(plan, file) for plan in plans for file in plan.files],
        notes=[*_notes(plans), *_left_out(left_out)],
        failures=attempts.failures,
    )


class _Planner:
    """Plans one model after the other; what the earlier ones need is not free for the later ones."""

    def __init__(self, home: Home, wish: ImportWish, propose_from_hub: ProposeFromHub | None) -> None:
        self._root = home.models
        self._mode = import_mode(wish.mode)
        self._wish = wish
        self._propose_from_hub = propose_from_hub
        self._beside_bytes = 0
        if wish.look_up and propose_from_hub is None:
            raise InvalidRequest(
                "The Hub can't be asked from here.",
                hint="Name the place: --repo publisher/model.",
                param="look_up",
            )
        if wish.repo:
            split_place(wish.repo)  # a place that can't be is no file's own failure
        if wish.projector and Path(wish.path).is_dir():
            raise InvalidRequest(
                "A projector can be named for one model only.", hint="Import its model by itself."
            )
        self._projector = None if wish.projector is None else _absolute(wish.projector, "projector")

    def plan(self, source: Path) -> ImportPlan:
        """Plan one; raises what ``plan_import`` does."""
        plan = plan_import(
            source,
            self._root,
            self._wish.repo,
            self._mode,
            with_projector=self._wish.with_projector is not False,
            projector=self._projector,
            propose_from_hub=self._propose_from_hub,
            beside_bytes=self._beside_bytes,
        )
        self._beside_bytes += plan.needed_bytes
        return plan


class _Runner:
    """Runs one plan after the other; counts the bytes of all of them."""

    def __init__(self, plans: list[ImportPlan], progress: Progress, cancelled: Cancel) -> None:
        self._total = sum(_left(plan) for plan in plans)
        self._done = 0
        self._count = len(plans)
        self._models: list[str] = []
        self._progress = progress
        self._cancelled = cancelled

    def run(self, plan: ImportPlan) -> ImportPlan:
        """Run one; raises what ``run_import`` does."""
        try:
            run_import(plan, self._tell, self._cancelled)
        except Cancelled as error:
            raise self._told(error) from error
        self._done += _left(plan)
        self._models.append(f"{plan.publisher}/{plan.model}")
        return plan

    def _tell(self, done: int, _total: int) -> None:
        self._progress(self._done + done, self._total)

    def _told(self, error: Cancelled) -> Cancelled:
        if not self._models:
            return error
        return Cancelled(
            f"The import was cancelled; {len(self._models)} of {self._count} models are in the library.",
            models=list(self._models),
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
                if not self._keeps or isinstance(error, Cancelled):
                    raise
                self.failures.append(ImportFailure(printable(source(item)), error.report()))
        return done


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
    """Finish or undo what killed imports left behind, then take the starter model into an empty library."""
    finish_interrupted(home.models)
    adopt_starter(home, catalog)


def adopt_starter(home: Home, catalog: Catalog) -> None:
    """Take the starter model into an empty library: by hard link, else as a copy."""
    named = os.environ.get(STARTER_VARIABLE)
    if not named or not os.path.exists(named) or any(model.is_loadable for model in catalog.models()):
        return
    for mode in (ImportMode.HARD_LINK, ImportMode.COPY):
        try:
            run_import(plan_import(Path(named), home.models, STARTER_PLACE, mode, with_projector=False))
        except OctavoError as error:
            _log.warning("the starter model can't be taken in by %s: %s", mode.value, error)
        else:
            catalog.refresh()
            return


def _absolute(name: str, param: str) -> Path:
    path = Path(name)
    if not name or not path.is_absolute():
        raise InvalidRequest(
            f"{printable(name)!r} is no absolute path.",
            hint="Write the whole path, from the root folder or the drive on.",
            param=param,
        )
    return path


def _sources(path: Path, finished: dict[Path, Path]) -> tuple[list[Path], int]:
    """Give a file of each model; a source whose interrupted move was just finished is where it came to.

    Then comes how many linked folders were left out.
    """
    if path.is_dir():
        models, others, left_out = sources_below(path)
        return [*models, *others], left_out
    absolute = Path(os.path.abspath(path))
    return [path if os.path.lexists(path) else finished.get(absolute, path)], 0


def _notes(plans: Iterable[ImportPlan]) -> list[str]:
    """Say what becomes of each file."""
    return [f"{file.sentence} ({plan.reason})." for plan in plans for file in plan.files]


def _left_out(links: int) -> list[str]:
    """Say that linked folders weren't gone into."""
    if not links:
        return []
    folders = "1 linked folder that leads" if links == 1 else f"{links} linked folders that lead"
    return [f"What lies behind {folders} elsewhere was left out."]


def _told(plan: ImportPlan, file: PlannedFile) -> ImportedFile:
    return ImportedFile(
        source=printable(file.source),
        target=printable(file.target),
        size_bytes=file.size_bytes,
        present=file.present,
        model=f"{plan.publisher}/{plan.model}",
        mode=file.mode.value,
    )


def _left(plan: ImportPlan) -> int:
    return sum(file.size_bytes for file in plan.files if not file.present)


def _silent(done: int, total: int) -> None:
    """Report nothing."""


def _never() -> bool:
    return False
