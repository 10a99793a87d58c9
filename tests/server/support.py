"""Run a whole service inside a test, over the fake runtime, with both doors open."""

import asyncio
import functools
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ParamSpec

import httpx2

from octavo.core.client import ServiceClient
from octavo.core.client.endpoint import open_http, read_endpoint
from octavo.core.config.paths import Home
from octavo.server.public import PortOptions
from octavo.server.service import Service
from octavo.server.studio import Studio
from tests.fakes import FakeRuntime

P = ParamSpec("P")
DEADLINE_S = 10.0


def in_loop(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """Run an async test in a loop of its own, under a deadline."""

    @functools.wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        asyncio.run(asyncio.wait_for(test(*args, **kwargs), 60))

    return run


@dataclass
class Served:
    """A running service and ways to reach it."""

    home: Home
    studio: Studio
    runtime: FakeRuntime
    control: httpx2.AsyncClient
    public: httpx2.AsyncClient
    client: ServiceClient
    port: int

    async def chat(self, **fields: object) -> httpx2.Response:
        """Ask for a chat completion on the public port."""
        messages = [{"role": "user", "content": "hi"}]
        return await self.public.post(
            "/v1/chat/completions", json={"model": "fake", "messages": messages, **fields}
        )

    async def complete(self, **fields: object) -> httpx2.Response:
        """Ask for a completion on the public port."""
        return await self.public.post("/v1/completions", json={"model": "fake", "prompt": "hi", **fields})


@asynccontextmanager
async def served(folder: Path, options: PortOptions | None = None) -> AsyncIterator[Served]:
    """Run a service in this folder until the block ends; the public port is any free one."""
    home = Home(folder)
    home.prepare()
    begun: asyncio.Future[Studio] = asyncio.get_running_loop().create_future()

    async def begin(studio: Studio) -> None:
        await studio.public.open(options or PortOptions("127.0.0.1", 0))
        begun.set_result(studio)

    running = asyncio.create_task(Service(home, FakeRuntime).run(begin))  # type: ignore[arg-type]
    both: set[asyncio.Future[Any]] = {begun, running}
    await asyncio.wait(both, timeout=DEADLINE_S, return_when=asyncio.FIRST_COMPLETED)
    if running.done():
        running.result()
    studio = begun.result()
    port = studio.public.status.port
    control = open_http(read_endpoint(home))
    public = httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}", trust_env=False, timeout=DEADLINE_S)
    client = ServiceClient(open_http(read_endpoint(home)))
    try:
        yield Served(home, studio, studio.runtime, control, public, client, port)  # type: ignore[arg-type]
    finally:
        for each in (control, public, client):
            await each.aclose()
        studio.stop()
        await asyncio.wait_for(running, DEADLINE_S)


async def until(is_so: Callable[[], bool], deadline_s: float = DEADLINE_S) -> None:
    """Wait until something is so; fails after the deadline."""
    async with asyncio.timeout(deadline_s):
        while not is_so():
            await asyncio.sleep(0.005)


async def raises(kind: type[Exception], work: Awaitable[object]) -> Any:
    """Give the error that this work must raise."""
    try:
        await work
    except kind as fault:
        return fault
    raise AssertionError(f"{kind.__name__} was not raised")


def events(body: bytes) -> list[Any]:
    """Read a whole stream strictly: every event valid UTF-8 of its own, ``[DONE]`` as text."""
    found = []
    for block in body.split(b"\n\n"):
        if block.startswith(b"data: "):
            data = block[6:].decode("utf-8", "strict")
            found.append(data if data == "[DONE]" else json.loads(data))
    return found


def joined(chunks: list[Any]) -> str:
    """Join the text of a stream's chunks."""
    choices = [chunk["choices"][0] for chunk in chunks if isinstance(chunk, dict) and chunk.get("choices")]
    return "".join(choice.get("text") or choice.get("delta", {}).get("content") or "" for choice in choices)
