"""Continuous batching, exactly: what goes into each batch, and what happens when one fails."""

from collections.abc import Sequence

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from octavo.core.config.load_config import LoadConfig
from octavo.core.engine.meter import Meter
from octavo.core.engine.pace import Pace
from octavo.core.engine.protocol import (
    AnyReport,
    Failed,
    Finished,
    Generate,
    Prefilled,
    Sampling,
    SlotIdle,
    Started,
    Text,
)
from octavo.core.engine.scheduler import Scheduler
from tests.core.engine.fake_context import FakeBatch, FakeContext, FakeCounters, FakeSampler, FakeWords


class Bench:
    """A scheduler over a fake context, and all that it reported."""

    def __init__(
        self, context: FakeContext, scripts: dict[str, list[int]] | None = None, **config: object
    ) -> None:
        self.context = context
        self.counters = FakeCounters()
        self.reports: list[AnyReport] = []
        self.samplers: list[FakeSampler] = []
        self._scripts = scripts or {}
        settings_ = msgspec.structs.replace(LoadConfig(batch=32, micro_batch=32, mixed_step=16), **config)
        self.scheduler = Scheduler(
            context,
            FakeBatch(),
            FakeWords(),
            settings_,
            self._sampler,
            self.reports.append,  # type: ignore[arg-type]
            Meter(self.counters),
        )

    def _sampler(self, work: object) -> FakeSampler:
        sampler = FakeSampler(self.context, self._scripts.get(work.request.request))  # type: ignore[attr-defined]
        self.samplers.append(sampler)
        return sampler

    def ask(self, name: str, prompt: Sequence[int], most: int | None = 4, **more: object) -> None:
        self.scheduler.submit(Generate(name, [], max_tokens=most, **more), list(prompt))  # type: ignore[arg-type]

    def run(self, steps: int = 500) -> None:
        for _ in range(steps):
            if not self.scheduler.has_work:
                return
            self.scheduler.step()
        raise AssertionError("it never ends")

    def of(self, name: str, kind: type) -> list[AnyReport]:
        return [report for report in self.reports if isinstance(report, kind) and report.request == name]

    def tokens(self, name: str) -> list[int]:
        return [token for report in self.of(name, Text) for token in report.tokens]


def test_a_prompt_is_read_in_one_batch_and_its_tokens_follow() -> None:
    bench = Bench(FakeContext())
    bench.ask("a", range(10, 20))
    bench.run()
    assert bench.tokens("a") == [20, 21, 22, 23]
    assert [len(batch) for batch in bench.context.batches] == [10, 1, 1, 1]
    (end,) = bench.of("a", Finished)
    assert (end.reason, end.prompt_tokens, end.completion_tokens) == ("length", 10, 4)


def test_running_streams_get_a_token_in_every_step_of_a_prefill() -> None:
    bench = Bench(FakeContext(cells=256))
    bench.ask("a", range(10, 14), most=30)
    bench.scheduler.step()
    bench.ask("b", range(100, 140), most=1)
    bench.run()
    mixed = [batch for batch in bench.context.batches if {row[0] for row in batch} == {0, 1}]
    assert len(mixed) == 3  # 40 tokens, 15 a step beside the stream
    assert all(len(batch) <= 16 and sum(row[0] == 0 for row in batch) == 1 for batch in mixed)


def test_without_streams_a_prefill_takes_whole_batches() -> None:
    bench = Bench(FakeContext(cells=256))
    bench.ask("a", range(10, 90), most=1)
    bench.run()
    assert [len(batch) for batch in bench.context.batches] == [32, 32, 16]
    assert [report.done for report in bench.of("a", Prefilled)] == [32, 64, 80]


def test_more_requests_than_slots_wait_and_all_finish_unmixed() -> None:
    bench = Bench(FakeContext(cells=256), slots=2)
    for number in range(6):
        bench.ask(f"r{number}", range(100 * number + 10, 100 * number + 20))
    bench.run()
    for number in range(6):
        assert bench.tokens(f"r{number}") == [100 * number + 20 + i for i in range(4)]
    assert all(sampler.is_free for sampler in bench.samplers)


def test_the_second_turn_reads_only_what_is_new() -> None:
    bench = Bench(FakeContext())
    bench.ask("a", range(10, 20))
    bench.run()
    bench.ask("b", [*range(10, 20), 20, 21, 22, 500, 501])
    bench.run()
    (start,) = bench.of("b", Started)
    assert start.cached_tokens == 13
    assert [row[2] for row in bench.context.batches[4]] == [500, 501]


def test_a_prefix_is_reused_from_a_slot_that_is_busy() -> None:
    bench = Bench(FakeContext(cells=256))
    bench.ask("a", range(10, 30), most=40)
    bench.scheduler.step()
    bench.ask("b", [*range(10, 28), 700])
    bench.run()
    assert bench.of("b", Started)[0].cached_tokens == 18
    assert bench.tokens("b")[0] == 701


