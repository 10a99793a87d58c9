"""What a repository offers, read at one revision: files, sizes and checksums in one request."""

from urllib.parse import quote

import msgspec

from octavo.core.errors import HubUnreachable
from octavo.core.hub.choices import offered
from octavo.core.hub.connection import Connection
from octavo.core.hub.listing import ListedRepository, hub_file, hub_model
from octavo.core.hub.names import checked_repo
from octavo.core.hub.types import Repository

DEFAULT_REVISION = "main"


async def read_repository(connection: Connection, repo: str, revision: str = DEFAULT_REVISION) -> Repository:
    """Read a repository's listing; what it gives has the commit that ``revision`` (a branch, a tag) is now.

    Raises ``InvalidRequest`` for what is no repository's name, and the errors of ``failures``.
    """
    checked_repo(repo)
    path = f"/api/models/{repo}/revision/{quote(revision, safe='')}"
    row = await connection.json(path, ListedRepository, {"blobs": "true"}, repo=repo)
    model = hub_model(row)
    if model is None or not row.sha:
        raise HubUnreachable(
            f"{connection.access.endpoint} doesn't tell what {repo} is.",
            hint="Look at the Hub's address (HF_ENDPOINT).",
            endpoint=connection.access.endpoint,
        )
    offer = offered(file for listed in row.siblings or [] if (file := hub_file(listed)))
    return Repository(
        **msgspec.structs.asdict(model),
        revision=row.sha,
        choices=offer.choices,
        projectors=offer.projectors,
        hidden_files=offer.hidden,
    )
