"""Verdicts for what repositories offer, from few requests, and the choice that is recommended."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest

from octavo.core.config.load_config import LoadConfig
from octavo.core.config.paths import Home
from octavo.core.config.settings import SettingsFile
from octavo.core.errors import HubFileNotFound
from octavo.core.gguf import read_model
from octavo.core.hub.choices import pick
from octavo.core.hub.client import HubClient
from octavo.core.hub.types import Choice, Repository
from octavo.core.memory.budget import GIB, fixed
from octavo.core.memory.estimate import estimate
from octavo.core.memory.shape import read_shape
from octavo.core.memory.types import Budget
from octavo.core.runtime.assess import Assessor
from octavo.core.runtime.hub_choices import CONTEXT, HubChoices
from tests.core.hub.reached import reached
from tests.fixtures.gguf_builder import tiny
from tests.fixtures.hub_double import HubDouble
from tests.fixtures.hub_models import QUANTS, Sparse, llama_8b, llama_repository
from tests.fixtures.hub_repositories import Faults, HubRepository
from tests.fixtures.hub_sources import Bytes, Virtual
from tests.fixtures.zoo import mixed
from tests.server.support import in_loop

FEW = ("Q2_K", "Q4_K_M", "Q8_0", "F16")


@asynccontextmanager
async def judging(
    folder: Path, hub: HubDouble, monkeypatch: pytest.MonkeyPatch, budget_bytes: int
) -> AsyncIterator[tuple[HubClient, HubChoices]]:
    """Judge what the double offers, on a machine with so much memory."""
    home = Home(folder / "home")
    home.prepare()
    assessor = Assessor(home, SettingsFile(home.settings))

    def budget(_claims: object = ()) -> Budget:
        return fixed(budget_bytes)

    monkeypatch.setattr(assessor, "budget", budget)
    async with reached(folder, hub.endpoint) as client:
        yield client, HubChoices(client, assessor)


async def judged(
    folder: Path, hub: HubDouble, patch: pytest.MonkeyPatch, budget_bytes: int, repo: str
) -> Repository:
    async with judging(folder, hub, patch, budget_bytes) as (client, choices):
        return await choices.judged(await client.repository(repo))


def verdicts(found: Repository) -> dict[str, str]:
    return {one.name: one.fit.verdict if one.fit else one.note for one in found.choices}


@in_loop
async def test_verdicts_and_the_recommended_choice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with HubDouble([llama_repository(tmp_path, *FEW, vocabulary=4096)]) as hub:
        found = await judged(tmp_path, hub, monkeypatch, 7 * GIB, "zoo/llama-8b-GGUF")
        assert verdicts(found) == {"Q2_K": "resident", "Q4_K_M": "resident", "Q8_0": "pages", "F16": "pages"}
        assert found.recommended == "Q4_K_M"
        assert found.reason.startswith("largest that stays in memory with 8k context; ")
        rates = {one.name: one.fit.tokens_per_second for one in found.choices if one.fit}
        assert rates["Q4_K_M"] is None and rates["Q8_0"] is not None
        roomy = await judged(tmp_path, hub, monkeypatch, 64 * GIB, "zoo/llama-8b-GGUF")
        assert roomy.recommended == "Q8_0" and "gain nothing" in roomy.reason
        tight = await judged(tmp_path, hub, monkeypatch, 2 * GIB, "zoo/llama-8b-GGUF")
        assert set(verdicts(tight).values()) == {"pages"} and tight.recommended == "Q4_K_M"
        none = await judged(tmp_path, hub, monkeypatch, 1 * GIB, "zoo/llama-8b-GGUF")
        assert set(verdicts(none).values()) == {"wont_run"} and none.recommended is None
        assert "none of them will run" in none.reason


@in_loop
async def test_twenty_choices_cost_one_header(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with HubDouble([llama_repository(tmp_path)]) as hub:
        found = await judged(tmp_path, hub, monkeypatch, 9 * GIB, "zoo/llama-8b-GGUF")
        fetched = sum(asked.sent for asked in hub.log)
        asked = len(hub.log)
    assert len(found.choices) == len(QUANTS) and all(one.fit for one in found.choices)
    own = [one.name for one in found.choices if one.fit and not one.fit.is_derived]
    errors = {one.name: _error(tmp_path, one) for one in found.choices}
    worst = max(errors, key=lambda name: abs(errors[name]))
    print(f"\n{asked} requests, {fetched:,} bytes; own header: {own}; worst: {worst} {errors[worst]:+.3%}")
    assert len(own) == 1
    assert asked <= 12 and fetched < 6 << 20
    assert all(abs(error) < 0.015 for error in errors.values())


def _error(folder: Path, choice: Choice) -> float:
    """Compare private and mapped bytes with those by the file's own header, as a share."""
    shape = read_shape(read_model(folder / choice.files[0].path))
    right = estimate(shape, LoadConfig(context=CONTEXT, threads=1))
    assert choice.fit is not None
    needed = right.private_bytes + right.hot_mapped_bytes
    assert choice.fit.private_bytes == right.private_bytes
    assert choice.fit.mapped_bytes == pytest.approx(right.mapped_bytes, rel=0.001)
    told = float(choice.fit.inequality.split()[3]) * GIB  # "private + weights 5.10 GiB ≤ …"
    return told / needed - 1


