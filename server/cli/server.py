"""``octavo server``: switch the public port of the service."""

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer

from octavo.server.cli.console import Json, answer, usage

if TYPE_CHECKING:
    from octavo.core.client.types import ServerStatus

server = typer.Typer(help="Open, close and look at the public port.", no_args_is_help=True)


def _origins(cors: list[str] | None) -> list[str] | None:
    from octavo.server.hosts import check_origin_name

    with usage():
        for origin in cors or []:
            check_origin_name(origin)
    return cors


Host = Annotated[str | None, typer.Option("--host", "--bind", help="Address; 127.0.0.1 is this computer.")]
Port = Annotated[int | None, typer.Option("--port", "-p", min=0, max=65535, help="Port.")]
Cors = Annotated[
    list[str] | None, typer.Option("--cors", callback=_origins, help="Let in web pages of this origin.")
]


@server.command("start")
def start(host: Host = None, port: Port = None, cors: Cors = None, json: Json = False) -> None:
    """Open the port; starts the service when none runs, and it stays until the port is closed."""

    async def work() -> "ServerStatus":
        from octavo.server.cli.reach import started

        async with await started() as client:
            return await client.start_server(host=host, port=port, cors=cors or None)

    answer(lambda: asyncio.run(work()), json, _show)


@server.command("stop")
def stop(json: Json = False) -> None:
    """Close the port."""

    async def work() -> "ServerStatus":
        from octavo.server.cli.reach import running

        client = await running()
        if client is None:
            return _off()
        async with client:
            return await client.stop_server()

    answer(lambda: asyncio.run(work()), json, _show)


@server.command("status")
def status(json: Json = False) -> None:
    """Tell whether the port is open, and where."""

    async def work() -> "ServerStatus":
        from octavo.server.cli.reach import running

        client = await running()
        if client is None:
            return _off()
        async with client:
            return await client.server()

    answer(lambda: asyncio.run(work()), json, _show)


def _off() -> "ServerStatus":
    from octavo.core.client.types import ServerStatus
    from octavo.core.config import paths
    from octavo.core.config.settings import SettingsFile

    settings = SettingsFile(paths.home().settings).current.server
    return ServerStatus(False, settings.host, settings.port)


def _show(now: "ServerStatus") -> None:
    place = f"http://{now.host}:{now.port}"
    print(f"The server is on: {place}" if now.is_on else f"The server is off (it would be at {place}).")
