"""Predicted against actual bytes of every load, kept; and what later predictions learn from it.

Actual buffers are what llama.cpp's log says when it has allocated them (src/llama-kv-cache.cpp,
llama-memory-recurrent.cpp, llama-context.cpp); the runtime part is the worker's anonymous memory less the
buffers that are committed when it is ready. Only that part and rows of an approximate estimate are corrected.
"""

import contextlib
import re
import statistics
import threading
import time
from collections.abc import Iterable
from pathlib import Path

import msgspec

from octavo.core.config.settings import write_atomically
from octavo.core.errors import StorageFailed
from octavo.core.memory.types import Components, Estimate

FILE_NAME = "ledger.msgpack"
KEPT_PER_MODEL = 4
KEPT_MODELS = 200
LEARNT_FROM = 8
"""Newest loads that the runtime part is learnt from, where the model itself has none."""
WORTH_SAYING = 2 << 20
MIB = 1 << 20

_ROWS = ("kv", "recurrent", "compute", "output")
_LINES = {
    "kv": re.compile(r"KV buffer size = +([\d.]+) MiB"),
    "recurrent": re.compile(r"RS buffer size = +([\d.]+) MiB"),
    "compute": re.compile(r"compute buffer size = +([\d.]+) MiB"),
    "output": re.compile(r"output buffer size = +([\d.]+) MiB"),
    "weights_mapped": re.compile(r"_Mapped model buffer size = +([\d.]+) MiB"),
    "weights_private": re.compile(r"(?<!_Mapped) model buffer size = +([\d.]+) MiB"),
}


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One load: ``predicted`` before any correction, and ``actual``; ``at`` in seconds since the epoch."""

    model: str
    at: float
    n_ctx: int
    predicted: Components
    actual: Components
    anonymous_bytes: int


class Ledger:
    """The loads of this home, in one file of its cache; a damaged file is begun anew."""

    def __init__(self, cache: Path) -> None:
        self._path = cache / FILE_NAME
        self._entries: dict[str, list[Entry]] | None = None
        self._lock = threading.Lock()

    def note(self, entry: Entry) -> None:
        """Keep a load; a full disk loses it."""
        with self._lock, contextlib.suppress(StorageFailed):
            entries = dict(self._read())
            kept = [*entries.pop(entry.model, []), entry]
            entries[entry.model] = kept[-KEPT_PER_MODEL:]
            while len(entries) > KEPT_MODELS:
                del entries[next(iter(entries))]
            self._entries = entries
            write_atomically(self._path, msgspec.msgpack.encode(entries))

    def last(self, model: str) -> Entry | None:
        """Give the newest load of a model."""
        return next(reversed(self._read().get(model, [])), None)

    def corrected(self, estimate: Estimate) -> Estimate:
        """Give ``estimate`` with what earlier loads showed, and say so in its reasons."""
        own = self._read().get(estimate.model, [])
        parts, reasons = estimate.components, list(estimate.reasons)
        seen = own or self._newest()
        if seen:
            parts, reasons = _with_runtime(parts, reasons, seen, is_own=bool(own))
        if own and estimate.confidence == "approximate":
            parts, reasons = _with_rows(parts, reasons, own[-1])
        if parts == estimate.components:
            return estimate
        return msgspec.structs.replace(
            estimate, components=parts, private_bytes=parts.private_bytes, reasons=reasons
        )

    def _newest(self) -> list[Entry]:
        every = [entry for entries in self._read().values() for entry in entries]
        return sorted(every, key=lambda entry: entry.at)[-LEARNT_FROM:]

    def _read(self) -> dict[str, list[Entry]]:
        if self._entries is None:
            try:
                self._entries = msgspec.msgpack.decode(self._path.read_bytes(), type=dict[str, list[Entry]])
            except (OSError, msgspec.DecodeError):
                self._entries = {}
        return self._entries


def compare(estimate: Estimate, log: Iterable[str], anonymous_bytes: int) -> Entry:
    """Make the entry of a load from the worker's log and its anonymous bytes before any were given back.

    Those are 0 where the system does not tell; then nothing is known of the runtime part either.
    """
    predicted = estimate.components
    found = actual_rows(log)
    committed = sum(found[name] for name in ("kv", "recurrent", "weights_private"))
    # the log's figure for mapped weights is the span from the first to the last, not their sum
    locked = found["weights_mapped"] if not predicted.weights_mapped else 0
    found["weights_mapped"] = predicted.weights_mapped
    runtime = max(anonymous_bytes - committed, 0) if anonymous_bytes else predicted.runtime
    if locked:  # a locked mapping can't be dropped, so it counts as private; it is no anonymous memory
        found["weights_private"] = predicted.weights_private
    actual = msgspec.structs.replace(predicted, **found, runtime=runtime)
    return Entry(
        model=estimate.model,
        at=time.time(),
        n_ctx=estimate.n_ctx,
        predicted=predicted,
        actual=actual,
        anonymous_bytes=anonymous_bytes,
    )


def actual_rows(log: Iterable[str]) -> dict[str, int]:
    """Sum up the buffers that llama.cpp's log tells of, in bytes (it tells 0.01 MiB)."""
    sums = dict.fromkeys(_LINES, 0)
    for line in log:
        for name, pattern in _LINES.items():
            if found := pattern.search(line):
                sums[name] += round(float(found[1]) * MIB)
    return sums


def _with_runtime(
    parts: Components, reasons: list[str], seen: list[Entry], *, is_own: bool
) -> tuple[Components, list[str]]:
    """Raise the runtime part by the middle of what it was short of.

    It is never lowered: work buffers are touched by the first long prompt only, after a load was noted.
    """
    off = [entry.actual.runtime - entry.predicted.runtime for entry in seen if entry.anonymous_bytes]
    move = int(statistics.median(off)) if off else 0
    if move < WORTH_SAYING or not parts.runtime:
        return parts, reasons
    whose = "this model" if is_own else "other models"
    said = f"runtime is corrected by +{move / MIB:.0f} MiB, as {len(off)} earlier load(s) of {whose} showed"
    return msgspec.structs.replace(parts, runtime=parts.runtime + move), [*reasons, said]


def _with_rows(parts: Components, reasons: list[str], last: Entry) -> tuple[Components, list[str]]:
    """Scale the rows of an estimate that is approximate by what they were off at the last load."""
    changed: dict[str, int] = {}
    for name in _ROWS:
        was, came = getattr(last.predicted, name), getattr(last.actual, name)
        if was and came and was != came:
            changed[name] = round(getattr(parts, name) * came / was)
    if not changed:
        return parts, reasons
    said = f"{', '.join(changed)} corrected by the actual buffers of the last load"
    return msgspec.structs.replace(parts, **changed), [*reasons, said]
