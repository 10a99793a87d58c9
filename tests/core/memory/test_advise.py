"""Advice: what costs no quality first, every alternative with its own totals; and the largest context."""

import hypothesis.strategies as st
import msgspec
import pytest
from hypothesis import given

from octavo.core.config.load_config import LoadConfig, LoadMode
from octavo.core.memory.advise import SMALLEST_CONTEXT, Sibling, advise, fit, with_context
from octavo.core.memory.types import Bandwidth, Estimate, Suggestion
from octavo.core.memory.verdict import judge
from tests.core.memory.values import MB, budget, estimated

DISK = Bandwidth(1e9, 2e9)
WISH = LoadConfig(context=8000)


def advised(megabytes: int, config: LoadConfig = WISH, **more: object) -> list[Suggestion]:
    """Ask for advice about the made-up model."""
    return advise(estimated, config, budget(megabytes), DISK, **more)  # type: ignore[arg-type]


def test_what_fits_needs_no_advice() -> None:
    assert advised(5000) == []


def test_what_costs_no_quality_comes_first() -> None:
    found = advised(1200)
    kinds = [one.verdict for one in found]
    assert kinds == sorted(kinds, key=["resident", "pages", "wont_run"].index)
    assert found[0].title == "KV cache in q8_0"
    assert found[0].config.kv_k == found[0].config.kv_v == "q8_0"


@given(megabytes=st.integers(50, 1500), context=st.integers(256, 60_000), slots=st.integers(1, 8))
def test_every_suggestion_is_true_and_better(megabytes: int, context: int, slots: int) -> None:
    wish = LoadConfig(context=context, slots=slots)
    now = judge(estimated(wish), budget(megabytes), DISK)
    rank = ["resident", "pages", "wont_run"].index
    for one in advised(megabytes, wish):
        again = estimated(one.config)
        assert (one.private_bytes, one.mapped_bytes) == (again.private_bytes, again.mapped_bytes)
        assert one.verdict == judge(again, budget(megabytes), DISK).kind
        assert rank(one.verdict) <= rank(now.kind)


def test_a_smaller_context_is_the_largest_that_fits() -> None:
    title = next(one for one in advised(1000) if one.title.startswith("Context of") and "," in one.title)
    assert title.verdict == "resident"
    more = with_context(title.config, (title.config.context or 0) + 1280)
    assert judge(estimated(more), budget(1000), DISK).kind != "resident"


def test_another_quant_is_offered_with_its_own_figures() -> None:
    def smaller(config: LoadConfig) -> Estimate:
        return estimated(config, mapped=100)

    siblings = [Sibling("acme/made-up@Q2_K", "Q2_K", smaller, is_here=False)]
    found = advised(1100, siblings=siblings)
    (one,) = (one for one in found if one.model == "acme/made-up@Q2_K")
    assert one.mapped_bytes == 100 * MB
    assert "fetched first" in one.cost


def test_copied_weights_are_offered_as_mapped() -> None:
    def copied(config: LoadConfig) -> Estimate:
        made = estimated(config)
        if config.load_mode is LoadMode.MMAP and not config.repack:
            return made
        parts = msgspec.structs.replace(made.components, weights_mapped=0, weights_private=600 * MB)
        return msgspec.structs.replace(
            made, components=parts, private_bytes=parts.private_bytes, mapped_bytes=0, hot_mapped_bytes=0
        )

    config = LoadConfig(context=256, repack=True, load_mode=LoadMode.NONE)
    found = advise(copied, config, budget(400), DISK)
    (one,) = (one for one in found if one.title.startswith("Weights mapped"))
    assert (one.verdict, one.config.repack, one.config.load_mode) == ("pages", False, LoadMode.MMAP)


def test_slots_and_micro_batch_are_offered_where_they_help() -> None:
    titles = [one.title for one in advised(420, LoadConfig(context=3000, micro_batch=2048, batch=2048))]
    assert "Micro-batch 128" in titles


@given(megabytes=st.integers(1, 5000), most=st.integers(256, 200_000))
def test_fit_gives_a_context_that_fits_and_no_larger_one_would(megabytes: int, most: int) -> None:
    there = budget(megabytes)
    context = fit(estimated, WISH, there, most)
    assert SMALLEST_CONTEXT <= context <= max(most, SMALLEST_CONTEXT)
    stays = judge(estimated(with_context(WISH, SMALLEST_CONTEXT)), there, DISK).kind == "resident"
    if stays:
        assert judge(estimated(with_context(WISH, context)), there, DISK).kind == "resident"
        larger = min(context + 1280, most)
        if larger > context + 1279:
            assert judge(estimated(with_context(WISH, larger)), there, DISK).kind != "resident"


def test_a_model_that_pages_gets_a_context_that_leaves_room_for_weights() -> None:
    context = fit(estimated, WISH, budget(500), 32_768)
    private = estimated(with_context(WISH, context)).private_bytes
    assert 200 * MB < private <= 250 * MB


@pytest.mark.parametrize("most", [0, 100, 256])
def test_fit_never_goes_below_the_smallest_context(most: int) -> None:
    assert fit(estimated, WISH, budget(1), most) == SMALLEST_CONTEXT
