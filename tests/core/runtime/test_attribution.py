"""Where a request's time went: five parts that add up, none of them negative."""

import time

import pytest

from octavo.core.engine.protocol import Finished, FinishReason, Prefilled, Text, Timings
from octavo.core.memory.figures import Attribution
from octavo.core.runtime.attribution import Stopwatch, attribute

TIMES = Timings(
    queue_s=0.25,
    prefill_s=1.0,
    first_token_s=1.25,
    decode_s=2.0,
    disk_s=0.5,
    prefill_disk_bytes=7000,
    decode_disk_bytes=4000,
    prefill_major_faults=7,
    decode_major_faults=4,
)


def ended(made: int = 5, reason: FinishReason = "stop", times: Timings = TIMES) -> Finished:
    """Make a request's end."""
    return Finished("r1", reason, 12, 2, made, times)


def sum_of(found: Attribution) -> float:
    return found.queue_s + found.load_s + found.disk_s + found.prefill_s + found.other_s


def test_the_parts_add_up_and_the_rest_is_other() -> None:
    found = attribute(ended(), load_s=3.0, first_token_s=4.5)
    assert (found.queue_s, found.load_s, found.disk_s) == (0.25, 3.0, 0.5)
    assert (found.prefill_s, found.other_s, found.first_token_s) == (0.5, 0.25, 4.5)
    assert sum_of(found) == found.first_token_s


def test_speed_and_bytes_are_of_all_tokens_but_the_first() -> None:
    found = attribute(ended(made=5), load_s=0.0, first_token_s=1.25)
    assert (found.tokens_per_s, found.disk_bytes_per_token) == (2.0, 1000.0)
    assert (found.prefill_disk_bytes, found.decode_major_faults) == (7000, 4)
    alone = attribute(ended(made=1), load_s=0.0, first_token_s=1.25)
    assert (alone.tokens_per_s, alone.disk_bytes_per_token) == (0.0, None)


def test_clocks_that_disagree_make_no_part_negative() -> None:
    times = Timings(queue_s=0.25, prefill_s=1.0, disk_s=1.5)
    found = attribute(ended(times=times), load_s=0.0, first_token_s=1.0)
    assert (found.disk_s, found.prefill_s, found.other_s, found.first_token_s) == (1.0, 0.0, 0.0, 1.25)
    assert found.disk_bytes_per_token is None


def test_a_request_without_a_first_token_is_not_accounted() -> None:
    assert Stopwatch().attribution(ended(made=0, reason="cancelled")) is None
    assert Stopwatch().attribution(ended(made=1, reason="cancelled")) is not None
    assert Stopwatch().attribution(ended(made=0)) is not None  # the first token ended it


def test_the_first_token_comes_with_the_last_part_of_the_prompt(monkeypatch: pytest.MonkeyPatch) -> None:
    now = iter([100.0, 103.0, 105.0])
    monkeypatch.setattr(time, "monotonic", lambda: next(now))
    watch = Stopwatch()
    watch.note_loaded()
    for report in (Prefilled("r1", 4, 12), Prefilled("r1", 12, 12), Text("r1", "a", [1]), ended()):
        watch.note(report)
    found = watch.attribution(ended())
    assert found is not None
    assert (found.load_s, found.first_token_s, found.other_s) == (3.0, 5.0, 0.75)
    assert watch.finished(ended()).timings.load_s == 3.0
    assert watch.finished(ended()).timings.prefill_s == TIMES.prefill_s


def test_a_model_that_was_there_was_not_waited_for() -> None:
    watch = Stopwatch(was_ready=True)
    watch.note_loaded()
    assert watch.finished(ended()).timings.load_s == 0
