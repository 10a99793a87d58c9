"""All routes of this dialect."""

from octavo.server.native import chats, estimate, events, memory, models, replies, server, settings, status

ROUTERS = (
    status.router,
    models.router,
    estimate.router,
    events.router,
    memory.router,
    settings.router,
    server.router,
    chats.router,
    replies.router,
)
