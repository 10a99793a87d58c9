"""One error of its own for each way in which the Hub says no."""

import email.utils
import socket
import ssl
import time

import httpx2
import pytest

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
from octavo.core.hub.failures import failure_of, retry_after_s

ENDPOINT = "https://hub.example"


def answer(status: int, *, token: bool = False, **headers: str) -> httpx2.Response:
    sent = {"Authorization": "Bearer hf_secret"} if token else {}
    request = httpx2.Request("GET", f"{ENDPOINT}/api/models/a/b", headers=sent)
    return httpx2.Response(
        status, request=request, headers={k.replace("_", "-"): v for k, v in headers.items()}
    )


@pytest.mark.parametrize(
    ("response", "file", "kind"),
    [
        (answer(401, X_Error_Code="GatedRepo"), None, GatedRepository),
        (answer(403, token=True, X_Error_Code="GatedRepo"), None, GatedRepository),
        (answer(404, X_Error_Code="RepoNotFound"), None, RepositoryNotFound),
        (answer(401, X_Error_Code="RepoNotFound"), None, RepositoryNotFound),
        (answer(401), None, RepositoryNotFound),
        (
            answer(401, token=True, X_Error_Message="Invalid credentials in Authorization header"),
            None,
            HubRefused,
        ),
        (answer(401, token=True), None, RepositoryNotFound),
        (answer(403, token=True), None, HubRefused),
        (answer(403, X_Error_Code="DisabledRepo"), None, HubRefused),
        (answer(404, X_Error_Code="EntryNotFound"), "x.gguf", HubFileNotFound),
        (answer(404, X_Error_Code="RevisionNotFound"), None, HubFileNotFound),
        (answer(404), "x.gguf", HubFileNotFound),
        (answer(404), None, RepositoryNotFound),
        (answer(407), None, HubUnreachable),
        (answer(408), None, HubUnreachable),
        (answer(418), None, HubUnreachable),
        (answer(429), None, HubRateLimited),
        (answer(503, Retry_After="7"), None, HubUnreachable),
    ],
)
def test_each_answer_has_an_error_of_its_own(
    response: httpx2.Response, file: str | None, kind: type[OctavoError]
) -> None:
    fault = failure_of(response, "a/b", file, endpoint=ENDPOINT)
    assert type(fault) is kind
    assert fault.message and fault.hint and "secret" not in str(fault.report())


def test_without_a_repository_it_is_no_hub() -> None:
    assert isinstance(failure_of(answer(404), endpoint=ENDPOINT), NotFound)
    assert isinstance(failure_of(answer(401, token=True)), HubRefused)


def test_a_pause_is_read_in_all_its_forms() -> None:
    soon = email.utils.formatdate(time.time() + 30, usegmt=True)
    assert retry_after_s(answer(429, Retry_After="3")) == 3
    assert 25 < (retry_after_s(answer(429, Retry_After=soon)) or 0) <= 31
    assert retry_after_s(answer(429, RateLimit='"api";r=0;t=55')) == 55
    assert retry_after_s(answer(429, Retry_After="99999999")) == 3600
    assert retry_after_s(answer(429, Retry_After="soon")) is None
    assert failure_of(answer(429)).details["retry_after_s"] == 30


@pytest.mark.parametrize(
    ("cause", "words"),
    [
        (socket.gaierror(-2, "Name or service not known"), "can't be resolved"),
        (ssl.SSLCertVerificationError("self-signed certificate"), "not safe"),
        (ssl.SSLEOFError(8, "EOF occurred"), "not safe"),
        (ConnectionRefusedError(111, "refused"), "refuses the connection"),
    ],
)
def test_a_fault_of_the_network_is_told_by_its_cause(cause: OSError, words: str) -> None:
    fault = httpx2.ConnectError("failed")
    fault.__cause__ = cause
    error = failure_of(fault, "a/b", endpoint=ENDPOINT)
    assert isinstance(error, HubUnreachable) and words in error.message and "hub.example" in error.message


@pytest.mark.parametrize(
    ("kind", "cause"),
    [
        (httpx2.ConnectError, ConnectionRefusedError(111, "refused")),
        (httpx2.ConnectError, OSError(113, "no route")),
        (httpx2.ConnectError, socket.gaierror(-2, "Name or service not known")),
        (httpx2.ConnectTimeout, TimeoutError()),
        (httpx2.ProxyError, OSError()),
    ],
)
def test_a_proxy_is_blamed_by_its_own_address(kind: type[httpx2.TransportError], cause: OSError) -> None:
    fault = kind("failed")
    fault.__cause__ = cause
    told = str(failure_of(fault, "a/b", endpoint=ENDPOINT, proxy="http://me:secret@10.0.0.1:3128").report())
    assert (
        "10.0.0.1:3128" in told and "hub.example" not in told.replace(ENDPOINT, "") and "secret" not in told
    )


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (httpx2.ReadTimeout("slow"), "in time"),
        (TimeoutError(), "in time"),
        (httpx2.ReadError("cut"), "broke off"),
        (httpx2.ProxyError("http://me:secret@proxy"), "proxy"),
        (httpx2.TooManyRedirects("round"), "without end"),
        (httpx2.DecodingError("gzip"), "DecodingError"),
    ],
)
def test_other_faults_are_told(fault: Exception, words: str) -> None:
    error = failure_of(fault, endpoint=ENDPOINT)
    assert words in error.message and error.hint and "secret" not in str(error.report())


def test_an_error_of_ours_stays() -> None:
    fault = HubFileNotFound("x")
    assert failure_of(fault) is fault
