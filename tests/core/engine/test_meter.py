"""What decoding costs the disk, and who is charged for it."""

from octavo.core.engine.meter import Cost, Meter, Spent
from octavo.core.engine.protocol import Finished
from octavo.core.memory.probe import Counts
from tests.core.engine.fake_context import FakeContext, FakeCounters
from tests.core.engine.test_scheduler import Bench


def test_a_step_costs_what_the_counters_grew_by() -> None:
    counters = FakeCounters()
    meter = Meter(counters)
    counters.disk_bytes = 500  # between the steps: nobody's
    meter.begin()
    counters.disk_bytes, counters.major_faults, counters.off_cpu_s = 4596, 3, 0.5
    assert meter.end() == Spent(4096, 3, 0.5)
    assert (meter.disk_bytes_total, meter.major_faults_total) == (4096, 3)


def test_standing_still_without_reading_is_not_the_disks_fault() -> None:
    counters = FakeCounters()
    meter = Meter(counters)
    meter.begin()
    counters.off_cpu_s = 2.0
    assert meter.end() == Spent(0, 0, 0.0)


def test_what_a_warm_up_reads_meanwhile_is_not_charged() -> None:
    counters, warmed = FakeCounters(), [0]
    meter = Meter(counters, lambda: warmed[0])
    meter.begin()
    counters.disk_bytes, warmed[0] = 10_000, 9_000
    assert meter.end().disk_bytes == 1_000


def test_what_a_system_does_not_tell_stays_unknown() -> None:
    class Silent:
        def read(self) -> Counts:
            return Counts(None, None, None, None)

    meter, cost = Meter(Silent()), Cost()
    meter.begin()
    spent = meter.end()
    cost.add(spent, 1, 1, is_prefill=True)
    assert spent == Spent(None, None, 0.0)
    assert (cost.prefill_disk_bytes, cost.decode_disk_bytes) == (None, 0)
    assert meter.disk_bytes_total is None


def test_requests_of_one_step_share_its_bytes_by_their_tokens() -> None:
    class Reading(FakeContext):
        def decode(self, batch: object) -> int:
            bench.counters.disk_bytes += 1_000 * len(batch.rows)  # type: ignore[attr-defined]
            bench.counters.off_cpu_s += 0.25
            return super().decode(batch)  # type: ignore[arg-type]

    bench = Bench(Reading())
    bench.ask("long", range(10, 20), most=3)
    bench.ask("short", range(30, 34), most=3)
    bench.run()
    (long,), (short,) = bench.of("long", Finished), bench.of("short", Finished)
    assert (long.timings.prefill_disk_bytes, short.timings.prefill_disk_bytes) == (10_000, 4_000)
    assert (long.timings.decode_disk_bytes, short.timings.decode_disk_bytes) == (2_000, 2_000)
    assert (long.timings.disk_s, short.timings.disk_s) == (0.25, 0.25)  # both stood still
