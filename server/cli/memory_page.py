"""What ``octavo memory`` prints for a person: one loaded model's memory as a page of lines."""

import sys
import time
from collections.abc import Iterable, Iterator, Sequence

from octavo.core.memory.figures import (
    Attribution,
    KvFigures,
    LayerResidency,
    MemoryDetail,
    Pin,
    ProcessFigures,
    SystemFigures,
)
from octavo.core.memory.layout import OTHER
from octavo.core.memory.types import Components
from octavo.server.cli.console import amount

BAR_CELLS, FOLDED_BAR_CELLS = 20, 8
GAP = 2
UNKNOWN = "unknown"
GIVEN_BACK_LINES = 8

Row = tuple[str, ...]


def page(detail: MemoryDetail, system: SystemFigures, fold_to: int | None = None) -> list[str]:
    """Give all that is known of a model's memory, section by section; what moves most comes first.

    A layer is a row, or with ``fold_to`` as many are in one as fit that many characters.
    """
    name = detail.instance if detail.instance == detail.model else f"{detail.instance} ({detail.model})"
    lines = [f"{name}, process {detail.process.pid}" if detail.process else f"{name}, {_stopped(detail)}"]
    for title, found in _sections(detail, system, fold_to):
        if found:
            lines += ["", title, *found]
    return lines


def line(detail: MemoryDetail, at: float) -> str:
    """Give the figures that move, in one line."""
    process, residency = detail.process, detail.residency
    parts = [time.strftime("%H:%M:%S", time.localtime(at))]
    if process is None:
        return "  ".join([*parts, _stopped(detail)])
    parts += [f"private {amount(process.private_bytes)}", f"file {amount(process.file_bytes)}"]
    if detail.kv is not None:
        parts.append(f"KV {detail.kv.used_cells}/{detail.kv.size_cells} cells")
    if residency is not None and residency.resident_bytes is not None:
        parts.append(f"cached {amount(residency.resident_bytes)} of {amount(residency.total_bytes)}")
    parts.append(f"{detail.tokens_per_s:.1f} tokens/s")
    parts.append(f"disk {_or_unknown(detail.disk_bytes_per_token)}/token")
    return "  ".join(parts)


def _stopped(detail: MemoryDetail) -> str:
    """Say why there is no process."""
    if detail.state == "crashed":
        return f"crashed: {detail.fault} Its next request starts it again."
    return detail.state if detail.state != "ready" else "no process"


def pin_words(pin: Pin) -> str:
    """Say what is kept in memory, how, and why it is no lock."""
    what = "the whole model" if pin.layers is None else layer_words(pin.layers)
    how = "locked (mlock)" if pin.kind == "mlock" else "touched again and again, not locked (touch)"
    reason = f": {pin.reason}" if pin.reason else ""
    return f"{amount(pin.pinned_bytes)} of {what} {how}{reason}"


def layer_words(layers: Sequence[int]) -> str:
    """Write layers in short: ``layers 0-3,7``, and ``other`` for what belongs to none."""
    spans: list[list[int]] = []
    numbers = sorted(set(layers) - {OTHER})
    for layer in numbers:
        if spans and layer == spans[-1][1] + 1:
            spans[-1][1] = layer
        else:
            spans.append([layer, layer])
    written = ",".join(str(first) if first == last else f"{first}-{last}" for first, last in spans)
    words = [f"layer{'s' if len(numbers) > 1 else ''} {written}"] if numbers else []
    return " and ".join([*words, *(["what is in no layer"] if OTHER in layers else [])])


def _sections(
    detail: MemoryDetail, system: SystemFigures, fold_to: int | None
) -> Iterator[tuple[str, list[str]]]:
    if detail.process is not None:
        yield "memory of the process", _columns(_process(detail.process, detail.load_disk_bytes))
    yield "speed", _columns(_speed(detail))
    yield "the model's files in the page cache", _residency(detail, fold_to)
    yield "kept in memory", _columns(_pinned(detail))
    if detail.kv is not None:
        yield "KV cache", _columns(_kv(detail.kv))
    if detail.requests:
        yield "last request", _columns(_request(detail.requests[-1]))
    yield "given back to the system", _columns(_given_back(detail))
    yield "at load", _columns(_components(detail))
    yield "the machine", _columns(_machine(system))


