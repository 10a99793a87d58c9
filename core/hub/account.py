"""Whose token it is."""

import msgspec

from octavo.core.hub.connection import Connection
from octavo.core.hub.types import Access


class _Account(msgspec.Struct, frozen=True):
    name: str


async def account_of(connection: Connection) -> str:
    """Ask for the name of the account that the token is of; raises ``HubRefused`` for a wrong one."""
    return (await connection.json("/api/whoami-v2", _Account)).name


def with_token(access: Access, token: str) -> Access:
    """Give the same access with another token."""
    return msgspec.structs.replace(access, token=token)
