"""What a repository offers: its files put together into choices that each make one model.

Parts of a split model are one choice, whose size is their sum. Projectors are listed apart, and each choice
names the one that goes along. Names that can't be used here are left out and counted.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from octavo.core.errors import HubFileNotFound
from octavo.core.gguf import member_names, split_name
from octavo.core.hub.names import safe_path
from octavo.core.hub.quant_names import file_stem, kind_of, model_of, quant_of
from octavo.core.hub.types import Choice, HubFile, Repository

_SAYS_NOTHING = frozenset({"", "model", "vision", "audio", "clip"})
_PREFERRED = ("F16", "BF16", "Q8_0", "F32")


@dataclass(frozen=True, slots=True)
class Offer:
    """What a listing comes to; ``hidden`` counts GGUF files whose names can't be used."""

    choices: list[Choice]
    projectors: list[HubFile]
    hidden: int


def offered(files: Iterable[HubFile]) -> Offer:
    """Put a listing together; the smallest choice comes first."""
    listed = {file.path: file for file in files}
    ggufs = [file for path, file in listed.items() if path.lower().endswith(".gguf")]
    placed = [(path, file) for file in ggufs if (path := safe_path(file.path))]
    projectors = [(path, file) for path, file in placed if kind_of(path) == "projector"]
    groups = _sets([(path, file) for path, file in placed if kind_of(path) == "model"])
    names = _names(list(groups))
    choices = [_choice(names[key], key, members, projectors) for key, members in groups.items()]
    hidden = sum(safe_path(file.path) is None and not _is_dotted(file.path) for file in ggufs)
    choices.sort(key=lambda choice: (choice.size_bytes, choice.name))
    return Offer(choices, [file for _, file in projectors], hidden)


def pick(repository: Repository, wanted: str) -> Choice:
    """Give the choice that ``wanted`` names: its name, its quant, or a file's path or name, in any case.

    Raises ``HubFileNotFound`` with ``candidates``, also where several fit.
    """
    text = wanted.strip().casefold()
    for ways in (_names_of, _quant_of, _files_of, _plain_quant_of):
        found = [choice for choice in repository.choices if text in ways(choice)]
        if len(found) == 1:
            return found[0]
        if found:
            raise _no_choice(repository, f"{len(found)} choices called {wanted}", found)
    raise _no_choice(repository, f"no {wanted}" if text else "nothing to choose", repository.choices)


def pick_projector(repository: Repository, wanted: str) -> HubFile:
    """Give the projector of this path or file name; raises ``HubFileNotFound``."""
    for file in repository.projectors:
        if wanted.casefold() in (file.path.casefold(), PurePosixPath(file.path).name.casefold()):
            return file
    names = [file.path for file in repository.projectors]
    raise HubFileNotFound(
        f"{repository.id} has no projector {wanted}.",
        hint=f"There are: {', '.join(names)}." if names else "It has none at all.",
        repo=repository.id,
        candidates=names,
    )


def model_groups(choices: Iterable[Choice]) -> list[list[Choice]]:
    """Put the quants of one model together, by file name and folder; without a quant each is its own."""
    groups: dict[tuple[str, ...], list[Choice]] = defaultdict(list)
    for choice in choices:
        path = PurePosixPath(choice.files[0].path)
        folders = [part for part in path.parts[:-1] if quant_of(PurePosixPath(part, "")) is None]
        key = (*folders, model_of(path)) if choice.quant else (str(path),)
        groups[key].append(choice)
    return list(groups.values())


_Placed = tuple[PurePosixPath, HubFile]
_Key = tuple[PurePosixPath, int]
"""The first part's path, and how many parts there should be."""


def _sets(placed: Sequence[_Placed]) -> dict[_Key, list[_Placed]]:
    groups: dict[_Key, list[_Placed]] = defaultdict(list)
    for path, file in placed:
        members = member_names(path.name)
        groups[path.with_name(members[0]), len(members)].append((path, file))
    return {key: sorted(members, key=lambda one: one[0].name) for key, members in groups.items()}


