"""The client's calls that concern the Hub."""

from collections.abc import Mapping
from urllib.parse import quote, urlencode

import msgspec

from octavo.core.client.asking import Asking
from octavo.core.client.types import EstimateAnswer, HubStatus, TokenAnswer
from octavo.core.hub.card import Card
from octavo.core.hub.search import HubQuery
from octavo.core.hub.types import Repository, SearchPage


class HubCalls(Asking):
    """Search, listings, cards and the token; all raise the Hub's errors and ``ServiceUnavailable``."""

    async def hub_search(self, query: HubQuery) -> SearchPage:
        """Look for repositories with GGUF files."""
        said = {**msgspec.structs.asdict(query), "q": query.text}
        del said["text"]
        return await self._ask("GET", f"/api/v1/hub/search?{_encoded(said)}", SearchPage)

    async def hub_model(self, repo: str, revision: str | None = None, *, verdicts: bool = True) -> Repository:
        """List what a repository offers, judged for the service's machine."""
        query = _encoded({"revision": revision, "verdicts": None if verdicts else "0"})
        return await self._ask("GET", f"/api/v1/hub/models/{_part(repo)}?{query}", Repository)

    async def hub_card(self, repo: str, revision: str | None = None) -> Card:
        """Read a repository's card."""
        query = _encoded({"revision": revision})
        return await self._ask("GET", f"/api/v1/hub/card/{_part(repo)}?{query}", Card)

    async def hub_status(self, *, checks: bool = False) -> HubStatus:
        """Ask how the Hub is reached; with ``checks`` also whose the token is."""
        return await self._ask("GET", f"/api/v1/hub/status?check={int(checks)}", HubStatus)

    async def keep_hub_token(self, token: str) -> TokenAnswer:
        """Have a token kept; raises ``HubRefused`` for one that the Hub doesn't know."""
        return await self._ask("PUT", "/api/v1/hub/token", TokenAnswer, {"token": token})

    async def forget_hub_token(self) -> TokenAnswer:
        """Have the token deleted."""
        return await self._ask("DELETE", "/api/v1/hub/token", TokenAnswer)

    async def estimate_hub(
        self,
        repo: str,
        file: str | None = None,
        fields: Mapping[str, object] | None = None,
        *,
        revision: str | None = None,
        budget_bytes: int | None = None,
        rule_of_thumb: bool = False,
    ) -> EstimateAnswer:
        """Ask what a load of a choice would need; ``file`` is its name, its quant or a file's path."""
        wish = {"repo": repo, "file": file, "revision": revision}
        more = {"budget_bytes": budget_bytes, "rule_of_thumb": rule_of_thumb}
        return await self._ask("POST", "/api/v1/estimate", EstimateAnswer, {**(fields or {}), **wish, **more})


def _encoded(fields: Mapping[str, object]) -> str:
    said = {name: value for name, value in fields.items() if value is not None}
    words = {True: "true", False: "false"}
    return urlencode({name: words[v] if isinstance(v, bool) else v for name, v in said.items()})


def _part(text: str) -> str:
    # with its slashes quoted, so that ".." in it never becomes another route
    return quote(text, safe="")
