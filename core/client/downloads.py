"""The client's calls that concern downloads."""

import re
from typing import Any

from octavo.core.client.asking import Asking
from octavo.core.client.types import DownloadAnswer, DownloadList
from octavo.core.errors import DownloadNotFound
from octavo.core.gguf import printable
from octavo.core.hub.types import Download

_ID = re.compile(r"\w+", re.ASCII)


class DownloadCalls(Asking):
    """Downloads; all raise the Hub's errors, ``DownloadNotFound`` and ``ServiceUnavailable``."""

    async def download(
        self, model: str, choice: str | None = None, *, revision: str | None = None, projector: bool = True
    ) -> DownloadAnswer:
        """Begin a download, or go on with it; ``choice`` is a choice's name, a quant or a file's path."""
        body = {"model": model, "file": choice, "revision": revision, "projector": projector}
        return await self._ask("POST", "/api/v1/models/download", DownloadAnswer, body)

    async def downloads(self) -> list[Download]:
        """List all downloads, the oldest first."""
        return (await self._ask("GET", "/api/v1/downloads", DownloadList)).downloads

    async def download_status(self, id: str) -> DownloadAnswer:
        """Ask how a download stands."""
        return await self._ask("GET", f"/api/v1/models/download/status/{_part(id)}", DownloadAnswer)

    async def pause_download(self, id: str) -> DownloadAnswer:
        """Stop a download for now."""
        return await self._ask("POST", f"/api/v1/models/download/{_part(id)}/pause", DownloadAnswer, {})

    async def resume_download(self, id: str) -> DownloadAnswer:
        """Go on with a download."""
        return await self._ask("POST", f"/api/v1/models/download/{_part(id)}/resume", DownloadAnswer, {})

    async def cancel_download(self, id: str) -> DownloadAnswer:
        """End a download and remove what has come."""
        return await self._ask("POST", f"/api/v1/models/download/{_part(id)}/cancel", DownloadAnswer, {})

    async def forget_download(self, id: str) -> None:
        """Take a download that has ended off the list."""
        await self._ask("DELETE", f"/api/v1/downloads/{_part(id)}", dict[str, Any])


def _part(id: str) -> str:
    if not _ID.fullmatch(id):  # as part of a path it would name another route
        raise DownloadNotFound(f"There is no download {printable(id[:80])}.", hint="octavo get --list")
    return id
