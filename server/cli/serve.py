"""``octavo serve``: the service in the foreground, with its public port open."""

import asyncio
import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from octavo.server.cli.console import Json, done, say
from octavo.server.cli.server import Cors, Host, Port

if TYPE_CHECKING:
    from octavo.core.client import ServiceClient
    from octavo.core.client.types import ServerStatus, StreamEvent

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
    json: Json = False,
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
    code = done(lambda: _serve(options, api_key_file, json), json)
    raise typer.Exit(code)


def serve_hidden() -> None:
    """Run the service as the window and the verbs start it."""
    from octavo.server.service import main

    raise typer.Exit(main())


def _serve(options: dict[str, Any], key_file: Path | None, as_json: bool) -> int:
    from octavo.core.client.start import ALREADY_RUNNING
    from octavo.core.config import paths
    from octavo.server.auth import read_keys
    from octavo.server.native.server import StartBody, port_options
    from octavo.server.service import run_service
    from octavo.server.studio import Studio

    options["keys"] = read_keys(key_file) if key_file else None

    async def begun(studio: Studio) -> None:
        studio.leases.open("octavo serve")
        _announce(await studio.public.open(port_options(studio, StartBody(**options))), as_json)

    code = run_service(paths.home(), begun)
    if code == ALREADY_RUNNING:
        asyncio.run(_attach(options, as_json))
        return 0
    return code


async def _attach(options: dict[str, Any], as_json: bool) -> None:
    """Open the port of the service that runs, and close it at the end, unless someone else did."""
    from octavo.server.cli.reach import held, started

    closed = asyncio.Event()

    def on_event(event: "StreamEvent") -> None:
        if _is_closing(event):
            closed.set()

    async with await started() as client:
        await _refuse_second(client)
        async with held(client, on_event):
            say("The service runs already; its port is opened for as long as this runs.")
            _announce(await client.start_server(**options), as_json)
            if await _told_before(closed, client):
                await client.stop_server()
            else:
                say("The port was closed by another program (octavo server stop, or the window); this ends.")


async def _refuse_second(client: "ServiceClient") -> None:
    from octavo.core.errors import Conflict

    now = await client.server()
    if now.is_on:
        raise Conflict(
            f"The service is serving already, at http://{now.host}:{now.port}.",
            hint="octavo server stop closes that port.",
        )


def _is_closing(event: "StreamEvent") -> bool:
    from octavo.core.events import ServerChanged

    return isinstance(event, ServerChanged) and not event.is_on


async def _told_before(closed: asyncio.Event, client: "ServiceClient") -> bool:
    """Wait until a signal tells to end (True) or the port is closed; raises when the service ends."""
    from octavo.core.errors import ServiceUnavailable

    loop, told = asyncio.get_running_loop(), asyncio.Event()
    for kind in (signal.SIGTERM, signal.SIGINT):
        signal.signal(kind, lambda *_: loop.call_soon_threadsafe(told.set))
    waiting = [asyncio.create_task(work) for work in (told.wait(), closed.wait(), _drain(client))]
    await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    if not told.is_set() and not closed.is_set():
        raise ServiceUnavailable("The service ended.")
    return told.is_set()


async def _drain(client: "ServiceClient") -> bool:
    async for _event in client.events():
        continue
    return True


def _announce(now: "ServerStatus", as_json: bool) -> None:
    if not as_json:
        print(f"Octavo serves at http://{now.host}:{now.port}/v1 (Ctrl+C ends it)", flush=True)
        return
    import msgspec

    place = {"url": f"http://{now.host}:{now.port}/v1", "host": now.host, "port": now.port}
    print(msgspec.json.encode({**place, "pid": os.getpid()}).decode(), flush=True)
