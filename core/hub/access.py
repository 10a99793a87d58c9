"""How the Hub is reached from here: the settings, and what the environment says before them.

The variables are huggingface_hub's (docs: environment_variables): ``HF_ENDPOINT``, ``HF_HUB_OFFLINE``,
``HF_TOKEN``, and every HTTP program's ``HTTPS_PROXY``, ``HTTP_PROXY``, ``ALL_PROXY``, ``NO_PROXY``.
"""

import os
import urllib.request
from collections.abc import Mapping
from urllib.parse import urlsplit, urlunsplit

from octavo.core.config import paths
from octavo.core.config.addresses import PROXY_SETTING, checked_proxy, web_address
from octavo.core.config.paths import Home
from octavo.core.config.settings import Hub
from octavo.core.errors import HubOffline, InvalidConfig
from octavo.core.hub.tokens import Tokens
from octavo.core.hub.types import Access

HUB_HOSTS = frozenset({"huggingface.co", "www.huggingface.co", "hf.co", "www.hf.co"})
_TRUE = {"1", "ON", "YES", "TRUE"}
OFFLINE_VARIABLES = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")


def current_access(
    settings: Hub, environ: Mapping[str, str] | None = None, tokens: Home | Tokens | None = None
) -> Access:
    """Give how the Hub is reached now; may block, since a token may lie in the system's keyring.

    ``tokens`` knows the token; a home, or None for the usual one, stands for its ``Tokens``. The environment
    wins over the settings. Raises ``InvalidConfig`` for an endpoint or a proxy that is no URL.
    """
    environ = os.environ if environ is None else environ
    if not isinstance(tokens, Tokens):
        tokens = Tokens(tokens or paths.home(), environ)
    endpoint = _endpoint(environ.get("HF_ENDPOINT", "").strip() or settings.endpoint)
    is_offline = offline(settings, environ)
    return Access(
        endpoint=endpoint,
        token=None if is_offline else tokens.current(),
        is_offline=is_offline,
        proxy=_proxy(endpoint, settings, environ),
        bytes_per_s=settings.bytes_per_s,
    )


def offline(settings: Hub, environ: Mapping[str, str]) -> bool:
    """Tell whether nothing may be asked of the Hub; a variable that says no wins over the settings, too."""
    said = next((value for name in OFFLINE_VARIABLES if (value := environ.get(name, "").strip())), None)
    return settings.offline if said is None else said.upper() in _TRUE


def require_online(access: Access) -> None:
    """Raise ``HubOffline`` where nothing may be asked of the Hub."""
    if access.is_offline:
        raise HubOffline(
            "The Hub is not asked: Octavo is set to be offline.",
            hint="Unset HF_HUB_OFFLINE, or switch offline off in the settings (hub). Models that are on this "
            "disk work as ever.",
            endpoint=access.endpoint,
        )


def _endpoint(text: str) -> str:
    parts = web_address(text or Access().endpoint)
    if parts is None:
        raise InvalidConfig(
            "The Hub's endpoint is no URL that can be used.",
            hint="Set HF_ENDPOINT, or the setting hub.endpoint, to one such as https://example.org.",
            field="hub.endpoint",
        )
    # what is shown in messages must hold no password, and no query can follow a path that is added
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path.rstrip("/"), "", ""))


def _proxy(endpoint: str, settings: Hub, environ: Mapping[str, str]) -> str | None:
    """Give the environment's proxy for this endpoint, unless ``NO_PROXY`` names it, else the settings'."""
    parts = urlsplit(endpoint)
    excepted = environ.get("no_proxy") or environ.get("NO_PROXY") or ""
    if excepted and _bypasses(parts.hostname or "", parts.netloc, excepted):
        return None
    names = [f"{parts.scheme}_proxy", "all_proxy"]
    named = [(name.upper(), value) for name in names if (value := _variable(environ, name))]
    place, said = next(iter(named), (PROXY_SETTING, settings.proxy))
    return checked_proxy(said, place) if said else None


def _variable(environ: Mapping[str, str], name: str) -> str:
    # HTTP_PROXY may come from a request's "Proxy:" header where REQUEST_METHOD is set (httpoxy)
    is_doubtful = name == "http_proxy" and "REQUEST_METHOD" in environ
    upper = "" if is_doubtful else environ.get(name.upper(), "")
    return (environ.get(name) or upper).strip()


def _bypasses(host: str, netloc: str, excepted: str) -> bool:
    bypasses = urllib.request.proxy_bypass_environment  # type: ignore[attr-defined]
    return any(bool(bypasses(name, {"no": excepted})) for name in (host, netloc))
