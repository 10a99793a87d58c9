"""What the client's parts need of it: one question, one typed answer."""

from abc import ABC, abstractmethod
from typing import TypeVar

Answer = TypeVar("Answer")


class Asking(ABC):
    """Something that can ask the service; ``ServiceClient``, of which the parts are mixed together."""

    @abstractmethod
    async def _ask(self, method: str, path: str, kind: type[Answer], body: object = None) -> Answer:
        """Send a request and decode its answer; raises the error that the service raised."""
