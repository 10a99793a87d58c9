"""Downloads in tests: made over the Hub double, followed, and waited for under a deadline."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from octavo.core.hub.downloads.protocol import Patience
from octavo.core.hub.downloads.queue import Downloads
from octavo.core.hub.types import Access, Download, DownloadWish, HubFile
from tests.fixtures.hub_double import HubDouble

DEADLINE_S = 40.0
HASTY = Patience(stall_s=1.0, first_wait_s=0.1, longest_wait_s=0.5, tries=5)
ENDED = ("done", "failed", "paused", "cancelled")


@dataclass
class Bench:
    """Downloads into a folder of a test, and all that was told of them."""

    folder: Path
    downloads: Downloads
    told: list[Download] = field(default_factory=list)
    done: list[Download] = field(default_factory=list)

    @property
    def models(self) -> Path:
        """The library's folder."""
        return self.folder / "models"

    def target(self, repo: str, path: str = "model-Q4_K_M.gguf") -> Path:
        """Give the place of a file."""
        return self.models / repo / path

    async def get(self, wish: DownloadWish) -> Download:
        """Download and give how it ended."""
        return await self.ended((await self.downloads.add(wish)).id)

    async def ended(self, id: str, deadline_s: float = DEADLINE_S) -> Download:
        """Wait until a download has ended, well or not."""
        await self.until(lambda: self.downloads.find(id).state in ENDED, deadline_s)
        return self.downloads.find(id)

    async def until(self, is_so: Callable[[], bool], deadline_s: float = DEADLINE_S) -> None:
        """Wait until something is so; tells how all stands when it isn't in time."""
        try:
            async with asyncio.timeout(deadline_s):
                while not is_so():
                    await asyncio.sleep(0.005)
        except TimeoutError:
            raise AssertionError(f"not in time: {self.downloads.all()}") from None

    def parts(self) -> list[Path]:
        """List the part files that are left."""
        return sorted(self.models.rglob("*.download"))

    def check_progress(self, id: str, *, restarts: bool = False) -> None:
        """Fail where a figure went backwards or beyond the whole."""
        counts = [told.done_bytes for told in self.told if told.id == id]
        total = self.downloads.find(id).total_bytes
        assert all(0 <= count <= total for count in counts)
        assert restarts or counts == sorted(counts)


@asynccontextmanager
async def bench(folder: Path, hub: HubDouble | str, **options: Any) -> AsyncIterator[Bench]:
    """Make downloads, and end them; options are those of ``Downloads`` and of ``Access``."""
    endpoint = hub if isinstance(hub, str) else hub.endpoint
    said = {name: options.pop(name) for name in Access.__struct_fields__ if name in options}
    access = options.pop("access", None) or (lambda: Access(**{"endpoint": endpoint, **said}))
    options.setdefault("patience", HASTY)
    (folder / "models").mkdir(parents=True, exist_ok=True)
    told: list[Download] = []
    done: list[Download] = []

    async def on_done(download: Download) -> None:
        done.append(download)

    models = options.pop("models", folder / "models")
    downloads = Downloads(models, folder / "downloads", access, told.append, on_done, **options)
    await downloads.start()
    try:
        yield Bench(folder, downloads, told, done)
    finally:
        await asyncio.wait_for(downloads.close(), 10)


def wish_of(hub: HubDouble, repo: str, paths: list[str] | None = None) -> DownloadWish:
    """Wish for all GGUF files of a repository of the double, or some."""
    rows = [row for row in hub.repositories[repo].tree() if row["path"].endswith(".gguf")]
    files = [
        HubFile(path=row["path"], size_bytes=row["size"], sha256=row.get("lfs", {}).get("oid"))
        for row in rows
        if (row["path"] in paths if paths else "._" not in row["path"])
    ]
    publisher, model = repo.split("/")
    return DownloadWish(
        repo=repo, revision="c" * 40, name="Q4_K_M", files=files, publisher=publisher, model=model
    )
