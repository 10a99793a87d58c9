"""What each choice of a repository would do on this machine, and which one to take.

One header is read for each model that a repository holds; its other quants are computed from that header and
their own sizes, since nothing else of what memory depends on differs. A choice that is asked about by itself
has its own header read.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath

import msgspec

from octavo.core.errors import HubFileNotFound, InvalidGguf, OctavoError
from octavo.core.hub.choices import model_groups
from octavo.core.hub.client import HubClient
from octavo.core.hub.headers import RemoteHeader
from octavo.core.hub.types import Choice, Fit, HubFile, Repository
from octavo.core.library.models import Model
from octavo.core.memory.budget import Claim
from octavo.core.memory.types import Bandwidth, Budget, Report
from octavo.core.memory.verdict import judge
from octavo.core.runtime.assess import Assessor, trained_context
from octavo.core.runtime.derived_shape import derived, is_plausible
from octavo.core.runtime.recommended import recommended

CONTEXT = 8192
"""Tokens of context that the choices are compared with, or what the model was trained on, if less."""

MOST_MODELS = 4
"""Models of one repository whose headers are read."""

MOST_OWN = 3
"""Choices of one model whose size doesn't fit its header and whose own header is read."""

TRIES = 2
"""Headers that are tried for one model when the first one can't be read."""


class HubChoices:
    """Judges what repositories offer; belongs to the event loop of its ``HubClient``."""

    def __init__(self, hub: HubClient, assessor: Assessor) -> None:
        self._hub = hub
        self._assessor = assessor

    async def judged(self, repository: Repository, claims: Iterable[Claim] = ()) -> Repository:
        """Give the repository with a ``fit`` for each choice beside what ``claims`` stand for, and a reason.

        What can't be judged has a ``note``; of the Hub's refusals none is raised.
        """
        groups = model_groups(repository.choices)
        budget = await asyncio.to_thread(self._assessor.budget, list(claims))
        judged: dict[str, Choice] = {}
        for members in groups[MOST_MODELS:]:
            note = f"Only the first {MOST_MODELS} models of a repository are looked at."
            judged |= {one.name: msgspec.structs.replace(one, note=note) for one in members}
        found = await asyncio.gather(
            *(self._judge_group(repository, members, budget) for members in groups[:MOST_MODELS])
        )
        for members in found:
            judged |= {one.name: one for one in members}
        choices = [judged[one.name] for one in repository.choices]
        name, reason = recommended(choices, budget)
        return msgspec.structs.replace(repository, choices=choices, recommended=name, reason=reason)

    async def estimated(
        self,
        repository: Repository,
        choice: Choice,
        fields: Mapping[str, object],
        claims: Iterable[Claim] = (),
        *,
        budget_bytes: int | None = None,
    ) -> tuple[Model, Report]:
        """Say what a load of this choice would need, by its own header; smaller quants are in the advice."""
        require_whole(repository, choice)
        header = await self._hub.header(repository, choice)
        model = remote_model(repository, choice, header)
        others = [
            (remote_model(repository, one, header), derived(header, choice, one))
            for members in model_groups(repository.choices)
            if choice.name in {one.name for one in members}
            for one in members
            if one.name != choice.name and not one.missing
        ]

        def work() -> Report:
            for known, shape in [*others, (model, header.shape)]:
                self._assessor.know(known, shape)
            rows = [known for known, _ in others]
            return self._assessor.assess(model, fields, claims, budget_bytes=budget_bytes, others=rows)

        return model, await asyncio.to_thread(work)

    async def _judge_group(
        self, repository: Repository, members: Sequence[Choice], budget: Budget
    ) -> list[Choice]:
        """Judge the quants of one model by one header, or by their own where that doesn't fit their size."""
        source, header, notes = await self._first_header(repository, members)
        noted = [msgspec.structs.replace(one, note=notes.get(one.name, "")) for one in members]
        if source is None or header is None:
            note = next(iter(notes.values()), "The repository lacks a part of it.")
            return [msgspec.structs.replace(one, note=one.note or note) for one in noted]
        odd = [one.name for one in noted if one.name != source.name and not is_plausible(header, one)]
        note = "Its size doesn't fit the model that its name tells of: octavo estimate looks at it by itself."
        noted = [
            msgspec.structs.replace(one, note=one.note or note) if one.name in odd[MOST_OWN:] else one
            for one in noted
        ]
        judging = (self._judge(repository, source, header, one, budget) for one in noted)
        return list(await asyncio.gather(*judging))

    async def _first_header(
        self, repository: Repository, members: Sequence[Choice]
    ) -> tuple[Choice | None, RemoteHeader | None, dict[str, str]]:
        notes: dict[str, str] = {}
        for choice in _by_ease(members)[:TRIES]:
            try:
                return choice, await self._hub.header(repository, choice), notes
            except InvalidGguf as fault:
                notes[choice.name] = str(fault)
            except OctavoError as fault:
                return None, None, {choice.name: str(fault)}
        return None, None, notes

    async def _judge(
        self, repository: Repository, source: Choice, header: RemoteHeader, choice: Choice, budget: Budget
    ) -> Choice:
        if choice.missing or choice.note:
            return choice
        is_derived = choice.name != source.name
        try:
            if is_derived and not is_plausible(header, choice):
                header, source, is_derived = await self._hub.header(repository, choice), choice, False
        except OctavoError as fault:
            return msgspec.structs.replace(choice, note=str(fault))
        model = remote_model(repository, choice, header)
        self._assessor.know(model, derived(header, source, choice))
        fit = await asyncio.to_thread(self._fit, model, budget, is_derived)
        bits = bits_per_weight(choice, header)
        return msgspec.structs.replace(choice, fit=fit, bits_per_weight=bits)

    def _fit(self, model: Model, budget: Budget, is_derived: bool) -> Fit:
        wished = {"context": min(CONTEXT, trained_context(model))}
        config = self._assessor.resolve(model, wished).config
        found = self._assessor.estimator(model)(config)
        verdict = judge(found, budget, self._disk())
        return Fit(
            verdict=verdict.kind,
            inequality=verdict.inequality,
            n_ctx=found.n_ctx,
            private_bytes=found.private_bytes,
            mapped_bytes=found.mapped_bytes,
            tokens_per_second=verdict.tokens_per_second,
            confidence=found.confidence,
            is_derived=is_derived,
        )

    def _disk(self) -> Bandwidth:
        return self._assessor.bandwidth()