def _process(process: ProcessFigures, load_disk_bytes: int | None) -> Iterator[Row]:
    yield "private", amount(process.private_bytes), "must stay"
    yield "file", amount(process.file_bytes), "mapped; can be dropped and read again"
    yield "shared", amount(process.shared_bytes), "shared memory"
    yield "resident", amount(process.resident_bytes), "all three: what top and htop call RES"
    yield "PSS", _or_unknown(process.proportional_bytes), "shared pages divided by their users"
    yield "swap", _or_unknown(process.swap_bytes), ""
    yield "page faults", f"{_count(process.minor_faults)} minor", f"{_count(process.major_faults)} major"
    by_load = "" if load_disk_bytes is None else f"of that {amount(load_disk_bytes)} by the load"
    yield "read from disk", _or_unknown(process.disk_bytes), by_load


def _kv(kv: KvFigures) -> Iterator[Row]:
    yield "cells", f"{kv.used_cells:,} of {kv.size_cells:,} in use", ""
    rest = "the rest was given back" if kv.committed_bytes < kv.size_bytes else ""
    yield "committed", f"{amount(kv.committed_bytes)} of {amount(kv.size_bytes)}", rest
    for slot in kv.slots:
        shared = f", {slot.shared_cells:,} shared" if slot.shared_cells else ""
        state = (
            f"idle for {slot.idle_s:.0f} s" if slot.idle_s is not None else "answers" if slot.cells else ""
        )
        yield f"slot {slot.slot}", f"{slot.cells:,} cells{shared}", state


def _components(detail: MemoryDetail) -> Iterator[Row]:
    sides = [detail.predicted, detail.actual]
    shown = [
        name for name in Components.__struct_fields__ if any(side and getattr(side, name) for side in sides)
    ]
    if shown:
        yield "part", "predicted", "actual"
    for name in shown:
        predicted, actual = (amount(getattr(side, name)) if side else UNKNOWN for side in sides)
        yield name.replace("_", " "), predicted, actual


def _speed(detail: MemoryDetail) -> Iterator[Row]:
    yield "tokens", f"{detail.tokens_per_s:.1f} per second", f"{detail.active} active, {detail.queued} queued"
    yield "from disk", f"{_or_unknown(detail.disk_bytes_per_token)} per token", _each_second(detail)
    faults = detail.major_faults_per_token
    yield "major faults", f"{UNKNOWN if faults is None else f'{faults:.2f}'} per token", ""


def _each_second(detail: MemoryDetail) -> str:
    return f"{_or_unknown(detail.disk_bytes_per_s)} per second"


def _request(last: Attribution) -> Iterator[Row]:
    yield "first token", f"after {last.first_token_s:.2f} s", f"{last.prompt_tokens:,} tokens of prompt"
    for name, seconds, what in (
        ("queue", last.queue_s, "waited for a slot"),
        ("load", last.load_s, "waited for the model"),
        ("disk", last.disk_s, "stood still for the disk"),
        ("prefill", last.prefill_s, f"read the prompt; {last.cached_tokens:,} tokens were cached"),
        ("other", last.other_s, "template, transport"),
    ):
        yield f"  {name}", f"{seconds:.2f} s", what
    tokens = f"{last.completion_tokens:,} tokens"
    yield "answer", f"in {last.decode_s:.2f} s", f"{tokens}, {last.tokens_per_s:.1f} per second"
    read = (_or_unknown(last.prefill_disk_bytes), _or_unknown(last.decode_disk_bytes))
    yield "read from disk", f"{read[0]} for the prompt", f"{read[1]} for the answer"
    yield "  per token", _or_unknown(last.disk_bytes_per_token), "of the answer"


