"""The one client of the service: windows and commands reach it through here."""

from octavo.core.client.client import ServiceClient

__all__ = ["ServiceClient"]
