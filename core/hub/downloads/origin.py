"""Where the bytes of one file come from: the Hub, which mostly redirects to another server.

Each answer is checked before a byte of it is used. The token goes to the Hub's own origin only. The address
that the Hub redirects to is kept for the next segments until it is refused: signed addresses grow old.
"""

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import quote

import httpx2

from octavo.core.errors import DownloadFailed, HubUnreachable, OctavoError
from octavo.core.hub.downloads.part import Part
from octavo.core.hub.failures import failure_of, is_page, page_instead
from octavo.core.hub.types import Access, DownloadWish, HubFile

_MOST_REDIRECTS = 5
_CONTENT_RANGE = re.compile(r"bytes (\d+)-(\d+)/(\d+)")
_PASSING = frozenset({408, 425, 429, *range(500, 600)})
_SHA256 = re.compile(r"[0-9a-f]{64}")


class Lost(Exception):
    """This try failed, the next one may not; ``error`` says why in words."""

    def __init__(self, error: OctavoError, retry_after_s: float | None = None) -> None:
        super().__init__(str(error))
        self.error = error
        self.retry_after_s = retry_after_s


class Changed(Exception):
    """The file on the Hub is another one than the one that was begun."""

    def __init__(self, etag: str | None, linked_etag: str | None) -> None:
        super().__init__(etag)
        self.etag = etag
        self.linked_etag = linked_etag


