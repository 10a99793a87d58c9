"""Which repository of the Hub a file came from, told by its name."""

import asyncio
import re
from collections.abc import Callable
from pathlib import Path

from octavo.core.errors import HubRefused, NotFound
from octavo.core.hub.client import HubClient
from octavo.core.hub.search import HubQuery
from octavo.core.hub.types import Access, HubModel

# who converts most models, in the order in which people trust them; others by their downloads
KNOWN_PUBLISHERS = ("lmstudio-community", "bartowski", "unsloth", "ggml-org")
MOST_SEARCHES = 4
MOST_LISTINGS = 6

_QUANT_ENDING = re.compile(r"[-_. ]+(UD[-_.])?(I?Q\d\w*|BF16|F16|F32|MXFP4\w*)$", re.IGNORECASE)


async def origin_of(client: HubClient, file_name: str) -> tuple[str, str] | None:
    """Give (publisher, model) of a repository that has a file of this name, or None.

    The name is searched for without its quant, and then shortened part by part.
    """
    looked_at: set[str] = set()
    for text in _searches(file_name):
        page = await client.search(HubQuery(text=text, limit=MOST_LISTINGS))
        for model in sorted(page.models, key=_rank):
            if model.id not in looked_at and len(looked_at) < MOST_LISTINGS:
                looked_at.add(model.id)
                if await _has(client, model, file_name):
                    publisher, _, name = model.id.partition("/")
                    return publisher, name
    return None


def proposer(access: Callable[[], Access], cache: Path) -> Callable[[str], tuple[str, str] | None]:
    """Give ``origin_of`` for a thread without an event loop; it raises what asking the Hub raises."""

    async def ask(file_name: str) -> tuple[str, str] | None:
        async with HubClient(access, cache) as client:
            return await origin_of(client, file_name)

    return lambda file_name: asyncio.run(ask(file_name))


def _searches(file_name: str) -> list[str]:
    stem = re.sub(r"\.gguf$", "", file_name, flags=re.IGNORECASE)
    text = _QUANT_ENDING.sub("", re.sub(r"-\d{5}-of-\d{5}$", "", stem))
    found: list[str] = []
    while text and len(found) < MOST_SEARCHES:
        found.append(text)
        text = re.sub(r"[-_. ]*[^-_. ]+$", "", text)
    return found


def _rank(model: HubModel) -> tuple[int, int]:
    known = model.author in KNOWN_PUBLISHERS
    return (KNOWN_PUBLISHERS.index(model.author) if known else len(KNOWN_PUBLISHERS), -model.downloads)


async def _has(client: HubClient, model: HubModel, file_name: str) -> bool:
    try:
        repository = await client.repository(model.id)
    except (HubRefused, NotFound):  # gated, or gone since it was listed
        return False
    files = [file for choice in repository.choices for file in choice.files] + repository.projectors
    return any(file.path.rsplit("/", 1)[-1].casefold() == file_name.casefold() for file in files)
