"""``octavo ps``: list what is loaded."""

import asyncio
from typing import TYPE_CHECKING

from octavo.server.cli.console import Json, amount, done, print_json, print_table

if TYPE_CHECKING:
    from octavo.core.client.types import ModelRecord
    from octavo.core.events import FiguresSampled, InstanceStatus


def ps(json: Json = False) -> None:
    """List the models that are loaded, and what they use."""
    figures: list[FiguresSampled] = []
    models: list[ModelRecord] = []

    async def work() -> "list[InstanceStatus]":
        from octavo.server.cli.reach import running

        client = await running()
        if client is None:
            return []
        async with client:
            figures.append(await client.figures())
            loaded = await client.instances()
            models.extend(await client.models() if loaded and json else [])
            return loaded

    loaded = done(lambda: asyncio.run(work()), json)
    if json:
        from octavo.server.cli.lms_shapes import running as as_lms

        print_json(as_lms(loaded, models))
    else:
        _show(loaded, figures)


def _show(loaded: "list[InstanceStatus]", figures: "list[FiguresSampled]") -> None:
    if not loaded:
        print("Nothing is loaded.")
        return
    used = {each.instance: each.rss_bytes for sample in figures for each in sample.instances}
    head = ("NAME", "MODEL", "STATE", "CONTEXT", "MEMORY", "ACTIVE", "QUEUED", "TTL", "")
    print_table(head, (_row(status, used.get(status.instance, 0)) for status in loaded))


def _row(status: "InstanceStatus", rss_bytes: int) -> tuple[str, ...]:
    state = f"loading {status.share:.0%}" if status.state == "loading" else status.state
    ttl = "" if status.ttl_s is None else f"{max(0.0, status.ttl_s - status.idle_s):.0f} s"
    fault = status.error.message if status.error else ""
    counts = (str(status.active), str(status.queued))
    return status.instance, status.model, state, str(status.context), amount(rss_bytes), *counts, ttl, fault
