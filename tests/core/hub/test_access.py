"""How the Hub is reached: what the settings say, and what the environment says before them."""

import msgspec
import pytest

from octavo.core.config.paths import Home
from octavo.core.config.settings import Hub, SettingsFile
from octavo.core.errors import HubOffline, InvalidConfig
from octavo.core.hub.access import current_access, require_online
from octavo.core.hub.types import Access

OFFICIAL = "https://huggingface.co"
TOKEN = "hf_" + "s3cret" * 4


@pytest.fixture
def home(tmp_path) -> Home:  # type: ignore[no-untyped-def]
    return Home(tmp_path)


def access(home: Home, settings: Hub | None = None, **environ: str) -> Access:
    return current_access(settings or Hub(), {"HOME": str(home.root), **environ}, home)


@pytest.mark.parametrize("slashes", ["", "/", "//"])
def test_d06_an_endpoint_is_the_same_with_and_without_a_slash(home: Home, slashes: str) -> None:
    assert access(home, HF_ENDPOINT=f"http://127.0.0.1:8899{slashes}").endpoint == "http://127.0.0.1:8899"
    assert access(home, Hub(endpoint=f"https://mirror.example/hf{slashes}")).endpoint == (
        "https://mirror.example/hf"
    )


def test_the_environment_wins_over_the_settings(home: Home) -> None:
    settings = Hub(endpoint="https://mirror.example", offline=True, proxy="http://10.0.0.1:3128")
    told = access(
        home, settings, HF_ENDPOINT="http://other.example", HF_HUB_OFFLINE="0", HTTP_PROXY="10.0.0.2:8080"
    )
    assert (told.endpoint, told.is_offline, told.proxy) == (
        "http://other.example",
        False,
        "http://10.0.0.2:8080",
    )
    alone = access(home, settings)
    assert (alone.endpoint, alone.is_offline, alone.proxy) == (
        "https://mirror.example",
        True,
        "http://10.0.0.1:3128",
    )


@pytest.mark.parametrize("said", ["1", "true", "ON", "yes"])
def test_d06_offline_is_what_the_environment_says(home: Home, said: str) -> None:
    told = access(home, HF_HUB_OFFLINE=said, HF_TOKEN=TOKEN)
    assert told.is_offline and told.token is None
    with pytest.raises(HubOffline) as fault:
        require_online(told)
    assert "HF_HUB_OFFLINE" in fault.value.hint


@pytest.mark.parametrize(
    ("excepted", "expected"),
    [("127.0.0.1", None), ("*", None), ("127.0.0.1:99", None), ("example.org", "http://proxy:1")],
)
def test_no_proxy_is_heeded(home: Home, excepted: str, expected: str | None) -> None:
    told = access(home, HF_ENDPOINT="http://127.0.0.1:99", http_proxy="http://proxy:1", NO_PROXY=excepted)
    assert told.proxy == expected


def test_a_proxy_fits_the_scheme(home: Home) -> None:
    assert access(home, HTTP_PROXY="http://one:1", HTTPS_PROXY="http://two:2").proxy == "http://two:2"
    assert access(home, ALL_PROXY="three:3").proxy == "http://three:3"
    # httpoxy: in a CGI program HTTP_PROXY is what a stranger sent
    cgi = access(home, HF_ENDPOINT="http://a.example", HTTP_PROXY="http://evil:1", REQUEST_METHOD="GET")
    assert cgi.proxy is None


@pytest.mark.parametrize("name", ["HTTPS_PROXY", "ALL_PROXY", "the setting hub.proxy"])
@pytest.mark.parametrize("scheme", ["socks5", "socks5h", "SOCKS4", "ftp"])
def test_a_proxy_of_another_scheme_is_refused_by_name(home: Home, name: str, scheme: str) -> None:
    said = f"{scheme}://me:secret@three:3"
    with pytest.raises(InvalidConfig) as fault:
        if name.isupper():
            access(home, **{name: said})
        else:
            access(home, Hub(proxy=said))
    told = str(fault.value)
    assert name in told and "http://" in told and "secret" not in told
    assert ("SOCKS proxy, which isn't supported" in told) is (scheme != "ftp")


@pytest.mark.parametrize(
    ("field", "bad", "good"),
    [
        ("proxy", ["socks5://a:1", "ftp://a", "http://", "http://a:99999"], ["", "http://u:p@a:1", "a:1"]),
        (
            "endpoint",
            ["http://:80", "https://me:pass@a.example", "https://a.example?x=1", "https://a:99999"],
            ["http://127.0.0.1:88/hf", "https://a.example/"],
        ),
    ],
)
def test_a_setting_that_could_never_be_used_is_refused(
    home: Home, field: str, bad: list[str], good: list[str]
) -> None:
    settings = SettingsFile(home.settings)
    for text in bad:
        with pytest.raises(InvalidConfig) as fault:
            settings.change("hub", **{field: text})
        assert f"hub.{field}" in str(fault.value) and "pass" not in fault.value.message.replace(
            "password", ""
        )
    for text in good:
        assert getattr(settings.change("hub", **{field: text}).hub, field) == text


@pytest.mark.parametrize(
    "text", ["ftp://a.example", "huggingface.co", "http://", "http://a b", "http://a:99999"]
)
def test_an_endpoint_that_is_no_url_is_refused(home: Home, text: str) -> None:
    with pytest.raises(InvalidConfig) as fault:
        access(home, HF_ENDPOINT=text)
    assert "HF_ENDPOINT" in fault.value.hint


def test_a_name_and_password_in_the_endpoint_are_left_out(home: Home) -> None:
    assert access(home, HF_ENDPOINT="https://me:pass@mirror.example/").endpoint == "https://mirror.example"


def test_secrets_are_in_no_repr(home: Home) -> None:
    told = access(home, HF_TOKEN=TOKEN, HTTPS_PROXY="http://me:pass@proxy:1")
    assert told.token == TOKEN and told.endpoint == OFFICIAL
    assert TOKEN not in repr(told) and "pass" not in repr(told) and "pass" not in str([told])
    assert msgspec.structs.replace(told, token=None) != told
