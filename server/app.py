"""Make the app that both doors serve."""

from fastapi import FastAPI

from octavo.core import __version__
from octavo.server.failures import answer_errors
from octavo.server.native import routes as native
from octavo.server.openai import routes as openai
from octavo.server.studio import Studio


def create_app(studio: Studio) -> FastAPI:
    """Put the routes of all dialects together; a path with a wrong slash is unknown, never redirected."""
    app = FastAPI(
        title="Octavo",
        version=__version__,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    app.state.studio = studio
    answer_errors(app)
    for router in (*native.ROUTERS, *openai.ROUTERS):
        app.include_router(router)
    return app
