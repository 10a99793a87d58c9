"""Where the time and the disk bytes of one request went, from its arrival at the runtime on."""

import time

import msgspec

from octavo.core.engine.protocol import Finished, Prefilled, Text, Timings
from octavo.core.memory.figures import Attribution


class Stopwatch:
    """The runtime's own clock of a request, beside the worker's; starts when it is made.

    The worker's clock starts when it takes the request up, so what was before and between is only known here.
    ``was_ready``: the model was there when the request came, so that nothing was waited for.
    """

    def __init__(self, *, was_ready: bool = False) -> None:
        self._was_ready = was_ready
        self._arrived = time.monotonic()
        self._loaded_s = 0.0
        self._first_token_s: float | None = None

    def note_loaded(self) -> None:
        """The model answers: what passed until now was the wait for it, room for it included."""
        if not self._was_ready:
            self._loaded_s = time.monotonic() - self._arrived

    def note(self, report: object) -> None:
        """See whether a report shows that the first token was made: it comes with the prompt's last part."""
        match report:
            case Prefilled(done=done, total=total) if done < total:
                return
            case Prefilled() | Text() | Finished() if self._first_token_s is None:
                self._first_token_s = time.monotonic() - self._arrived

    def finished(self, report: Finished) -> Finished:
        """Give the worker's report with the time of the load."""
        timings = msgspec.structs.replace(report.timings, load_s=self._loaded_s)
        return msgspec.structs.replace(report, timings=timings)

    def attribution(self, report: Finished) -> Attribution | None:
        """Give where the time went; None for a request that was called off before its first token."""
        if report.reason == "cancelled" and not report.completion_tokens:
            return None
        return attribute(report, self._loaded_s, self._first_token_s or 0.0)


def attribute(report: Finished, load_s: float, first_token_s: float) -> Attribution:
    """Split up a request of which the runtime saw the first token after ``first_token_s``.

    Where the clocks disagree, as they may by the time of a switch between processes, the parts count.
    Speed and bytes per token are those of decoding: of all tokens but the first.
    """
    times = report.timings
    disk_s = min(times.disk_s, times.prefill_s)
    known_s = times.queue_s + load_s + times.prefill_s
    other_s = max(first_token_s - known_s, 0.0)
    decoded = report.completion_tokens - 1
    return Attribution(
        request=report.request,
        ended_at=time.time(),
        queue_s=times.queue_s,
        load_s=load_s,
        disk_s=disk_s,
        prefill_s=times.prefill_s - disk_s,
        other_s=other_s,
        first_token_s=known_s + other_s,
        decode_s=times.decode_s,
        prompt_tokens=report.prompt_tokens,
        cached_tokens=report.cached_tokens,
        completion_tokens=report.completion_tokens,
        prefill_disk_bytes=times.prefill_disk_bytes,
        decode_disk_bytes=times.decode_disk_bytes,
        prefill_major_faults=times.prefill_major_faults,
        decode_major_faults=times.decode_major_faults,
        tokens_per_s=decoded / times.decode_s if decoded > 0 and times.decode_s > 0 else 0.0,
        disk_bytes_per_token=_per_token(times, decoded),
    )


def _per_token(times: Timings, decoded: int) -> float | None:
    return times.decode_disk_bytes / decoded if times.decode_disk_bytes is not None and decoded > 0 else None