def remote_model(repository: Repository, choice: Choice, header: RemoteHeader) -> Model:
    """Give a choice as the library would list it, were it here; its path names the place on the Hub."""
    described = header.description
    if described.quant != choice.quant and choice.quant:
        bits = bits_per_weight(choice, header) or described.bits_per_weight
        described = replace(described, quant=choice.quant, bits_per_weight=bits)
    publisher, _, name = repository.id.partition("/")
    root = Path(f"hf:{repository.id}@{repository.revision}")
    model = Model(
        id=f"hf:{repository.id}@{choice.name}",
        path=root / PurePosixPath(choice.files[0].path),
        root=root,
        publisher=publisher,
        name=name,
        size_bytes=choice.size_bytes,
        modified_ns=0,
        description=described,
        files=tuple(root / file.path for file in choice.files),
    )
    projector = choice.projector
    return replace(model, projector=_projector_row(model, projector)) if projector else model


def bits_per_weight(choice: Choice, header: RemoteHeader) -> float | None:
    """Give the bits that a weight takes in a choice of the model that ``header`` is of."""
    weights = header.description.parameters
    return max(choice.size_bytes - header.header_bytes, 0) * 8 / weights if weights else None


def require_whole(repository: Repository, choice: Choice) -> None:
    """Raise ``HubFileNotFound`` for a split model of which the repository lacks a part."""
    if choice.missing:
        raise HubFileNotFound(
            f"{repository.id} lacks {len(choice.missing)} parts of {choice.name}: {choice.missing[0]}.",
            hint="Its upload may not be finished. Take another quant, or try again later.",
            repo=repository.id,
            file=choice.missing[0],
        )


def _by_ease(members: Sequence[Choice]) -> list[Choice]:
    """Order whole choices by what their header costs: few parts first, then sizes near the middle."""
    whole = [one for one in members if not one.missing]
    sizes = sorted(one.size_bytes for one in whole)
    middle = sizes[len(sizes) // 2] if sizes else 0
    return sorted(whole, key=lambda one: (len(one.files), abs(one.size_bytes - middle), one.name))


def _projector_row(model: Model, projector: HubFile) -> Model:
    return replace(
        model,
        id=f"{model.id}/{projector.path}",
        path=model.root / PurePosixPath(projector.path),
        size_bytes=projector.size_bytes,
        description=None,
        files=(),
    )
