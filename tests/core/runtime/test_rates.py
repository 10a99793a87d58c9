"""Rates of the last second, exactly; none before there are two looks, none across two workers."""

from octavo.core.engine.protocol import Figures
from octavo.core.memory.figures import KvFigures
from octavo.core.runtime.rates import Meter, Rates

KV = KvFigures(used_cells=0, size_cells=1, size_bytes=1, committed_bytes=1)


def counted(tokens: int, disk: int | None = None, faults: int | None = None) -> Figures:
    """Make what a worker counts."""
    return Figures(KV, 1, 0, tokens, 0, disk_bytes_total=disk, major_faults_total=faults)


def test_rates_are_those_of_the_last_second() -> None:
    meter = Meter()
    for quarter in range(8):  # 8 tokens a second, 100 bytes and half a fault a token
        found = meter.after(quarter / 4, 7, counted(2 * quarter, 200 * quarter, quarter))
    assert found == Rates(8.0, 800.0, 100.0, 0.5)
    found = meter.after(2.0, 7, counted(14, 1400, 7))  # one quarter of the last second was idle
    assert found == Rates(6.0, 600.0, 100.0, 0.5)


def test_a_pause_ends_them_within_a_second() -> None:
    meter = Meter()
    meter.after(0.0, 7, counted(0, 0, 0))
    assert meter.after(1.0, 7, counted(10, 50, 0)).tokens_per_s == 10
    assert meter.after(1.5, 7, counted(10, 50, 0)).tokens_per_s == 10 / 1.5
    assert meter.after(2.0, 7, counted(10, 50, 0)) == Rates(0.0, 0.0, None, None)


def test_seldom_looks_span_their_whole_pause() -> None:
    meter = Meter()
    meter.after(0.0, 7, counted(0, 0, 0))
    assert meter.after(2.0, 7, counted(10, 50, 5)) == Rates(5.0, 25.0, 5.0, 0.5)


def test_one_look_tells_no_rate_and_what_the_system_hides_stays_unknown() -> None:
    assert Meter().after(0.0, 7, counted(100, 100, 0)) == Rates(0.0, 0.0, None, None)
    meter = Meter()
    meter.after(0.0, 7, counted(0))
    assert meter.after(1.0, 7, counted(4)) == Rates(4.0, None, None, None)


def test_a_worker_that_was_started_anew_begins_anew() -> None:
    meter = Meter()
    meter.after(0.0, 7, counted(1000, 9000, 90))
    assert meter.after(0.5, None, None) == Rates()
    assert meter.after(1.0, 8, counted(10, 100, 1)) == Rates(0.0, 0.0, None, None)
    assert meter.after(2.0, 8, counted(20, 200, 2)) == Rates(10.0, 100.0, 10.0, 0.1)
