"""Search the Hub for repositories with GGUF files, a page at a time.

Route and parameters: ``list_models`` in huggingface_hub's hf_api.py. The Hub has no filter for an
architecture and rounds sizes, so those are looked at here as well, over as many of its pages as it takes.
"""

import base64
import binascii
import math
from typing import Literal
from urllib.parse import parse_qsl, urlsplit

import msgspec

from octavo.core.errors import InvalidRequest
from octavo.core.hub.connection import Connection, Page
from octavo.core.hub.listing import ListedModel, hub_model
from octavo.core.hub.types import HubModel, SearchPage

Sort = Literal["downloads", "likes", "modified", "trending", "created"]

_SORTS: dict[Sort, str] = {
    "downloads": "downloads",
    "likes": "likes",
    "modified": "lastModified",
    "trending": "trendingScore",
    "created": "createdAt",
}
_EXPANDED = ["author", "downloads", "likes", "gated", "private", "lastModified", "tags", "gguf"]
MOST_RESULTS = 100
MOST_PAGES = 5
"""Pages of the Hub that are read for one of ours, when few of its results fit."""

_BILLION = 1_000_000_000
_PAGE_KEYS = frozenset({"cursor", "skip", "p", "page"})


class HubQuery(msgspec.Struct, frozen=True, kw_only=True):
    """What to look for; ``page`` is a former page's ``next_page``, with all else the same as then.

    ``architecture`` is a GGUF header's (``llama``, ``qwen3moe``), part of it is enough.
    """

    text: str = ""
    author: str | None = None
    sort: Sort = "downloads"
    gated: bool | None = None
    architecture: str | None = None
    min_parameters: int | None = None
    max_parameters: int | None = None
    limit: int = 20
    page: str | None = None

    @property
    def filters_here(self) -> bool:
        """Whether some of the Hub's results may not fit."""
        return bool(self.architecture) or self.min_parameters is not None or self.max_parameters is not None


async def search(connection: Connection, query: HubQuery) -> SearchPage:
    """Look for repositories; gives at least one page of the Hub's, and about ``limit`` results."""
    found: dict[str, HubModel] = {}
    params = {**_params(query), **_page_params(query.page)}
    for _ in range(MOST_PAGES):
        page = await connection.page("/api/models", params)
        found |= {model.id: model for model in _models(connection, page) if fits(model, query)}
        mark = _mark(page)
        if mark is None or len(found) >= _limit(query) or not query.filters_here:
            break
        params |= _page_params(mark)
    return SearchPage(models=list(found.values()), next_page=mark)


def fits(model: HubModel, query: HubQuery) -> bool:
    """Tell whether a result is what was asked for; what the Hub doesn't tell of it is let through."""
    if query.gated is not None and model.gated != query.gated:
        return False
    wanted = (query.architecture or "").strip().casefold()
    if wanted and wanted not in (model.architecture or "").casefold():
        return False
    least, most = query.min_parameters or 0, query.max_parameters
    count = model.parameters
    return count is None or (least <= count and (most is None or count <= most))


def _params(query: HubQuery) -> dict[str, str | list[str]]:
    limit = MOST_RESULTS if query.filters_here else _limit(query)
    params: dict[str, str | list[str]] = {
        "filter": "gguf",
        "sort": _SORTS[query.sort],
        "limit": str(limit),
        "expand": _EXPANDED,
    }
    if text := query.text.strip():
        params["search"] = text
    if query.author:
        params["author"] = query.author.strip()
    if query.gated is not None:
        params["gated"] = str(query.gated).lower()
    if sizes := _sizes(query):
        params["num_parameters"] = sizes
    return params


def _sizes(query: HubQuery) -> str:
    """Write the sizes in whole billions, as the Hub's own pages do, wide enough; ``fits`` is exact."""
    parts = []
    if query.min_parameters:
        parts.append(f"min:{query.min_parameters // _BILLION}B")
    if query.max_parameters is not None:
        parts.append(f"max:{max(math.ceil(query.max_parameters / _BILLION), 1)}B")
    return ",".join(parts)


def _limit(query: HubQuery) -> int:
    return min(max(query.limit, 1), MOST_RESULTS)


def _models(connection: Connection, page: Page) -> list[HubModel]:
    rows = [_row(raw) for raw in connection.read(page, list[msgspec.Raw])]
    return [model for row in rows if row is not None and (model := hub_model(row))]


def _row(raw: msgspec.Raw) -> ListedModel | None:
    """Read one row; a mirror's odd one must not hide all others."""
    try:
        return msgspec.json.decode(raw, type=ListedModel)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def _mark(page: Page) -> str | None:
    """Keep of the next page's address only where it begins: it must not lead anywhere else."""
    if page.next_url is None:
        return None
    kept = [(key, value) for key, value in parse_qsl(urlsplit(page.next_url).query) if key in _PAGE_KEYS]
    return base64.urlsafe_b64encode(msgspec.json.encode(kept)).decode() if kept else None


def _page_params(mark: str | None) -> dict[str, str | list[str]]:
    if mark is None:
        return {}
    try:
        pairs = msgspec.json.decode(base64.urlsafe_b64decode(mark.encode()), type=list[tuple[str, str]])
    except (msgspec.DecodeError, binascii.Error, ValueError) as fault:
        raise InvalidRequest("That is no page of a search.", param="page") from fault
    return {key: value for key, value in pairs if key in _PAGE_KEYS}
