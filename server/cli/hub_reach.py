"""Reach the Hub from a verb: through the running service, which knows what is loaded, else by itself."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cached_property

from octavo.core.client import ServiceClient
from octavo.core.config.settings import SettingsFile
from octavo.core.runtime.assess import Assessor
from octavo.server.cli.reach import checked_home, running
from octavo.server.hub_reach import HubReach


class Reached:
    """The service, if one runs, and the Hub as this process reaches it."""

    def __init__(self, service: ServiceClient | None) -> None:
        self.service = service

    @cached_property
    def own(self) -> HubReach:
        """The Hub without the service."""
        home = checked_home()
        settings = SettingsFile(home.settings)
        return HubReach(home, settings, lambda: Assessor(home, settings))

    async def aclose(self) -> None:
        """Close all connections."""
        if self.service is not None:
            await self.service.aclose()
        if "own" in self.__dict__:
            await self.own.client.aclose()


@asynccontextmanager
async def reached() -> AsyncIterator[Reached]:
    """Reach the service or the Hub for one verb."""
    hub = Reached(await running())
    try:
        yield hub
    finally:
        await hub.aclose()
