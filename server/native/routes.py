"""All routes of this dialect."""

from octavo.server.native import chats, events, models, replies, server, settings, status

ROUTERS = (
    status.router,
    models.router,
    events.router,
    settings.router,
    server.router,
    chats.router,
    replies.router,
)