def test_cells_are_never_shared_between_separate_pools() -> None:
    bench = Bench(FakeContext(cells=256, unified=False), kv_unified=False)
    bench.ask("a", range(10, 30), most=40)
    bench.scheduler.step()
    bench.ask("b", [*range(10, 28), 700])
    bench.run()
    assert bench.of("b", Started)[0].cached_tokens == 0


def test_the_same_prompt_again_decodes_its_last_token_anew() -> None:
    bench = Bench(FakeContext())
    for name in "ab":
        bench.ask(name, range(10, 20))
        bench.run()
    assert bench.of("b", Started)[0].cached_tokens == 9
    assert bench.tokens("a") == bench.tokens("b")


def test_a_window_that_slid_away_is_not_reused() -> None:
    context = FakeContext(cells=256, window=4)
    bench = Bench(context, slots=1)
    bench.ask("a", range(10, 40))
    bench.run()
    context.first[0] = 28
    bench.ask("b", [*range(10, 20), 700])
    bench.run()
    assert bench.of("b", Started)[0].cached_tokens == 0


def test_a_state_that_cannot_be_cut_is_read_anew() -> None:
    context = FakeContext(cells=256)
    bench = Bench(context, slots=1)
    bench.ask("a", range(10, 40))
    bench.run()
    context.can_cut = False
    bench.ask("b", [*range(10, 20), 700])
    bench.run()
    assert bench.tokens("b") == [701, 702, 703, 704]


def test_no_room_gives_back_idle_slots_first() -> None:
    bench = Bench(FakeContext(cells=40), slots=2)
    bench.ask("old", range(10, 30))
    bench.run()
    bench.ask("new", range(500, 530))
    bench.run()
    assert bench.of("new", Finished)[0].reason == "length"
    assert bench.tokens("new") == [530, 531, 532, 533]


def test_no_room_at_all_pushes_the_youngest_back_and_loses_nothing() -> None:
    bench = Bench(FakeContext(cells=48), slots=2)
    bench.ask("a", range(10, 30), most=20)
    bench.ask("b", range(500, 520), most=20)
    bench.run()
    assert bench.tokens("a") == list(range(30, 50))
    assert bench.tokens("b") == list(range(520, 540))
    assert len(bench.of("b", Started)) == 1


def test_alone_and_out_of_cells_it_ends_with_length() -> None:
    context = FakeContext(cells=32)
    context.usable = 64  # as if cells were lost
    bench = Bench(context)
    bench.ask("a", range(10, 30), most=40)
    bench.run()
    assert bench.of("a", Finished)[0].reason == "length"
    assert len(bench.tokens("a")) == 13


def test_the_context_ends_a_reply_without_a_limit() -> None:
    bench = Bench(FakeContext(cells=32))
    bench.ask("a", range(10, 30), most=None)
    bench.run()
    (end,) = bench.of("a", Finished)
    assert (end.reason, end.completion_tokens) == ("length", 12)


def test_a_prompt_over_the_context_is_refused_with_both_numbers() -> None:
    bench = Bench(FakeContext(cells=32))
    bench.ask("a", range(10, 60))
    (failed,) = bench.of("a", Failed)
    assert failed.error.code == "context_length_exceeded"
    assert (failed.error.details["n_prompt_tokens"], failed.error.details["n_ctx"]) == (50, 32)
    assert "50" in failed.error.message and "32" in failed.error.message
    assert not bench.scheduler.has_work


@pytest.mark.parametrize("prompt", [[], [1000], [-1]])
def test_bad_tokens_never_reach_the_engine(prompt: list[int]) -> None:
    bench = Bench(FakeContext())
    bench.ask("a", prompt)
    assert bench.of("a", Failed)[0].error.code == "invalid_request"
    assert not bench.context.batches


def test_a_failed_batch_fails_only_the_requests_in_it() -> None:
    bench = Bench(FakeContext(cells=256), slots=1)
    bench.ask("a", range(10, 20))
    bench.ask("b", range(500, 510))
    bench.context.results = [-3]
    bench.run()
    assert bench.of("a", Failed)[0].error.code == "decode_failed"
    assert bench.tokens("b") == [510, 511, 512, 513]


def test_an_aborted_step_is_done_again_for_those_who_stay() -> None:
    bench = Bench(FakeContext(cells=256))
    bench.ask("a", range(10, 14), most=6)
    bench.scheduler.step()
    bench.ask("b", range(100, 140))
    bench.context.results = [2]
    bench.scheduler.step()
    bench.scheduler.cancel("b")
    bench.run()
    assert bench.tokens("a") == list(range(14, 20))
    assert bench.of("b", Finished)[0].reason == "cancelled"
    assert isinstance(bench.reports[[type(r) for r in bench.reports].index(SlotIdle)], SlotIdle)


