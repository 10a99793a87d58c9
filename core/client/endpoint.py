"""Find the control door of the running service."""

from pathlib import Path

import httpx2
import msgspec

from octavo.core.client.types import Endpoint
from octavo.core.config.paths import Home
from octavo.core.errors import ServiceUnavailable

CONNECT_TIMEOUT_S = 5.0


def read_endpoint(home: Home) -> Endpoint:
    """Read where the service of this home says it is; raises ``ServiceUnavailable`` when it says nothing."""
    try:
        return msgspec.json.decode(home.endpoint.read_bytes(), type=Endpoint)
    except (OSError, msgspec.DecodeError) as fault:
        raise unavailable(home) from fault


def unavailable(home: Home) -> ServiceUnavailable:
    """Make the error for a service that does not answer."""
    return ServiceUnavailable(
        "No Octavo service is running.", hint="octavo serve starts one.", home=str(home.root)
    )


def open_http(endpoint: Endpoint) -> httpx2.AsyncClient:
    """Make an HTTP client of the control door; proxies and certificates play no part.

    Answers may take as long as a load or a long prompt takes, so only connecting has a deadline.
    """
    timeout = httpx2.Timeout(None, connect=CONNECT_TIMEOUT_S)
    limits = httpx2.Limits(max_connections=None, max_keepalive_connections=8)
    if endpoint.kind == "unix":
        transport = httpx2.AsyncHTTPTransport(uds=endpoint.address, verify=False, limits=limits)
        return httpx2.AsyncClient(
            transport=transport, base_url="http://octavo", timeout=timeout, trust_env=False
        )
    transport = httpx2.AsyncHTTPTransport(verify=False, limits=limits)
    return httpx2.AsyncClient(
        transport=transport,
        base_url=f"http://{endpoint.address}",
        headers={"Authorization": f"Bearer {_token(endpoint)}"},
        timeout=timeout,
        trust_env=False,
    )


def _token(endpoint: Endpoint) -> str:
    try:
        return Path(endpoint.token_file or "").read_text("ascii").strip()
    except (OSError, ValueError) as fault:
        raise ServiceUnavailable("The service's token can't be read.", path=endpoint.token_file) from fault
