"""All routes of this dialect."""

from octavo.server.native import (
    chats,
    downloads,
    estimate,
    events,
    hub,
    imports,
    library,
    memory,
    models,
    replies,
    server,
    settings,
    status,
)

ROUTERS = (
    status.router,
    models.router,
    imports.router,
    library.router,
    estimate.router,
    events.router,
    hub.router,
    downloads.router,
    memory.router,
    settings.router,
    server.router,
    chats.router,
    replies.router,
)
