"""All routes of this dialect."""

from octavo.server.openai import chat, completions, models

ROUTERS = (models.router, chat.router, completions.router)
