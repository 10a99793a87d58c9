"""The one answer to "will it fit?", asked by loads over HTTP, command line, window and on demand alike."""

import os
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from octavo.core.config.load_config import DEFAULT_CONTEXT, LoadConfig, Resolved
from octavo.core.config.paths import Home
from octavo.core.config.settings import SettingsFile
from octavo.core.gguf import read_model
from octavo.core.library.models import Model
from octavo.core.memory.advise import CONTEXT_STEP, Estimator, Sibling, advise, fit
from octavo.core.memory.budget import GIB, Claim, fixed, measure
from octavo.core.memory.disk import UNKNOWN, Disks
from octavo.core.memory.estimate import estimate
from octavo.core.memory.ledger import Ledger, compare
from octavo.core.memory.shape import Shape, read_shape
from octavo.core.memory.types import Bandwidth, Budget, Components, Estimate, Report
from octavo.core.memory.verdict import gib, judge
from octavo.core.runtime.defaults import CONTEXT_FITS, resolve_for
from octavo.core.runtime.settle import Settler

KEPT_SHAPES = 64


class Assessor:
    """Estimates, budgets and verdicts for models; all methods may block and are thread-safe."""

    def __init__(self, home: Home, settings: SettingsFile) -> None:
        self._settings = settings
        self._disks = Disks(home.cache)
        self.ledger = Ledger(home.cache)
        self._settler = Settler(home)
        self._models = home.models
        self._shapes: dict[tuple[str, int, int], Shape] = {}
        self._lock = threading.Lock()

    def budget(self, claims: Iterable[Claim] = ()) -> Budget:
        """Tell what a load may use, beside the models that ``claims`` stand for."""
        memory = self._settings.current.memory
        return measure(
            keep_free_bytes=int(memory.keep_free_gib * GIB),
            claims=claims,
            most_bytes=int(memory.limit_gib * GIB) or None,
        )

    def estimator(self, model: Model) -> Estimator:
        """Give a function from a configuration to the estimate, corrected by the ledger."""
        raw = self.raw_estimator(model)
        return lambda config: self.ledger.corrected(raw(config))

    def raw_estimator(self, model: Model) -> Estimator:
        """Give the same without corrections."""
        shape = self._shape(model)
        projector = model.projector.size_bytes if model.projector else 0

        def estimated(config: LoadConfig) -> Estimate:
            found = estimate(shape, config, file_bytes=model.size_bytes, mmproj_bytes=projector)
            return msgspec.structs.replace(found, model=model.id)

        return estimated

    def know(self, model: Model, shape: Shape) -> None:
        """Take the shape of a model that isn't on this disk: of a repository's file."""
        with self._lock:
            self._keep(_key(model), shape)

    def bandwidth(self, path: Path | None = None) -> Bandwidth:
        """Tell how fast the disk of a model is; without a file here, the one that downloads go to."""
        return self._disks.bandwidth(path if path is not None and path.exists() else self._models)

    def report(
        self,
        model: Model,
        config: LoadConfig,
        budget: Budget,
        *,
        others: Iterable[Model] = (),
        advises: bool = True,
    ) -> Report:
        """Say what will happen, and what would help; ``others`` may hold the model in other quantisations."""
        estimator = self.estimator(model)
        found = estimator(config)
        if model.path.exists():  # llama.cpp can only be asked about a file that is here
            found = self._settler.settled(Path(model.path), config, found)
        found = _beyond_training(found, trained_context(model))
        verdict = judge(found, budget, UNKNOWN)
        if verdict.kind == "resident" or not advises:
            return Report(estimate=found, budget=budget, verdict=verdict)
        disk = self.bandwidth(model.path)
        verdict = judge(found, budget, disk)
        siblings = [self._sibling(other) for other in others if is_sibling(other, model)]
        advice = advise(
            estimator,
            config,
            budget,
            disk,
            siblings=siblings,
            has_gpu=config.gpu_layers != 0,
            trained=trained_context(model),
        )
        return Report(estimate=found, budget=budget, verdict=verdict, suggestions=advice)

    def assess(
        self,
        model: Model,
        fields: Mapping[str, object],
        claims: Iterable[Claim] = (),
        *,
        budget_bytes: int | None = None,
        others: Iterable[Model] = (),
    ) -> Report:
        """Say what a load with these wishes would need and what would come of it; loads nothing.

        ``budget_bytes`` stands for a machine with so much for models. Raises ``InvalidConfig``.
        """
        claimed = list(claims)
        resolved = self.resolve(model, fields, claimed, budget_bytes)
        budget = self.budget(claimed) if budget_bytes is None else fixed(budget_bytes)
        return self.report(model, resolved.config, budget, others=others)

    def resolve(
        self,
        model: Model,
        fields: Mapping[str, object],
        claims: Iterable[Claim] = (),
        budget_bytes: int | None = None,
    ) -> Resolved:
        """Give the effective settings for a load; a context that nobody said is the largest that fits."""
        claimed = list(claims)

        def fitted(config: LoadConfig) -> tuple[int, str]:
            if budget_bytes is None:
                return self._fitted(model, config, claimed)
            context = fit(self.estimator(model), config, fixed(budget_bytes), trained_context(model))
            return context, f"{CONTEXT_FITS} {gib(budget_bytes)}"

        return resolve_for(model, self._settings.current, fields, fitted)

    def _fitted(self, model: Model, config: LoadConfig, claims: list[Claim]) -> tuple[int, str]:
        """Give the largest context that fits beside what is loaded; for a usual one, idle models leave."""
        trained = trained_context(model)
        estimator = self.estimator(model)
        budget = self.budget(staying(claims))
        context = fit(estimator, config, budget, trained)
        if context < min(trained, DEFAULT_CONTEXT) and any(claim.may_leave for claim in claims):
            budget = self.budget(claims)
            context = min(fit(estimator, config, budget, trained), DEFAULT_CONTEXT)
        return context, f"{CONTEXT_FITS} {gib(budget.budget_bytes)}"

    def note_load(
        self, model: Model, config: LoadConfig, log: Iterable[str], anonymous_bytes: int | None
    ) -> Components:
        """Write into the ledger what a load that is ready really took, and give it.

        ``anonymous_bytes`` are the worker's before it gave anything back; None where that isn't told.
        """
        entry = compare(self.raw_estimator(model)(config), log, anonymous_bytes or 0)
        self.ledger.note(entry)
        return entry.actual

    def _shape(self, model: Model) -> Shape:
        with self._lock:
            known = self._shapes.get(_key(model))
        if known is None:
            known = read_shape(read_model(Path(model.path)))
            with self._lock:
                self._keep(_key(model), known)
        return known

    def _keep(self, key: tuple[str, int, int], shape: Shape) -> None:
        self._shapes.pop(key, None)
        self._shapes[key] = shape
        while len(self._shapes) > KEPT_SHAPES:
            del self._shapes[next(iter(self._shapes))]

    def _sibling(self, other: Model) -> Sibling:
        quant = (other.description.quant if other.description else None) or "another quantisation"
        return Sibling(other.id, quant, self.estimator(other), is_here=other.path.exists())


