"""From what a person names on the Hub to a download, and from a finished download into the library."""

import asyncio
import logging
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from octavo.core.client.types import DownloadAnswer, DownloadStatus
from octavo.core.errors import ErrorReport, HubFileNotFound, OctavoError
from octavo.core.events import DownloadChanged
from octavo.core.hub.choices import pick, pick_projector
from octavo.core.hub.downloads.places import identity, targets
from octavo.core.hub.downloads.queue import Downloads
from octavo.core.hub.downloads.remains import is_there
from octavo.core.hub.reference import Reference
from octavo.core.hub.types import Choice, Download, DownloadWish, Repository
from octavo.core.library.checksums import Checksums
from octavo.core.library.found import look_at_file, together
from octavo.core.library.scan import examine
from octavo.server.listing import tell_library
from octavo.server.studio import Studio

SOURCE = "hub"

# LM Studio's words for our states
_STATUS: dict[str, DownloadStatus] = {"paused": "paused", "done": "completed", "failed": "failed"}

_log = logging.getLogger(__name__)


def make_downloads(studio: Studio) -> Downloads:
    """Make the downloads of a service."""

    async def on_done(download: Download) -> ErrorReport | None:
        await asyncio.to_thread(_note_checksums, studio, download)
        await tell_library(studio)
        return await asyncio.to_thread(_fault_of, targets(studio.home.models, download.wish))

    return Downloads(
        studio.home.models,
        studio.home.root / "downloads",
        studio.hub_reach.access,
        lambda download: studio.hub.publish(DownloadChanged(download=download)),
        on_done,
    )


async def wish_for(studio: Studio, reference: Reference, *, with_projector: bool = True) -> DownloadWish:
    """Find what is meant: a choice by name, else the only one, else the recommended one.

    Raises ``HubFileNotFound`` with ``candidates``.
    """
    repository = await studio.hub_reach.client.repository(reference.repo, reference.revision)
    wanted = reference.wanted
    if wanted and "mmproj" in wanted.lower():
        file = pick_projector(repository, wanted)
        choice = Choice(name=file.path, files=[file], size_bytes=file.size_bytes)
    elif wanted or len(repository.choices) == 1:
        choice = pick(repository, wanted) if wanted else repository.choices[0]
    else:
        judged = await studio.hub_reach.choices.judged(repository, studio.runtime.claims())
        choice = pick(repository, judged.recommended or "")
    return _wish(repository, choice, with_projector)


async def begin_download(
    studio: Studio, reference: Reference, *, with_projector: bool = True
) -> DownloadAnswer:
    """Queue a download, unless all of its files are in the library."""
    wish = await wish_for(studio, reference, with_projector=with_projector)
    if await asyncio.to_thread(is_there, studio.home.models, wish):
        total = sum(file.size_bytes for file in wish.files)
        former = [each for each in studio.downloads.all() if each.id == identity(wish) and each.unreadable]
        return DownloadAnswer(
            status="already_downloaded", total_size_bytes=total, download=former[0] if former else None
        )
    return download_answer(await studio.downloads.add(wish))


def download_answer(download: Download) -> DownloadAnswer:
    """Tell of a download in LM Studio's words, with ours beside them."""
    return DownloadAnswer(
        job_id=download.id,
        status=_STATUS.get(download.state, "failed" if download.state == "cancelled" else "downloading"),
        total_size_bytes=download.total_bytes,
        downloaded_bytes=download.done_bytes,
        bytes_per_second=download.bytes_per_s,
        started_at=datetime.fromtimestamp(download.added_at, UTC).isoformat(timespec="milliseconds"),
        download=download,
    )


def _wish(repository: Repository, choice: Choice, with_projector: bool) -> DownloadWish:
    if choice.missing:
        raise HubFileNotFound(
            f"{repository.id} lacks parts of {choice.name}: {', '.join(choice.missing)}.",
            hint="Take another choice, or tell its publisher.",
            repo=repository.id,
            candidates=[other.name for other in repository.choices if not other.missing],
        )
    publisher, model = repository.id.split("/")
    goes_along = [choice.projector] if with_projector and choice.projector else []
    return DownloadWish(
        repo=repository.id,
        revision=repository.revision,
        name=choice.name,
        files=[*choice.files, *goes_along],
        publisher=publisher,
        model=model,
    )


def _fault_of(files: Sequence[Path]) -> ErrorReport | None:
    """Say why a file that came can't be used, in the library's words; None where all of them can."""
    models = [found for path in files if path.suffix.lower() == ".gguf" and (found := look_at_file(path))]
    return next((fault for found in together(models) if (fault := examine(found)[1])), None)


def _note_checksums(studio: Studio, download: Download) -> None:
    """Keep what the Hub published, so that damage is found later; without it the model works as well."""
    if not download.is_verified:
        return
    checksums = Checksums(studio.home)
    for file, target in zip(download.wish.files, targets(studio.home.models, download.wish), strict=True):
        try:
            if file.sha256:
                checksums.note(target, file.sha256, SOURCE)
        except (OctavoError, ValueError) as error:
            _log.warning("the checksum of %s is not kept: %s", target.name, error)
