"""What the routes work with: the parts of the service, put together once."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import cast

from fastapi import Request

from octavo.core.chats.store import ChatStore
from octavo.core.config.paths import Home
from octavo.core.config.settings import SettingsFile
from octavo.core.hub.downloads.queue import Downloads
from octavo.core.library.catalog import Catalog
from octavo.core.runtime.replies import Replies
from octavo.core.runtime.runtime import Runtime
from octavo.server.hub import Hub
from octavo.server.hub_reach import HubReach
from octavo.server.leases import Leases
from octavo.server.public import PublicPort
from octavo.server.running_imports import RunningImports


@dataclass(slots=True)
class Studio:
    """The parts of one service. ``stop`` ends the service soon, after what is being answered."""

    home: Home
    settings: SettingsFile
    catalog: Catalog
    runtime: Runtime
    chats: ChatStore
    replies: Replies
    hub: Hub
    leases: Leases
    public: PublicPort
    stop: Callable[[], None]
    hub_reach: HubReach = field(init=False)
    downloads: Downloads = field(init=False)  # made by the service
    imports: RunningImports = field(default_factory=RunningImports)
    changing_settings: asyncio.Lock = field(default_factory=asyncio.Lock)
    told_library: int = 0  # the generation of the catalog that everyone was told of last

    def __post_init__(self) -> None:
        """Put together what only these parts make."""
        self.hub_reach = HubReach(self.home, self.settings, lambda: self.runtime.assessor)


def studio_of(request: Request) -> Studio:
    """Give the studio that serves this request."""
    return cast(Studio, request.app.state.studio)