def test_a_queued_request_that_is_cancelled_never_runs() -> None:
    bench = Bench(FakeContext(cells=256), slots=1)
    bench.ask("a", range(10, 20))
    bench.scheduler.step()
    bench.ask("b", range(500, 510))
    bench.scheduler.cancel("b")
    bench.run()
    assert bench.of("b", Finished)[0].reason == "cancelled"
    assert not bench.of("b", Started)
    assert all(row[2] < 500 for batch in bench.context.batches for row in batch)


def test_an_end_token_stops_and_is_not_spoken() -> None:
    bench = Bench(FakeContext(), {"a": [50, 1]})
    bench.ask("a", range(10, 20))
    bench.run()
    (end,) = bench.of("a", Finished)
    assert (end.reason, bench.tokens("a")) == ("stop", [50])


def test_what_a_template_ends_a_turn_with_is_a_token_or_a_stop_string() -> None:
    bench = Bench(FakeContext(), {"a": [50, 60, 70], "b": [50, 60, 70]})
    bench.ask("a", range(10, 20), ends=["<60>"])
    bench.ask("b", range(10, 20), ends=["<60><70>"])
    bench.run()
    assert "".join(report.text for report in bench.of("a", Text)) == "<50>"
    assert "".join(report.text for report in bench.of("b", Text)) == "<50>"


def test_a_stop_string_ends_the_reply_without_leaking() -> None:
    bench = Bench(FakeContext(), {"a": [50, 51, 52, 53]})
    bench.ask("a", range(10, 20), stop=["1><5"])
    bench.run()
    assert "".join(report.text for report in bench.of("a", Text)) == "<50><5"
    (end,) = bench.of("a", Finished)
    assert (end.reason, end.stop_text) == ("stop", "1><5")


def test_held_back_text_comes_out_when_the_limit_is_met() -> None:
    bench = Bench(FakeContext(), {"a": [50, 51]})
    bench.ask("a", range(10, 20), most=2, stop=["51>x"])
    bench.run()
    assert "".join(report.text for report in bench.of("a", Text)) == "<50><51>"


@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.integers(1, 40), st.integers(1, 20), st.booleans()), min_size=1, max_size=9),
    st.integers(1, 4),
    st.integers(42, 120),
    st.lists(st.sampled_from([0, 0, 0, 2]), max_size=30),
)
def test_whatever_comes_every_request_gets_its_own_tokens(
    wishes: list[tuple[int, int, bool]], slots: int, cells: int, results: list[int]
) -> None:
    """The tokens of a reply depend on its prompt alone, not on neighbours, aborts, or lack of room."""
    bench = Bench(FakeContext(cells=cells), slots=slots)
    bench.context.results = results
    for number, (length, most, shares_prefix) in enumerate(wishes):
        first = 10 if shares_prefix else 100 * number + 10
        bench.ask(f"r{number}", range(first, first + length), most=most)
        bench.scheduler.step()
    bench.run()
    for number, (length, most, shares_prefix) in enumerate(wishes):
        first = (10 if shares_prefix else 100 * number + 10) + length
        made = min(most, cells - length)
        if length < cells:
            assert bench.tokens(f"r{number}") == [2 + (first - 2 + i) % 998 for i in range(made)]
            assert len(bench.of(f"r{number}", Finished)) == 1
    assert bench.scheduler.figures(0, 0).active == 0


def test_short_prompts_stay_below_an_attention_tile_together() -> None:
    bench = Bench(FakeContext(cells=512, batch_limit=128), batch=128, micro_batch=128)
    for number in range(4):
        bench.ask(f"r{number}", range(100 * number + 10, 100 * number + 40))
    bench.run()
    assert max(len(batch) for batch in bench.context.batches) < 64


def test_a_slow_machine_gets_smaller_mixed_steps() -> None:
    pace = Pace()
    assert pace.cap(128, 4) == 16  # nothing is known yet
    pace.note(100, 0.1)
    assert pace.cap(128, 4) == 128
    pace.note(100, 2.0)
    assert pace.cap(128, 4) < 128
    pace.note(100, 1000.0)
    assert pace.cap(128, 4) == 16
    assert pace.cap(128, 40) == 41


def test_a_seeded_request_starts_from_an_empty_cache_when_alone() -> None:
    bench = Bench(FakeContext(cells=256))
    bench.ask("a", range(10, 30))
    bench.run()
    bench.ask("b", range(10, 30), sampling=Sampling(seed=1))
    bench.run()
    assert bench.of("b", Started)[0].cached_tokens == 0
    bench.ask("c", range(10, 30), sampling=Sampling(seed=1, temperature=0))
    bench.run()
    assert bench.of("c", Started)[0].cached_tokens == 19
