"""``octavo serve``: the service in the foreground, with its public port open."""

import asyncio
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from octavo.server.cli.console import done, say
from octavo.server.cli.server import Cors, Host, Port

if TYPE_CHECKING:
    from octavo.core.client import ServiceClient
    from octavo.core.client.types import ServerStatus

KeyFile = Annotated[Path | None, typer.Option("--api-key-file", help="A file with one key on each line.")]
NoJit = Annotated[bool, typer.Option("--no-jit", help="Serve only what is loaded.")]
WithoutKey = Annotated[bool, typer.Option("--without-key", help="Let the whole network in without a key.")]


def serve(
    host: Host = None,
    port: Port = None,
    api_key_file: KeyFile = None,
    cors: Cors = None,
    no_jit: NoJit = False,
    without_key: WithoutKey = False,
) -> None:
    """Serve the API until Ctrl+C or SIGTERM.

    Where the service runs already (for the window, say), its port is opened, and closed again at the end.
    """
    options = {
        "host": host,
        "port": port,
        "cors": cors or None,
        "jit": False if no_jit else None,
        "without_key": without_key,
    }
    code = done(lambda: _serve(options, api_key_file), False)
    raise typer.Exit(code)


def serve_hidden() -> None:
    """Run the service as the window and the verbs start it."""
    from octavo.server.service import main

    raise typer.Exit(main())


def _serve(options: dict[str, Any], key_file: Path | None) -> int:
    from octavo.core.client.start import ALREADY_RUNNING
    from octavo.core.config import paths
    from octavo.server.auth import read_keys
    from octavo.server.native.server import StartBody, port_options
    from octavo.server.service import run_service
    from octavo.server.studio import Studio

    options["keys"] = read_keys(key_file) if key_file else None

    async def begun(studio: Studio) -> None:
        studio.leases.open("octavo serve")
        _announce(await studio.public.open(port_options(studio, StartBody(**options))))

    code = run_service(paths.home(), begun)
    if code == ALREADY_RUNNING:
        asyncio.run(_attach(options))
        return 0
    return code


async def _attach(options: dict[str, Any]) -> None:
    """Open the port of the service that runs, and close it at the end."""
    from octavo.core.errors import Conflict
    from octavo.server.cli.reach import held, started

    async with await started() as client:
        now = await client.server()
        if now.is_on:
            raise Conflict(
                f"The service is serving already, at http://{now.host}:{now.port}.",
                hint="octavo server stop closes that port.",
            )
        async with held(client):
            say("The service runs already; its port is opened for as long as this runs.")
            _announce(await client.start_server(**options))
            await _until_told(client)
            await client.stop_server()


async def _until_told(client: "ServiceClient") -> None:
    from octavo.core.errors import ServiceUnavailable

    loop, told = asyncio.get_running_loop(), asyncio.Event()
    for kind in (signal.SIGTERM, signal.SIGINT):
        signal.signal(kind, lambda *_: loop.call_soon_threadsafe(told.set))
    following = asyncio.create_task(_drain(client))
    waiting = asyncio.create_task(told.wait())
    await asyncio.wait({following, waiting}, return_when=asyncio.FIRST_COMPLETED)
    following.cancel()
    if not told.is_set():
        waiting.cancel()
        raise ServiceUnavailable("The service ended.")


async def _drain(client: "ServiceClient") -> None:
    async for _event in client.events():
        continue


def _announce(now: "ServerStatus") -> None:
    print(f"Octavo serves at http://{now.host}:{now.port}/v1 (Ctrl+C ends it)", flush=True)
