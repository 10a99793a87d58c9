"""``octavo import``: bring GGUF files into the library."""

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from octavo.server.cli.console import Json, answer, done, say, size, usage

if TYPE_CHECKING:
    from octavo.core.client.types import ImportAnswer


def _place(repo: str | None) -> str | None:
    if repo is not None:
        from octavo.core.library.places import split_place

        with usage():
            split_place(repo)
    return repo


Paths = Annotated[list[Path], typer.Argument(help="GGUF files, or folders of them.")]
Copy = Annotated[bool, typer.Option("--copy", "-c", help="Copy the file.")]
HardLink = Annotated[bool, typer.Option("--hard-link", "-l", help="Link it, on the same disk.")]
Symlink = Annotated[bool, typer.Option("--symlink", "--symbolic-link", "-L", help="Point to it.")]
Move = Annotated[bool, typer.Option("--move", help="Move it, also from another program's folder.")]
Repo = Annotated[
    str | None,
    typer.Option("--repo", "--user-repo", callback=_place, help="publisher/model to file it under."),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Tell what would be done, and do nothing.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Never ask.")]


def import_(
    paths: Paths,
    copy: Copy = False,
    hard_link: HardLink = False,
    symlink: Symlink = False,
    move: Move = False,
    repo: Repo = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    json: Json = False,
) -> None:
    """Bring GGUF files into the library; each header is checked first."""
    mode = _mode(copy=copy, hard_link=hard_link, symlink=symlink, move=move)
    answers = done(lambda: asyncio.run(_import_all(paths, repo, mode, True)), json)
    if not dry_run:
        _confirm(answers, yes)
        answers = done(lambda: asyncio.run(_import_all(paths, repo, mode, False)), json)
    answer(lambda: answers, json, _show)
    _tell_failures(answers)


def _mode(**asked: bool) -> str | None:
    named = [name for name, is_asked in asked.items() if is_asked]
    if len(named) > 1:
        raise typer.BadParameter(f"choose one of {', '.join(named)}")
    return named[0] if named else None


async def _import_all(
    paths: list[Path], repo: str | None, mode: str | None, dry_run: bool
) -> "list[ImportAnswer]":
    if len(paths) == 1:
        return [await _import(paths[0], repo, mode, dry_run)]
    return [await _import_or_tell(path, repo, mode, dry_run) for path in paths]


async def _import_or_tell(path: Path, repo: str | None, mode: str | None, dry_run: bool) -> "ImportAnswer":
    from octavo.core.client.types import ImportAnswer, ImportFailure
    from octavo.core.errors import OctavoError
    from octavo.core.gguf import printable

    try:
        return await _import(path, repo, mode, dry_run)
    except OctavoError as error:
        failure = ImportFailure(printable(path), error.report())
        return ImportAnswer(mode or "", dry_run, [], [], failures=[failure])


async def _import(path: Path, repo: str | None, mode: str | None, dry_run: bool) -> "ImportAnswer":
    from octavo.core.config.paths import home
    from octavo.server.cli.reach import running
    from octavo.server.imports import import_path

    path = path.expanduser().absolute()
    client = await running()
    if client is None:
        return import_path(home(), path, repo, mode, dry_run)
    async with client:
        return await client.import_model(str(path), repo, mode, dry_run)


def _confirm(plans: "list[ImportAnswer]", yes: bool) -> None:
    moves = [
        note
        for plan in plans
        for file, note in zip(plan.files, plan.notes, strict=True)
        if "move" in plan.mode and not file.present
    ]
    if yes or not moves or not sys.stdin.isatty():
        return
    for note in moves:
        say(note)
    if not typer.confirm("Go on?", default=True, err=True):
        raise typer.Exit(1)


def _show(answers: "list[ImportAnswer]") -> None:
    for result in answers:
        for file, note in zip(result.files, result.notes, strict=True):
            print(
                note
                if result.dry_run or file.present
                else f"{file.target} ({size(file.size_bytes)}, {result.mode})"
            )


def _tell_failures(answers: "list[ImportAnswer]") -> None:
    failures = [failure for result in answers for failure in result.failures]
    for failure in failures:
        say(f"octavo: {failure.error.message} {failure.error.hint}".rstrip())
    if failures:
        raise typer.Exit(1)