@in_loop
async def test_a_projector_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repository = llama_repository(tmp_path, "Q4_K_M", vocabulary=4096)
    with HubDouble([repository]) as hub:
        plain = await judged(tmp_path, hub, monkeypatch, 16 * GIB, repository.id)
        repository.files["mmproj-F16.gguf"] = Virtual(1 << 30)
        seeing = await judged(tmp_path, hub, monkeypatch, 16 * GIB, repository.id)
    before, after = plain.choices[0].fit, seeing.choices[0].fit
    assert before and after and after.private_bytes - before.private_bytes == 1 << 30


@in_loop
async def test_two_models_of_a_repository_have_headers_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository = llama_repository(tmp_path, "Q4_K_M", "Q8_0", vocabulary=4096)
    repository.files["other-Q4_K_M.gguf"] = Bytes(tiny().build())
    # the same name and quant, but another model: its size gives it away
    repository.files["small/llama-8b-Q6_K.gguf"] = Bytes(tiny().build())
    with HubDouble([repository]) as hub:
        found = await judged(tmp_path, hub, monkeypatch, 16 * GIB, repository.id)
    fits = {one.name: one.fit for one in found.choices}
    assert all(fits.values())
    sizes = {name: fit.mapped_bytes for name, fit in fits.items() if fit}
    assert max(sizes["other-Q4_K_M"], sizes["Q6_K"]) < 1 << 20 < min(sizes["llama-8b-Q4_K_M"], sizes["Q8_0"])


@in_loop
async def test_what_cannot_be_judged_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {"x-Q4_0.gguf": Bytes(b"GGUF" + bytes(60)), "y-Q4_0-00001-of-00002.gguf": Bytes(b"GGUF")}
    gated = Faults(refusals=[(403, "GatedRepo", None)], refuses_always=True)
    with HubDouble([HubRepository("a/b", files), HubRepository("a/gated", files, gated)]) as hub:
        found = await judged(tmp_path, hub, monkeypatch, GIB, "a/b")
        assert found.recommended is None and all(one.note and not one.fit for one in found.choices)
        assert "lacks" in {one.name: one.note for one in found.choices}["y-Q4_0"]
        async with judging(tmp_path, hub, monkeypatch, GIB) as (client, choices):
            listed = await client.repository("a/b")
            with pytest.raises(HubFileNotFound):
                await choices.estimated(listed, pick(listed, "y-Q4_0"), {})
            # the Hub lists a gated repository for everyone, and refuses its files
            told = await choices.judged(msgspec.structs.replace(listed, id="a/gated"))
            assert "terms" in {one.name: one.note for one in told.choices}["x-Q4_0"]


@in_loop
async def test_a_split_model_is_read_from_all_its_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = llama_8b("llama-8b-Q8_0", mixed(*QUANTS["Q8_0"]), vocabulary=4096, shards=3)
    first = model.write(tmp_path)
    files = {path.name: Sparse(path) for path in model.files}
    with HubDouble([HubRepository("a/split", files)]) as hub:
        async with judging(tmp_path, hub, monkeypatch, 16 * GIB) as (client, choices):
            listed = await client.repository("a/split")
            remote, report = await choices.estimated(listed, listed.choices[0], {"context": 4096})
        asked = len(hub.gets("a/split"))
    right = estimate(read_model(first), report.estimate.config)
    assert (report.estimate.components, report.estimate.confidence) == (right.components, "exact")
    assert remote.id == "hf:a/split@Q8_0" and asked <= 6


@in_loop
async def test_an_estimate_is_that_of_the_file_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with HubDouble([llama_repository(tmp_path, *FEW, vocabulary=4096)]) as hub:
        async with judging(tmp_path, hub, monkeypatch, 16 * GIB) as (client, choices):
            listed = await client.repository("zoo/llama-8b-GGUF")
            model, report = await choices.estimated(
                listed, pick(listed, "Q8_0"), {"context": 8192}, budget_bytes=6 * GIB
            )
    header = read_model(tmp_path / "llama-8b-Q8_0.gguf")
    right = estimate(header, report.estimate.config)
    assert report.estimate.components == right.components
    assert model.description is not None and model.description.quant == "Q8_0"
    titles = [one.title for one in report.suggestions]
    assert "The model in Q4_K_M" in titles and "The model in F16" not in titles
    assert all("fetched first" in one.cost for one in report.suggestions if "The model in" in one.title)
