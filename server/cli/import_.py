"""``octavo import``: bring GGUF files into the library."""

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from octavo.server.cli.console import Json, answer, done, say, size, usage

if TYPE_CHECKING:
    from octavo.core.client.types import ImportAnswer
    from octavo.server.imports import ImportWish


def _place(repo: str | None) -> str | None:
    if repo is not None:
        from octavo.core.library.places import split_place

        with usage():
            split_place(repo)
    return repo


def _path(name: str) -> Path:
    # Path("") is the current folder, which nobody means by a variable that is empty
    if not name:
        raise typer.BadParameter("the path is empty")
    return Path(name)


Paths = Annotated[
    list[Path],
    typer.Argument(
        help="GGUF files, any part of split models, or folders of them.", parser=_path, metavar="PATH"
    ),
]
Copy = Annotated[bool, typer.Option("--copy", "-c", help="Copy the files.")]
HardLink = Annotated[bool, typer.Option("--hard-link", "-L", help="Link them, on the same disk.")]
Symlink = Annotated[bool, typer.Option("--symlink", "--symbolic-link", "-l", help="Point to them.")]
Move = Annotated[bool, typer.Option("--move", help="Move them, also from another program's folder.")]
Repo = Annotated[
    str | None,
    typer.Option("--repo", "--user-repo", callback=_place, help="publisher/model to file it under."),
]
Projector = Annotated[
    Path | None,
    typer.Option(
        "--projector",
        help="The mmproj file of this model, instead of the one found.",
        parser=_path,
        metavar="PATH",
    ),
]
NoProjector = Annotated[bool, typer.Option("--no-projector", help="Leave the mmproj file where it is.")]
LookUp = Annotated[bool, typer.Option("--look-up", help="Ask the Hub whose model it is.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Tell what would be done, and do nothing.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Never ask.")]


def import_(
    paths: Paths,
    copy: Copy = False,
    hard_link: HardLink = False,
    symlink: Symlink = False,
    move: Move = False,
    repo: Repo = None,
    projector: Projector = None,
    no_projector: NoProjector = False,
    look_up: LookUp = False,
    dry_run: DryRun = False,
    yes: Yes = False,
    json: Json = False,
) -> None:
    """Bring GGUF files into the library; each header is checked first.

    A split model and its projector (mmproj) are one: all their files come, or none does.
    """
    from octavo.server.imports import ImportWish

    mode = _mode(copy=copy, hard_link=hard_link, symlink=symlink, move=move)
    _check_projector(paths, projector, no_projector)
    own = str(projector.expanduser().absolute()) if projector else None
    wishes = [
        ImportWish(
            path=str(path.expanduser().absolute()),
            repo=repo,
            mode=mode,
            projector=own,
            with_projector=not no_projector,
            look_up=look_up,
        )
        for path in paths
    ]
    answers = done(lambda: asyncio.run(_import_all(wishes, dry_run=True)), json)
    if not dry_run:
        _confirm(answers, yes)
        answers = done(lambda: asyncio.run(_import_all(wishes, dry_run=False)), json)
    answer(lambda: answers, json, _show)
    _tell_failures(answers)


def _mode(**asked: bool) -> str | None:
    named = [name for name, is_asked in asked.items() if is_asked]
    if len(named) > 1:
        raise typer.BadParameter(f"choose one of {', '.join(named)}")
    return named[0] if named else None


def _check_projector(paths: list[Path], projector: Path | None, no_projector: bool) -> None:
    if projector and no_projector:
        raise typer.BadParameter("choose one of --projector, --no-projector")
    if projector and len(paths) > 1:
        raise typer.BadParameter("--projector goes with one model")


async def _import_all(wishes: "list[ImportWish]", *, dry_run: bool) -> "list[ImportAnswer]":
    from octavo.server.cli.importing import Importing

    async with Importing() as importing:
        if len(wishes) == 1:
            return [await importing.run(wishes[0], dry_run)]
        return [await importing.run_or_tell(wish, dry_run) for wish in wishes]


def _confirm(plans: "list[ImportAnswer]", yes: bool) -> None:
    moves = [
        note
        for plan in plans
        for file, note in zip(plan.files, plan.notes, strict=False)
        if file.mode == "move" and not file.present
    ]
    if yes or not moves or not sys.stdin.isatty():
        return
    for note in moves:
        say(note)
    if not typer.confirm("Go on?", default=True, err=True):
        raise typer.Exit(1)


def _show(answers: "list[ImportAnswer]") -> None:
    for result in answers:
        for file, note in zip(result.files, result.notes, strict=False):
            print(
                note
                if result.dry_run or file.present
                else f"{file.target} ({size(file.size_bytes)}, {file.mode})"
            )
        # after the notes on the files comes what is said of them all
        for note in result.notes[len(result.files) :]:
            say(note)


def _tell_failures(answers: "list[ImportAnswer]") -> None:
    failures = [failure for result in answers for failure in result.failures]
    for failure in failures:
        say(f"octavo: {failure.error.message} {failure.error.hint}".rstrip())
    if failures:
        raise typer.Exit(1)