def _residency(detail: MemoryDetail, fold_to: int | None) -> list[str]:
    found = detail.residency
    if found is None:
        return _columns([("all", UNKNOWN, "nothing was looked at")])
    whole = _residency_row("all", found.resident_bytes, found.total_bytes)
    if found.resident_bytes is None:
        return [*_columns([whole]), f"  {found.reason}"]
    if fold_to is None:
        return _columns([whole, *(_layer_row(layer) for layer in detail.layers)])
    layers = [_layer_row(layer, FOLDED_BAR_CELLS) for layer in detail.layers]
    return [*_columns([whole]), *_folded(layers, fold_to)]


def _folded(rows: list[Row], width: int) -> list[str]:
    """Lay the first two cells of rows side by side, one column after the other."""
    cells = ["  ".join(row) for row in _padded([row[:2] for row in rows])]
    columns = max(width // (max(map(len, cells), default=0) + GAP), 1)
    height = -(-len(cells) // columns)
    return ["".join(" " * GAP + cell for cell in cells[top::height]) for top in range(height)]


def _layer_row(layer: LayerResidency, bar_cells: int = BAR_CELLS) -> Row:
    name = "other" if layer.layer is None else f"blk {layer.layer}"
    return _residency_row(name, layer.resident_bytes, layer.total_bytes, bar_cells=bar_cells)


def _residency_row(name: str, resident: int | None, total: int, bar_cells: int = BAR_CELLS) -> Row:
    if resident is None:
        return name, UNKNOWN, f"of {amount(total)}"
    share = resident / total if total else 1.0
    return name, f"{bar(share, bar_cells)} {_percent(share)}", f"{amount(resident)} of {amount(total)}"


def bar(share: float, cells: int = BAR_CELLS) -> str:
    """Draw a share as a bar; full only when all is there, empty only when nothing is."""
    filled = min(max(round(share * cells), share > 0), cells - (share < 1))
    full, empty = ("█", "░") if _can_draw() else ("#", ".")
    return full * filled + empty * (cells - filled)


def _percent(share: float) -> str:
    """Write a share; 100 % only when all is there, 0 % only when nothing is."""
    whole = min(max(round(share * 100), share > 0), 100 - (share < 1))
    return f"{whole:>3} %"


def _can_draw() -> bool:
    try:
        "█░".encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        return False
    return True


def _pinned(detail: MemoryDetail) -> Iterator[Row]:
    if detail.pin is not None:
        yield "pinned", pin_words(detail.pin), ""
    if detail.page_control:
        yield "no warm, drop, pin", detail.page_control, ""


def _given_back(detail: MemoryDetail) -> Iterator[Row]:
    for given in detail.given_back[-GIVEN_BACK_LINES:]:
        yield time.strftime("%H:%M:%S", time.localtime(given.at)), given.text


def _machine(system: SystemFigures) -> Iterator[Row]:
    yield "memory", amount(system.total_bytes), f"{amount(system.available_bytes)} available"
    yield (
        "page cache",
        amount(system.cached_bytes),
        f"{_or_unknown(system.refault_bytes)} dropped and needed again since it started",
    )
    moved = f"{_or_unknown(system.swapped_in_bytes)} in, {_or_unknown(system.swapped_out_bytes)} out"
    yield "swap", amount(system.swap_used_bytes), moved
    if system.group is not None:
        yield "cgroup", f"{amount(system.group.used_bytes)} of {amount(system.group.limit_bytes)}", ""
    if system.pressure is not None:
        yield "pressure", f"{system.pressure.some_avg10:.1f} % of the last 10 s", ""


def _or_unknown(count: float | None) -> str:
    return UNKNOWN if count is None else amount(count)


def _count(count: int | None) -> str:
    return UNKNOWN if count is None else f"{count:,}"


def _columns(rows: Iterable[Row]) -> list[str]:
    return [f"  {'  '.join(row)}".rstrip() for row in _padded(rows)]


def _padded(rows: Iterable[Row]) -> list[Row]:
    """Bring the cells of each column to one width."""
    table = list(rows)
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    return [tuple(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in table]