class Origin:
    """Opens segments of one file; used by several threads."""

    def __init__(
        self, http: httpx2.Client, access: Access, wish: DownloadWish, file: HubFile, part: Part
    ) -> None:
        self._http = http
        self._access = access
        self._repo = wish.repo
        self._file = file
        self._part = part
        self._lock = threading.Lock()
        revision = quote(wish.revision, safe="")
        self._url = httpx2.URL(f"{access.endpoint}/{wish.repo}/resolve/{revision}/{quote(file.path)}")
        self._direct: httpx2.URL | None = None
        self.knows_ranges = True

    @contextmanager
    def open(self, start: int, end: int) -> Iterator[tuple[httpx2.Response, int]]:
        """Ask for bytes; gives the answer and its first byte's place, which is 0 where no part can be had.

        Raises ``Lost``, ``Changed``, or the ``OctavoError`` that no further try would mend.
        """
        asked = (start, end) if self.knows_ranges else None
        try:
            response = self._redirected(asked)
            try:
                yield response, self._checked(response, asked)
            finally:
                response.close()
        except httpx2.TransportError as fault:
            access = self._access
            error = failure_of(fault, self._repo, endpoint=access.endpoint, proxy=access.proxy)
            raise Lost(error) from fault

    # ---- asking

    def _redirected(self, asked: tuple[int, int] | None) -> httpx2.Response:
        url = self._direct or self._url
        linked: str | None = None
        for _ in range(_MOST_REDIRECTS):
            response = self._get(url, asked)
            linked = _etag(response, "X-Linked-ETag") or linked
            if not response.has_redirect_location:
                break
            response.close()
            url = url.join(response.headers["Location"])
        else:
            raise DownloadFailed(
                f"The Hub sends from address to address without end for {self._file.path}.",
                hint="Look at HF_ENDPOINT.",
                repo=self._repo,
                file=self._file.path,
            )
        if response.status_code in (401, 403, 404) and url != self._url and self._direct is not None:
            response.close()
            self._direct = None  # the signed address has grown old: the Hub gives a new one
            return self._redirected(asked)
        self._direct = url if url.origin != self._url.origin else None
        response.extensions["linked_etag"] = linked
        return response

    def _get(self, url: httpx2.URL, asked: tuple[int, int] | None) -> httpx2.Response:
        # a compressed answer would be no part of the file
        headers = {"Accept": "*/*", "Accept-Encoding": "identity"}
        if self._access.token and url.origin == self._url.origin:
            headers["Authorization"] = f"Bearer {self._access.token}"
        if asked:
            headers["Range"] = f"bytes={asked[0]}-{asked[1] - 1}"
            if (etag := self._part.entry.etag) and not etag.startswith("W/") and self._part.done_bytes:
                headers["If-Range"] = etag
        return self._http.send(self._http.build_request("GET", url, headers=headers), stream=True)

    # ---- checking

    def _checked(self, response: httpx2.Response, asked: tuple[int, int] | None) -> int:
        status = response.status_code
        if status not in (200, 206):
            raise self._refused(response)
        if is_page(response) and not self._file.path.lower().endswith((".html", ".htm")):
            raise page_instead(response, self._file.path, endpoint=self._access.endpoint)
        encoding = response.headers.get("Content-Encoding", "identity").strip().lower()
        if encoding not in ("identity", ""):
            raise self._failed(f"comes compressed ({encoding}), though that was refused")
        self._compare(response, is_whole=status == 200)
        return self._start_of(response, asked) if status == 206 else self._whole(response)

    def _compare(self, response: httpx2.Response, *, is_whole: bool) -> None:
        """Note whose bytes these are, or find that they are another file's."""
        etag, linked = _etag(response, "ETag"), response.extensions.get("linked_etag")
        with self._lock:
            entry = self._part.entry
            if not self._part.done_bytes and entry.etag is None:
                entry.etag, entry.linked_etag = etag, linked
                return
            if linked and entry.linked_etag and linked != entry.linked_etag:
                raise Changed(etag, linked)
            if etag == entry.etag or etag is None:
                return
            if linked is None and entry.linked_etag is None:
                raise Changed(etag, linked)
            if linked is None:
                self._direct = None
                raise Lost(self._failed("may have changed: the Hub is asked"))
            # the Hub names the same content; only the server that keeps it counts its ETags anew
            entry.etag = etag
            entry.linked_etag = entry.linked_etag or linked
        if is_whole and self._part.done_bytes:
            raise Lost(self._failed("was offered as a whole where its rest was asked for"))

    def _start_of(self, response: httpx2.Response, asked: tuple[int, int] | None) -> int:
        found = _CONTENT_RANGE.fullmatch(response.headers.get("Content-Range", "").strip())
        start, last, total = map(int, found.groups()) if found else (-1, -1, self._part.size)
        if total != self._part.size:
            raise self._wrong_size(total)
        if asked is None or start != asked[0] or not start <= last < asked[1]:
            self.knows_ranges = False
            raise Lost(self._failed("came from another place than was asked for"))
        return start

    def _whole(self, response: httpx2.Response) -> int:
        length = response.headers.get("Content-Length", "")
        if length.isdigit() and int(length) != self._part.size:
            raise self._wrong_size(int(length))
        self.knows_ranges = False
        return 0

    def _refused(self, response: httpx2.Response) -> Exception:
        if response.status_code == 416:
            total = response.headers.get("Content-Range", "").rpartition("/")[2]
            if total.isdigit() and int(total) != self._part.size:
                return self._wrong_size(int(total))
            self.knows_ranges = False
            return Lost(self._failed("was said to be shorter than its part here"))
        error = failure_of(response, self._repo, self._file.path, endpoint=self._access.endpoint)
        if isinstance(error, HubUnreachable) and response.status_code in _PASSING:
            wait = error.details.get("retry_after_s")
            return Lost(error, float(wait) if isinstance(wait, int | float) else None)
        return error

    def _wrong_size(self, total: int) -> DownloadFailed:
        return self._failed(f"was announced with {self._part.size:,} bytes, but has {total:,}")

    def _failed(self, what: str) -> DownloadFailed:
        return DownloadFailed(
            f"{self._file.path} of {self._repo} {what}.",
            hint="Try again later; if it stays so, tell its publisher.",
            repo=self._repo,
            file=self._file.path,
        )


def sha256_of(linked_etag: str | None) -> str | None:
    """Give the SHA-256 that the Hub's ETag of a large file is."""
    text = (linked_etag or "").strip('"')
    return text if _SHA256.fullmatch(text) else None


def _etag(response: httpx2.Response, name: str) -> str | None:
    return response.headers.get(name, "").strip() or None
