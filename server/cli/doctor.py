"""``octavo doctor``: what this machine has, what works, and what to fix."""

import asyncio
from typing import TYPE_CHECKING

from octavo.server.cli.console import Json, answer

if TYPE_CHECKING:
    from octavo.server.cli.checks import Finding


def doctor(json: Json = False) -> None:
    """Tell what this machine has, what works, and what to fix."""

    async def work() -> "list[Finding]":
        from octavo.server.cli.checks import examine

        return await examine()

    answer(lambda: asyncio.run(work()), json, _show)


def _show(findings: "list[Finding]") -> None:
    for finding in findings:
        print(f"{finding.name + ':':<16}{finding.found}")
        if finding.advice:
            print(f"{'':<16}→ {finding.advice}")
