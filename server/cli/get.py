"""``octavo get``: download a model from the Hub, as ``lms get`` does; also the list of downloads."""

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from octavo.server.cli.choosing import Asking, chosen, words
from octavo.server.cli.console import Json, answer, done, fail, print_json, say, utf8
from octavo.server.cli.downloads_words import Progress, show_all, show_end

if TYPE_CHECKING:
    from octavo.core.client import ServiceClient
    from octavo.core.client.types import DownloadAnswer
    from octavo.core.hub.types import Download

POLL_S = 0.25
ENDED = ("done", "failed", "paused", "cancelled")


@dataclass(frozen=True)
class _Told:
    """All downloads; without a service none of them is at work."""

    downloads: "list[Download]"
    is_at_work: bool


def _no_mlx(asked: bool) -> bool:
    if asked:
        raise typer.BadParameter("Octavo runs GGUF models only; MLX models are for Apple's framework")
    return asked


def _id(said: str | None) -> str | None:
    if said is not None and not said.strip():
        raise typer.BadParameter("name a download: octavo get --list tells their ids")
    return utf8(said)


Name = Annotated[
    list[str] | None,
    typer.Argument(metavar="[REPO[@QUANT]]", callback=words, help="Or an address on the Hub, or words."),
]
Quant = Annotated[str | None, typer.Option("--quant", callback=utf8, help="The quant to take: Q4_K_M.")]
File = Annotated[str | None, typer.Option("--file", callback=utf8, help="A file of the repository.")]
NoProjector = Annotated[bool, typer.Option("--no-projector", help="Leave the image part (mmproj) out.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Never ask: take what is recommended.")]
Select = Annotated[bool, typer.Option("--select", help="Ask which one, also where one is recommended.")]
Always = Annotated[bool, typer.Option("--always-show-all-results", "-a", help="List all that fits first.")]
Limit = Annotated[int, typer.Option("--limit", "-n", min=1, max=100, help="How many results of a search.")]
Gguf = Annotated[bool, typer.Option("--gguf", help="GGUF models; there are no others here.")]
Mlx = Annotated[bool, typer.Option("--mlx", callback=_no_mlx, help="Refused: see --gguf.")]
List = Annotated[bool, typer.Option("--list", help="List the downloads.")]
Pause = Annotated[str | None, typer.Option("--pause", metavar="ID", callback=_id, help="Pause a download.")]
Resume = Annotated[
    str | None, typer.Option("--resume", metavar="ID", callback=_id, help="Go on with a download.")
]
Cancel = Annotated[
    str | None, typer.Option("--cancel", metavar="ID", callback=_id, help="End it and remove what came.")
]


def get(
    name: Name = None,
    quant: Quant = None,
    file: File = None,
    no_projector: NoProjector = False,
    yes: Yes = False,
    select: Select = False,
    always: Always = False,
    limit: Limit = 10,
    gguf: Gguf = False,
    mlx: Mlx = False,
    list_: List = False,
    pause: Pause = None,
    resume: Resume = None,
    cancel: Cancel = None,
    json: Json = False,
) -> None:
    """Download a model; it goes on in the background when this command is stopped."""
    del gguf, mlx  # said for lms's sake
    orders = {"pause": pause, "resume": resume, "cancel": cancel}
    given = [(order, id) for order, id in orders.items() if id is not None]
    if quant and file:
        raise typer.BadParameter("give --quant or --file, not both")
    if len(given) + list_ + bool(name) > 1:
        raise typer.BadParameter("download, --list, --pause, --resume and --cancel are one at a time")
    if list_:
        _list(json)
    elif given:
        answer(lambda: asyncio.run(_order(*given[0])), json, lambda told: _show_order(given[0][0], told))
    elif not name:
        raise typer.BadParameter("name a repository, such as Qwen/Qwen3-8B-GGUF")
    else:
        text = " ".join(name)
        asking = Asking(yes=yes, select=select, lists=always, limit=limit)
        ended = done(lambda: asyncio.run(_get(text, quant or file, not no_projector, asking)), json)
        _finish(ended, json)


async def _get(name: str, choice: str | None, projector: bool, asking: Asking) -> "DownloadAnswer":
    from octavo.server.cli.reach import held, started

    async with await started() as client, held(client):
        repo, wanted, revision = await chosen(client, name, choice, asking)
        told = await client.download(repo, wanted, revision=revision, projector=projector)
        return await _followed(client, told)


async def _followed(client: "ServiceClient", told: "DownloadAnswer") -> "DownloadAnswer":
    progress = Progress()
    try:
        while told.download is not None and told.download.state not in ENDED:
            progress.show(told.download)
            await asyncio.sleep(POLL_S)
            told = await client.download_status(told.download.id)
        progress.end(told.download)
    except asyncio.CancelledError:
        progress.end(told.download)
        say("The download goes on in the background. octavo get --list tells how it stands.")
        raise
    return told


def _finish(ended: "DownloadAnswer", as_json: bool) -> None:
    from octavo.core.errors import from_report

    download = ended.download
    if download is not None and download.state != "done":
        if download.error is not None:
            fail(from_report(download.error), as_json)
        say(f"The download is {download.state}.")
    answer(lambda: ended, as_json, show_end)
    if download is not None and (download.state != "done" or download.unreadable is not None):
        raise typer.Exit(1)


def _list(as_json: bool) -> None:
    told = done(lambda: asyncio.run(_all()), as_json)
    if as_json:
        print_json(told.downloads)
    else:
        show_all(told.downloads, is_at_work=told.is_at_work)


async def _all() -> _Told:
    from octavo.core.config.paths import home
    from octavo.core.hub.downloads.records import Records
    from octavo.core.hub.downloads.remains import as_left
    from octavo.server.cli.reach import running

    client = await running()
    if client is None:
        where = home()
        recorded = Records(where.root / "downloads").read_all()
        return _Told([as_left(where.models, each) for each in recorded], is_at_work=False)
    async with client:
        return _Told(await client.downloads(), is_at_work=True)


async def _order(order: str, id: str) -> "Download":
    from octavo.server.cli.reach import started

    async with await started() as client:
        calls = {
            "pause": client.pause_download,
            "resume": client.resume_download,
            "cancel": client.cancel_download,
        }
        told = await calls[order](id)
    assert told.download is not None
    return told.download


def _show_order(order: str, told: "Download") -> None:
    show_all([told])
    is_obeyed = {
        "pause": told.state == "paused",
        "resume": told.state not in ("done", "paused", "cancelled"),
        "cancel": told.state == "cancelled",
    }
    if not is_obeyed[order]:
        say(f"Nothing was done: the download is {told.state}.")