def _key(model: Model) -> tuple[str, int, int]:
    return os.fspath(model.path), model.size_bytes, model.modified_ns


def trained_context(model: Model) -> int:
    """Give the context that a model was trained on, in tokens."""
    return (model.description.context_length if model.description else None) or DEFAULT_CONTEXT


def _beyond_training(found: Estimate, trained: int) -> Estimate:
    """Say so when the context is longer than what the model was trained on."""
    if found.n_ctx <= max(trained, CONTEXT_STEP):
        return found
    warning = f"A context of {found.n_ctx:,} tokens is above the {trained:,} that the model was trained on."
    return msgspec.structs.replace(found, reasons=[*found.reasons, warning])


def staying(claims: Iterable[Claim]) -> list[Claim]:
    """Give the same claims with none that may leave."""
    return [Claim(one.private_bytes, one.taken_bytes, one.mapped_bytes) for one in claims]


def is_sibling(other: Model, model: Model) -> bool:
    """Tell whether ``other`` is the same model in a smaller quantisation."""
    mine, its = model.description, other.description
    if mine is None or its is None or not other.is_loadable or other.size_bytes >= model.size_bytes:
        return False
    same_kind = (its.architecture, its.parameters) == (mine.architecture, mine.parameters)
    return same_kind and its.quant != mine.quant and _same_name(other, model)


def _same_name(other: Model, model: Model) -> bool:
    mine, its = model.description, other.description
    if (other.publisher, other.name) == (model.publisher, model.name):
        return True
    return bool(mine and its and mine.name and mine.name == its.name)
