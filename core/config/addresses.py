"""The addresses that a person may name: of the Hub, and of a proxy on the way there."""

from urllib.parse import SplitResult, urlsplit

from octavo.core.errors import InvalidConfig

PROXY_SETTING = "the setting hub.proxy"


def web_address(text: str) -> SplitResult | None:
    """Read an address of http or https that names a host; None for anything else."""
    try:
        parts = urlsplit(text)
        is_sound = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return None
    return parts if is_sound and all(c.isprintable() and not c.isspace() for c in text) else None


def checked_proxy(text: str, place: str) -> str:
    """Give a proxy's URL; without a scheme it is one of http.

    ``place`` names the variable or the setting that it comes from. Raises ``InvalidConfig``, which never
    holds the text: there may be a password in it.
    """
    proxy = text if "://" in text else f"http://{text}"
    if web_address(proxy) is not None:
        return proxy
    is_socks = proxy.lower().startswith("socks")
    what = "names a SOCKS proxy, which isn't supported" if is_socks else "names no proxy that can be used"
    raise InvalidConfig(
        f"{place[0].upper()}{place[1:]} {what}.",
        hint=f"Set {place} to a proxy of http:// or https://, such as http://proxy.example:3128.",
        field="hub.proxy",
    )


def check_endpoint(text: str) -> None:
    """Look at the setting hub.endpoint; raises ``InvalidConfig``, which never holds the text."""
    parts = web_address(text)
    if parts is None or "@" in parts.netloc or "?" in text or "#" in text:
        raise InvalidConfig(
            "The setting hub.endpoint can't be used: it is a plain address of http:// or https://, without a "
            "name, a password or a query.",
            hint="Set it to one such as https://huggingface.co. A token is added with octavo login.",
            field="hub.endpoint",
        )