def _choice(name: str, key: _Key, members: list[_Placed], projectors: Sequence[_Placed]) -> Choice:
    first, _ = key
    there = {path.name for path, _ in members}
    return Choice(
        name=name,
        files=[file for _, file in members],
        size_bytes=sum(file.size_bytes for _, file in members),
        quant=quant_of(first),
        projector=_projector(first, projectors),
        missing=[str(first.with_name(part)) for part in member_names(first.name) if part not in there],
    )


def _names(keys: Sequence[_Key]) -> dict[_Key, str]:
    """Call each by its quant where that is the only one, else with its folder, else by its file's name."""
    labels = {key: quant_of(key[0]) or file_stem(key[0]) for key in keys}
    ways: tuple[Callable[[_Key], str], ...] = (
        lambda key: labels[key],
        lambda key: _below(key[0], labels[key]),
        lambda key: _below(key[0], file_stem(key[0])),
    )
    names: dict[_Key, str] = {}
    for way in ways:
        rest = [key for key in keys if key not in names]
        counts = Counter(way(key).casefold() for key in keys)
        names |= {key: way(key) for key in rest if counts[way(key).casefold()] == 1}
    return {key: names.get(key) or str(key[0]) for key in keys}


def _below(path: PurePosixPath, label: str) -> str:
    folders = [part for part in path.parts[:-1] if part.casefold() != label.casefold()]
    return "/".join([*folders, label])


def _projector(model: PurePosixPath, projectors: Sequence[_Placed]) -> HubFile | None:
    """Give the projector that goes along: named after the model, or after nothing; F16 before others.

    F16 is what every device computes with; one in the model's own folder comes before one above it.
    """
    fitting = [
        (
            model_of(path) != model_of(model),
            path.parent != model.parent,
            _rank(path),
            file.size_bytes,
            file.path,
            file,
        )
        for path, file in projectors
        if path.parent in (model.parent, *model.parents) and _goes_with(model_of(path), model_of(model))
    ]
    return min(fitting, key=lambda row: row[:-1])[-1] if fitting else None


def _goes_with(projector: str, model: str) -> bool:
    return projector in _SAYS_NOTHING or projector == model or model.startswith(f"{projector}-")


def _rank(path: PurePosixPath) -> int:
    quant = quant_of(path)
    return _PREFERRED.index(quant) if quant in _PREFERRED else len(_PREFERRED)


def _is_dotted(path: str) -> bool:
    """Tell a file that is only hidden (macOS leaves ``._model.gguf``) from one with a hostile name."""
    return (
        path.rpartition("/")[2].startswith(".") and safe_path(re.sub(r"(^|/)\.+_?", r"\1", path)) is not None
    )


def _names_of(choice: Choice) -> set[str]:
    return {choice.name.casefold()}


def _quant_of(choice: Choice) -> set[str]:
    return {(choice.quant or "").casefold()} - {""}


def _plain_quant_of(choice: Choice) -> set[str]:
    """Let ``Q4_K_XL`` find ``UD-Q4_K_XL`` where there is no other."""
    return {(choice.quant or "").casefold().removeprefix("ud-")} - {""}


def _files_of(choice: Choice) -> set[str]:
    paths = [PurePosixPath(file.path.casefold()) for file in choice.files]
    stems = {parts[0] for path in paths if (parts := split_name(path.name))}
    return (
        {str(path) for path in paths} | {path.name for path in paths} | {path.stem for path in paths} | stems
    )


def _no_choice(repository: Repository, what: str, among: Sequence[Choice]) -> HubFileNotFound:
    names = [choice.name for choice in among]
    told = f"There are: {', '.join(names[:20])}." if names else "It has no GGUF model at all."
    if not names and repository.hidden_files:
        count = repository.hidden_files
        files = "Its only GGUF file is" if count == 1 else f"All of its {count} GGUF files are"
        told = f"{files} left out because of names that can't be used on a disk. Tell its publisher."
    return HubFileNotFound(
        f"{repository.id} has {what}.", hint=told, repo=repository.id, candidates=names[:100]
    )
