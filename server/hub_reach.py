"""The Hub as this home reaches it: for the routes of the service, and for verbs where none runs."""

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property

from octavo.core.client.types import HubStatus, TokenAnswer
from octavo.core.config.paths import Home
from octavo.core.config.settings import SettingsFile
from octavo.core.errors import HubUnreachable
from octavo.core.hub.access import current_access
from octavo.core.hub.choices import pick
from octavo.core.hub.client import HubClient
from octavo.core.hub.reference import Reference
from octavo.core.hub.tokens import Tokens, checked_token
from octavo.core.hub.types import Access
from octavo.core.library.models import Model
from octavo.core.memory.budget import Claim
from octavo.core.memory.types import Report
from octavo.core.runtime.assess import Assessor
from octavo.core.runtime.hub_choices import HubChoices


class HubReach:
    """The token, the client and the judge of one home; belongs to one event loop."""

    def __init__(
        self,
        home: Home,
        settings: SettingsFile,
        assessor: Callable[[], Assessor],
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self._settings = settings
        self._environ = os.environ if environ is None else environ
        self.tokens = Tokens(home, self._environ)
        self.client = HubClient(self.access, home.cache)
        self._assessor = assessor

    @cached_property
    def choices(self) -> HubChoices:
        """The judge of what repositories offer."""
        return HubChoices(self.client, self._assessor())

    def access(self) -> Access:
        """Tell how the Hub is reached now; may block. Raises ``InvalidConfig``."""
        return current_access(self._settings.current.hub, self._environ, self.tokens)

    @staticmethod
    def access_of(home: Home) -> Callable[[], Access]:
        """Give a function that tells how the Hub is reached by this home; it may block."""
        settings = SettingsFile(home.settings)
        return lambda: current_access(settings.current.hub, os.environ, Tokens(home, os.environ))

    async def estimated(
        self,
        reference: Reference,
        fields: Mapping[str, object],
        claims: Sequence[Claim] = (),
        *,
        budget_bytes: int | None = None,
    ) -> tuple[Model, Report]:
        """Say what a load of something on the Hub would need; without a choice, of the recommended one.

        Raises ``HubFileNotFound`` with ``candidates`` where there is none.
        """
        repository = await self.client.repository(reference.repo, reference.revision)
        wanted = reference.wanted
        if wanted is None and len(repository.choices) != 1:
            wanted = (await self.choices.judged(repository, claims)).recommended
        if wanted is None:
            wanted = repository.choices[0].name if len(repository.choices) == 1 else ""
        choice = pick(repository, wanted)
        return await self.choices.estimated(repository, choice, fields, claims, budget_bytes=budget_bytes)

    async def status(self, *, checks: bool = False) -> HubStatus:
        """Tell how the Hub is reached; with ``checks`` it is asked whose token that is."""
        access = await self.client.access()
        place = await asyncio.to_thread(self.tokens.where)
        asks = checks and access.token is not None
        return HubStatus(
            endpoint=access.endpoint,
            is_offline=access.is_offline,
            uses_proxy=access.proxy is not None,
            token=place,
            account=await self.client.account() if asks else None,
        )

    async def log_in(self, token: str) -> TokenAnswer:
        """Keep a token, after the Hub was asked whose it is; raises ``HubRefused`` for one it doesn't know.

        ``InvalidRequest`` for what can't be one comes before anybody is asked. Where the Hub can't be asked
        the token is kept all the same.
        """
        token = checked_token(token)
        try:
            account = await self.client.account(token)
        except HubUnreachable:
            account = None
        return TokenAnswer(await asyncio.to_thread(self.tokens.keep, token), account)

    async def log_out(self) -> TokenAnswer:
        """Delete the token that is kept; tells where one still comes from."""
        return TokenAnswer(await asyncio.to_thread(self.tokens.forget))
