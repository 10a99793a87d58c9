"""A client of the Hub over real HTTP, as the settings and the environment say."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from octavo.core.config.paths import Home
from octavo.core.config.settings import Hub
from octavo.core.hub.access import current_access
from octavo.core.hub.client import HubClient

TOKEN = "hf_thisIsTheToken"


@asynccontextmanager
async def reached(
    folder: Path, endpoint: str, settings: Hub | None = None, **environ: str
) -> AsyncIterator[HubClient]:
    """Reach the Hub at ``endpoint`` with the cache in ``folder``."""
    said = {"HOME": str(folder), "HF_ENDPOINT": endpoint, **environ}
    client = HubClient(lambda: current_access(settings or Hub(), said, Home(folder)), folder / "cache")
    try:
        yield client
    finally:
        await client.aclose()
