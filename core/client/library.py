"""The library's routes, as methods of the service's client."""

from urllib.parse import quote, urlencode

from octavo.core.client.asking import Asking
from octavo.core.client.types import ModelList, ModelRecord, VerifyAnswer
from octavo.core.library.fingerprint import Duplicates
from octavo.core.library.removal import Removal


class LibraryCalls(Asking):
    """What a client asks of the library; mixed into ``ServiceClient``, which gives ``_ask``."""

    async def models(self, text: str = "") -> list[ModelRecord]:
        """List the library, or what of it holds every word of ``text``."""
        query = f"?{urlencode({'q': text})}" if text else ""
        return (await self._ask("GET", f"/api/v1/models{query}", ModelList)).models

    async def duplicates(self) -> list[Duplicates]:
        """List the models that are on disk more than once."""
        return await self._ask("GET", "/api/v1/models/duplicates", list[Duplicates])

    async def verify_model(self, model: str, *, accept: bool = False) -> VerifyAnswer:
        """Read a model whole and compare its checksums; ``accept`` takes a change as right.

        ``VerifyProgressed`` events tell how far it is; cancelling the call ends it.
        """
        return await self._ask(
            "POST", "/api/v1/models/verify", VerifyAnswer, {"model": model, "accept": accept}
        )

    async def choose_projector(self, model: str, projector: str) -> ModelRecord:
        """Have a GGUF file's path, ``none``, or what the headers say (``auto``) go with a model."""
        body = {"model": model, "projector": projector}
        return await self._ask("POST", "/api/v1/models/projector", ModelRecord, body)

    async def remove_model(
        self, model: str, *, dry_run: bool = False, force: bool = False, permanently: bool = False
    ) -> Removal:
        """Delete a model by its whole id, into the trash where there is one; ``dry_run`` only tells.

        Raises ``InstanceBusy`` for a loaded one, unless ``force`` unloads it, and ``ForeignFile`` for another
        program's.
        """
        said = {"dry_run": dry_run, "force": force, "permanently": permanently}
        query = urlencode({name: "1" for name, on in said.items() if on})
        path = f"/api/v1/models/{quote(model, safe='')}"
        return await self._ask("DELETE", f"{path}?{query}" if query else path, Removal)
