"""What went wrong with the Hub, in words of its own for each cause, with what to do next.

The Hub names the cause in ``X-Error-Code`` and ``X-Error-Message`` (``hf_raise_for_status`` in
huggingface_hub's utils/_http.py). A repository that the token doesn't open looks like one that isn't there.
"""

import email.utils
import math
import re
import socket
import ssl
import time
from urllib.parse import urlsplit

import httpx2

from octavo.core.errors import (
    GatedRepository,
    HubFileNotFound,
    HubRateLimited,
    HubRefused,
    HubUnreachable,
    NotFound,
    OctavoError,
    RepositoryNotFound,
)
from octavo.core.hub.types import Access

OFFICIAL = Access().endpoint
LONGEST_WAIT_S = 3600.0
"""Seconds that a ``Retry-After`` is believed up to."""

USUAL_WAIT_S = 30.0
_WRONG_TOKEN = re.compile(r"invalid (credentials|username|token)|expired", re.IGNORECASE)
_WANTS_NAME = (
    "The proxy wants a name and a password.",
    "Put them into HTTPS_PROXY, or into the setting hub.proxy: http://name:password@host:port.",
)
_RATE_RESET = re.compile(r"\bt=(\d+)")


def failure_of(
    fault: httpx2.Response | BaseException,
    repo: str | None = None,
    file: str | None = None,
    *,
    endpoint: str = OFFICIAL,
    proxy: str | None = None,
) -> OctavoError:
    """Make the error for an answer that is none (status 300 or more), or for what kept one from coming.

    ``endpoint`` is the access's: links are made with it, since a mirror has pages of its own. ``proxy`` is
    the access's, too: with one, it is the proxy that a connection is made to.
    """
    if isinstance(fault, OctavoError):
        return fault
    if isinstance(fault, httpx2.Response):
        return _of_answer(fault, repo, file, endpoint)
    return _of_fault(fault, endpoint, proxy)


def page_instead(
    response: httpx2.Response, what: str = "the answer", *, endpoint: str = OFFICIAL
) -> OctavoError:
    """Make the error for a web page in the place of ``what``: a network's login page, or a wrong address."""
    return HubUnreachable(
        f"A web page came from {response.url.host} in the place of {what}.",
        hint="Open a browser: this network may want you to sign in first. Else look at the Hub's address "
        "(HF_ENDPOINT).",
        endpoint=endpoint,
    )


def is_page(response: httpx2.Response) -> bool:
    """Tell whether an answer says that it is a web page, which nothing asked for here ever is."""
    return response.headers.get("Content-Type", "").partition(";")[0].strip().lower() in (
        "text/html",
        "application/xhtml+xml",
    )


def retry_after_s(response: httpx2.Response) -> float | None:
    """Give the seconds that the Hub asks to wait, at most an hour; None where it names none.

    ``Retry-After`` is seconds or a date (RFC 9110, 10.2.3); the Hub's ``RateLimit`` has ``t=`` seconds.
    """
    said = response.headers.get("Retry-After", "").strip()
    if said.isdigit():
        return min(float(said), LONGEST_WAIT_S)
    try:
        at = email.utils.parsedate_to_datetime(said).timestamp()
    except (TypeError, ValueError, OverflowError):
        reset = _RATE_RESET.search(response.headers.get("RateLimit", ""))
        return min(float(reset[1]), LONGEST_WAIT_S) if reset else None
    return min(max(at - time.time(), 0.0), LONGEST_WAIT_S)


def _of_answer(answer: httpx2.Response, repo: str | None, file: str | None, endpoint: str) -> OctavoError:
    code, status = answer.headers.get("X-Error-Code", ""), answer.status_code
    if code == "GatedRepo":
        return _gated(answer, repo, endpoint)
    if code in ("EntryNotFound", "RevisionNotFound") and repo:
        return _no_file(code, repo, file)
    if code == "RepoNotFound" and repo:
        return _no_repository(repo)
    if code == "DisabledRepo":
        return HubRefused(f"The Hub has disabled {repo}.", hint="Take another one.", repo=repo)
    if status == 429:
        return _rate_limited(answer, endpoint)
    if status in (401, 403):
        return _refused(answer, repo, endpoint)
    if status == 404:
        return _not_there(repo, file, endpoint)
    return _unfit(answer, endpoint)


def _gated(answer: httpx2.Response, repo: str | None, endpoint: str) -> OctavoError:
    url = f"{endpoint}/{repo}"
    if _had_token(answer):
        return GatedRepository(
            f"{repo} is gated, and the account of your token has no access to it (yet).",
            hint=f"Accept the terms at {url}; some publishers answer by hand. A fine-grained token also "
            "needs the right to read gated repositories.",
            repo=repo,
            url=url,
        )
    return GatedRepository(
        f"{repo} is gated: its publisher wants its terms accepted first.",
        hint=f"Accept the terms at {url}, then add a token of that account: octavo login.",
        repo=repo,
        url=url,
    )


def _no_file(code: str, repo: str, file: str | None) -> OctavoError:
    what = "revision of that name" if code == "RevisionNotFound" else f"file {file}" if file else "such file"
    return HubFileNotFound(
        f"{repo} is there, but it has no {what}.",
        hint=f"octavo search --repo {repo} lists what it offers.",
        repo=repo,
        file=file,
    )


def _no_repository(repo: str) -> OctavoError:
    return RepositoryNotFound(
        f"There is no repository {repo} on the Hub, or it is private.",
        hint="Look at the spelling. A private one needs a token that may read it: octavo login.",
        repo=repo,
    )


