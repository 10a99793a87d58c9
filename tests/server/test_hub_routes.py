"""The Hub's routes: on the control door only, with the client's own calls, over the Hub's double."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import keyring
import pytest
from keyring.backends.fail import Keyring as NoKeyring

from octavo.core.errors import (
    GatedRepository,
    HubOffline,
    HubRefused,
    InvalidConfig,
    InvalidRequest,
    NotFound,
    OctavoError,
    RepositoryNotFound,
)
from octavo.core.hub.search import HubQuery
from octavo.core.runtime.assess import Assessor
from octavo.server.hub import Hub
from tests.core.hub.reached import TOKEN
from tests.fixtures.hub_double import HubDouble
from tests.fixtures.hub_models import llama_repository
from tests.fixtures.hub_repositories import case_repositories
from tests.server.support import Served, in_loop, raises, served

ROUTES = ("search?q=x", "models/ok/plain", "card/ok/plain", "status")
REPO = "zoo/llama-8b-GGUF"


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[HubDouble]:
    before = keyring.get_keyring()
    keyring.set_keyring(NoKeyring())
    models = tmp_path / "models"
    models.mkdir()
    for name in ("HF_TOKEN", "HF_HUB_OFFLINE", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    with HubDouble(
        [*case_repositories(), llama_repository(models, "Q4_K_M", "Q8_0", vocabulary=4096)]
    ) as double:
        monkeypatch.setenv("HF_ENDPOINT", f"{double.endpoint}/")
        monkeypatch.setenv("HF_HOME", str(tmp_path / "none"))
        yield double
    keyring.set_keyring(before)


def with_judge(it: Served) -> None:
    """Let the fake runtime judge like the real one."""
    it.runtime.assessor = Assessor(it.home, it.studio.settings)  # type: ignore[attr-defined]
    it.runtime.claims = lambda: []  # type: ignore[attr-defined]


@in_loop
async def test_a_search_and_a_listing(tmp_path: Path, hub: HubDouble) -> None:
    async with served(tmp_path / "home") as it:
        with_judge(it)
        page = await it.client.hub_search(HubQuery(text="llama", sort="likes"))
        assert [model.id for model in page.models] == [REPO]
        assert page.models[0].parameters == 8_030_261_248
        listed = await it.client.hub_model(REPO, verdicts=False)
        assert all(choice.fit is None for choice in listed.choices) and listed.recommended is None
        judged = await it.client.hub_model(REPO)
        assert all(choice.fit for choice in judged.choices) and judged.reason
        card = await it.client.hub_card("ok/subfolder")
        assert card.text == "# A model\n"


@in_loop
async def test_the_hub_is_not_for_the_public_port(tmp_path: Path, hub: HubDouble) -> None:
    async with served(tmp_path / "home") as it:
        for route in ROUTES:
            assert (await it.public.get(f"/api/v1/hub/{route}")).status_code == 404
        for method in ("PUT", "DELETE"):
            answer = await it.public.request(method, "/api/v1/hub/token", json={"token": TOKEN})
            assert answer.status_code == 404
        body = {"repo": REPO, "file": "Q4_K_M"}
        answer = await it.public.post("/api/v1/estimate", json=body)
        assert answer.status_code == 400
    assert hub.log == []


@in_loop
async def test_d03_refusals_come_through_as_they_are(tmp_path: Path, hub: HubDouble) -> None:
    async with served(tmp_path / "home") as it:
        gated = await raises(GatedRepository, it.client.hub_model("err/gated"))
        assert gated.details["url"].endswith("/err/gated") and "octavo login" in gated.hint
        await raises(RepositoryNotFound, it.client.hub_model("err/notfound"))
        limited = await raises(OctavoError, it.client.hub_model("err/rate"))
        assert limited.code == "hub_rate_limited" and limited.details["retry_after_s"] == 3
        await raises(InvalidRequest, it.client.hub_model("../../evil.gguf"))
        assert (await it.control.get("/api/v1/hub/search?sort=size")).status_code == 400
        assert (await it.control.get("/api/v1/hub/search?min_parameters=x")).status_code == 400


@in_loop
async def test_d06_offline_is_told_and_asks_nothing(tmp_path: Path, hub: HubDouble) -> None:
    async with served(tmp_path / "home") as it:
        await it.client.change_settings("hub", offline=True)
        await raises(HubOffline, it.client.hub_search(HubQuery(text="x")))
        await raises(HubOffline, it.client.hub_model(REPO))
        status = await it.client.hub_status(checks=True)
        assert status.is_offline and status.endpoint == hub.endpoint and status.account is None
        await it.client.change_settings("hub", offline=False)
        assert (await it.client.hub_search(HubQuery(text="llama"))).models
    assert len(hub.log) == 1


@in_loop
async def test_a_token_is_kept_told_and_deleted(
    tmp_path: Path, hub: HubDouble, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level("DEBUG")
    told: list[object] = []
    publish = Hub.publish
    monkeypatch.setattr(Hub, "publish", lambda self, event: (told.append(event), publish(self, event))[1])
    async with served(tmp_path / "home") as it:
        assert (await it.client.hub_status()).token.source == "none"
        kept = await it.client.keep_hub_token(f"{TOKEN}\n")
        assert (kept.token.source, kept.account) == ("file", "tester")
        status = await it.client.hub_status(checks=True)
        assert (status.token.source, status.account) == ("file", "tester")
        await it.client.hub_search(HubQuery(text="x"))
        assert hub.log[-1].authorization == f"Bearer {TOKEN}"
        bad = await raises(InvalidRequest, it.client.keep_hub_token("two words"))
        for text, words in (("hf_토큰", "That is no token"), ("", "No token was given")):
            answer = await it.control.put("/api/v1/hub/token", json={"token": text})
            assert answer.status_code == 400 and words in answer.text and "토큰" not in answer.text
        settings = await it.client.settings()
        answers = [str(status), str(settings), str(bad.report()), str(told), caplog.text]
        assert (await it.client.forget_hub_token()).token.source == "none"
        await it.client.hub_search(HubQuery(text="x"))
        assert hub.log[-1].authorization is None
    logs = [path.read_text() for path in (tmp_path / "home" / "logs").rglob("*") if path.is_file()]
    assert not any(TOKEN in text for text in [*answers, *logs])


@in_loop
async def test_a_token_that_the_hub_does_not_know_is_not_kept(
    tmp_path: Path, hub: HubDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with served(tmp_path / "home") as it:

        async def refused(token: str | None = None) -> str:
            raise HubRefused("no")

        monkeypatch.setattr(it.studio.hub_reach.client, "account", refused)
        await raises(HubRefused, it.client.keep_hub_token(TOKEN))
        assert (await it.client.hub_status()).token.source == "none"


@in_loop
async def test_a_proxy_that_can_not_be_used_is_refused(
    tmp_path: Path, hub: HubDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with served(tmp_path / "home") as it:
        await raises(InvalidConfig, it.client.change_settings("hub", proxy="socks5://127.0.0.1:1"))
        assert (await it.client.hub_search(HubQuery(text="llama"))).models
        for name in ("NO_PROXY", "no_proxy"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("ALL_PROXY", "socks5://127.0.0.1:1")
        told = await raises(InvalidConfig, it.client.hub_search(HubQuery(text="llama")))
        assert "ALL_PROXY" in told.message and "SOCKS" in told.message
        await raises(InvalidConfig, it.client.download("ok/plain@Q4_K_M"))
        await it.client.change_settings("hub", offline=False)


@in_loop
async def test_an_estimate_of_a_choice(tmp_path: Path, hub: HubDouble) -> None:
    async with served(tmp_path / "home") as it:
        with_judge(it)
        told = await it.client.estimate_hub(REPO, "q8_0", {"context": 4096}, budget_bytes=16 << 30)
        assert (told.model, told.n_ctx, told.verdict) == (f"hf:{REPO}@Q8_0", 4096, "resident")
        assert told.confidence == "exact"
        missing = await raises(NotFound, it.client.estimate_hub(REPO, "Q5_K_M"))
        assert missing.details["candidates"] == ["Q4_K_M", "Q8_0"]
        for body in ({}, {"model": "x", "repo": REPO}):
            assert (await it.control.post("/api/v1/estimate", json=body)).status_code == 400


@in_loop
async def test_who_leaves_stops_the_work(tmp_path: Path, hub: HubDouble) -> None:
    async with served(tmp_path / "home") as it:
        with_judge(it)
        hub.repositories["bad/stall"].files["model-Q4_K_M.gguf"] = hub.repositories[REPO].files[
            "llama-8b-Q8_0.gguf"
        ]
        asking = asyncio.create_task(it.client.hub_model("bad/stall"))
        while not hub.gets("bad/stall"):
            await asyncio.sleep(0.02)
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
        async with asyncio.timeout(5):
            assert (await it.client.hub_search(HubQuery(text="llama"))).models
