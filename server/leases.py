"""Who needs the service: it ends by itself once nobody has for a while."""

import asyncio
import os
import secrets
from collections.abc import Callable

GRACE_VARIABLE = "OCTAVO_LEASE_GRACE_S"
GRACE_S = 10.0
TICK_S = 0.5


class Leases:
    """The leases that windows and foreground commands hold, each by an id."""

    def __init__(self) -> None:
        self._kinds: dict[str, str] = {}

    def open(self, kind: str) -> str:
        """Begin a lease and give its id."""
        lease = secrets.token_urlsafe(16)
        self._kinds[lease] = kind
        return lease

    def close(self, lease: str) -> None:
        """End a lease."""
        self._kinds.pop(lease, None)

    def holds(self, lease: str) -> bool:
        """Tell whether a lease is alive."""
        return lease in self._kinds

    def kinds(self) -> list[str]:
        """List what kinds of lease are alive."""
        return sorted(self._kinds.values())


def grace_s() -> float:
    """Give the seconds that the service stays without a lease."""
    return float(os.environ.get(GRACE_VARIABLE, GRACE_S))


async def nobody_needs(holders: Callable[[], list[str]], grace: float) -> None:
    """Return once there was no holder for ``grace`` seconds on end."""
    clock = asyncio.get_running_loop().time
    alone_since: float | None = None
    while alone_since is None or clock() - alone_since < grace:
        await asyncio.sleep(min(TICK_S, grace / 4))
        if holders():
            alone_since = None
        elif alone_since is None:
            alone_since = clock()