def _rate_limited(answer: httpx2.Response, endpoint: str) -> OctavoError:
    told = retry_after_s(answer)
    seconds = USUAL_WAIT_S if told is None else told
    token = "" if _had_token(answer) else " With a token the limits are wider: octavo login."
    return HubRateLimited(
        "The Hub asks for a pause: too many requests came from here.",
        hint=f"Try again in {math.ceil(seconds)} seconds.{token}",
        retry_after_s=seconds,
        endpoint=endpoint,
    )


def _refused(answer: httpx2.Response, repo: str | None, endpoint: str) -> OctavoError:
    said = answer.headers.get("X-Error-Message", "")
    if answer.status_code == 401 and _had_token(answer):
        if repo and not _WRONG_TOKEN.search(said):
            return _no_repository(repo)
        return HubRefused(
            "The Hub doesn't know your token: it is wrong, expired or was deleted.",
            hint=f"Make a new one at {endpoint}/settings/tokens and add it: octavo login.",
            repo=repo,
            url=f"{endpoint}/settings/tokens",
        )
    if answer.status_code == 401 and repo:
        return _no_repository(repo)
    what = f"to give {repo}" if repo else "this"
    hint = "The token may lack the right to read it." if _had_token(answer) else "Add a token: octavo login."
    url = f"{endpoint}/{repo}" if repo else endpoint
    return HubRefused(f"The Hub refuses {what}.", hint=f"{hint} See {url}.", repo=repo, url=url)


def _not_there(repo: str | None, file: str | None, endpoint: str) -> OctavoError:
    if repo and file:
        return _no_file("EntryNotFound", repo, file)
    if repo:
        return _no_repository(repo)
    return NotFound(
        f"{endpoint} has no such page: it may be no Hub.", hint="Look at HF_ENDPOINT.", endpoint=endpoint
    )


def _unfit(answer: httpx2.Response, endpoint: str) -> OctavoError:
    status = answer.status_code
    if status == 407:
        return HubUnreachable(_WANTS_NAME[0], hint=_WANTS_NAME[1], endpoint=endpoint)
    if status >= 500 or status == 408:
        return HubUnreachable(
            f"The Hub has trouble of its own (status {status}).",
            hint="Try again in a while; https://status.huggingface.co tells more.",
            endpoint=endpoint,
            retry_after_s=retry_after_s(answer),
        )
    return HubUnreachable(
        f"{answer.url.host} answered with status {status}, which can't be used.",
        hint="Look at the Hub's address (HF_ENDPOINT).",
        endpoint=endpoint,
    )


def _of_fault(fault: BaseException, endpoint: str, proxy: str | None) -> OctavoError:
    told = _of_proxy(fault, urlsplit(proxy).netloc.rpartition("@")[2]) if proxy else None
    message, hint = told or _words(fault, _host(fault) or urlsplit(endpoint).hostname or endpoint)
    return HubUnreachable(message, hint=hint, endpoint=endpoint)


def _of_proxy(fault: BaseException, address: str) -> tuple[str, str] | None:
    """Blame the proxy for what keeps a connection from being made; None where it may be the Hub."""
    hint = "Look at HTTPS_PROXY, HTTP_PROXY and ALL_PROXY, and at the setting hub.proxy."
    cause = _root(fault)
    if isinstance(fault, httpx2.ProxyError):
        is_nameless = str(fault).startswith("407")
        return _WANTS_NAME if is_nameless else (f"The proxy {address} doesn't let this through.", hint)
    if isinstance(cause, ssl.SSLError):
        return None
    if isinstance(cause, socket.gaierror):
        return f"The name of the proxy {address} can't be resolved.", hint
    if isinstance(fault, httpx2.ConnectTimeout):
        return f"The proxy {address} did not answer in time.", hint
    if isinstance(fault, httpx2.ConnectError):
        return f"The proxy {address} refuses the connection, or can't be reached.", hint
    return None


def _words(fault: BaseException, host: str) -> tuple[str, str]:
    online = "Look at the connection to the internet. Models that are on this disk work without it."
    cause = _root(fault)
    if isinstance(fault, httpx2.ProxyError):
        return "The proxy can't be used.", "Look at HTTPS_PROXY and the setting hub.proxy."
    if isinstance(cause, socket.gaierror):
        return f"The name {host} can't be resolved: this computer seems to be offline.", online
    if isinstance(cause, ssl.SSLError):
        reason = getattr(cause, "verify_message", "") or "no safe way to speak was agreed on"
        return (
            f"The connection to {host} is not safe: {reason}.",
            "Look at this computer's clock. Behind a firewall that opens connections, name its certificate "
            "in SSL_CERT_FILE.",
        )
    if isinstance(fault, httpx2.TimeoutException | TimeoutError):
        return f"{host} did not answer in time.", f"Try again. {online}"
    if isinstance(fault, httpx2.ConnectError | ConnectionError):
        return f"{host} refuses the connection.", online
    if isinstance(fault, httpx2.TooManyRedirects):
        return f"{host} sends from address to address without end.", "Look at HF_ENDPOINT."
    if isinstance(fault, httpx2.TransportError):
        return f"The connection to {host} broke off.", f"Try again. {online}"
    return f"{host} can't be used: {type(fault).__name__}.", "Look at HF_ENDPOINT."


def _root(fault: BaseException) -> BaseException:
    """Give the system's own error that lies below those of the HTTP client."""
    seen = fault
    for _ in range(8):
        below = seen.__cause__ or seen.__context__
        if below is None or isinstance(seen, socket.gaierror | ssl.SSLError):
            break
        seen = below
    return seen


def _host(fault: BaseException) -> str | None:
    request = getattr(fault, "_request", None)
    return request.url.host if isinstance(request, httpx2.Request) else None


def _had_token(answer: httpx2.Response) -> bool:
    first = answer.history[0].request if answer.history else answer.request
    return "Authorization" in first.headers
