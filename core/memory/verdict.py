"""What will happen when a model is loaded: it stays in memory, it pages from disk, or it will not run.

Private bytes must fit the budget. What is left of it holds the pages of the file that every token reads; when
they don't all fit, each token reads the rest from disk again. Source: memory.md §4.2 and §4.3.
"""

import math

from octavo.core.memory.types import Bandwidth, Budget, Estimate, TokenRate, Verdict

WIDEST_BAND = 3.0
"""The most that ``high / low`` of a token rate may be."""

# bytes per second at which a processor works through weights that are in memory, slow and fast; wide, since
# it is the disk that counts for a model that pages
PROCESSOR = Bandwidth(low=3.5e9, high=12e9)

# the share of the room for pages that holds what the next token needs: a scan from end to end throws out what
# it needs next, so that the kernel's LRU keeps nothing to a third of it (measured with room for 0.4 to 0.9 of
# the weights)
LRU_KEEPS = 0.35

# a disk that others use as well gives less than when it was measured; read-ahead that overlaps with computing
# gives more
DISK_LOW, DISK_HIGH = 0.75, 1.3


def judge(estimate: Estimate, budget: Budget, disk: Bandwidth) -> Verdict:
    """Compare what a model needs with what there is."""
    private = estimate.private_bytes
    hot = estimate.hot_mapped_bytes + estimate.expert_bytes
    room = budget.budget_bytes - private
    if room < 0:
        return Verdict(kind="wont_run", inequality=_inequality("private", private, ">", budget))
    if hot <= room - budget.mapped_in_use_bytes:
        return Verdict(
            kind="resident", inequality=_inequality("private + weights", private + hot, "≤", budget)
        )
    needed = private + hot + budget.mapped_in_use_bytes
    return Verdict(
        kind="pages",
        inequality=_inequality("private + weights", needed, ">", budget),
        disk_bytes_per_token=_disk_bytes(estimate, room, keeps=LRU_KEEPS / 2),
        tokens_per_second=token_rate(estimate, room, disk),
    )


def token_rate(estimate: Estimate, room_bytes: int, disk: Bandwidth) -> TokenRate:
    """Give the band of tokens per second with ``room_bytes`` for the file's pages.

    A token takes the time to read what was dropped plus the time to compute with all that it uses.
    """
    used = estimate.hot_mapped_bytes + estimate.expert_bytes * estimate.expert_share
    slow = _disk_bytes(estimate, room_bytes, keeps=0.0) / (disk.low * DISK_LOW) + used / PROCESSOR.low
    fast = (
        _disk_bytes(estimate, room_bytes, keeps=LRU_KEEPS) / (disk.high * DISK_HIGH) + used / PROCESSOR.high
    )
    return _narrowed(1 / max(slow, 1e-9), 1 / max(fast, 1e-9))


def _disk_bytes(estimate: Estimate, room: int, *, keeps: float) -> int:
    """Give the bytes that one token reads from disk; ``keeps``: the share of the room that is of use.

    The shared part is read from end to end. Of the experts a token reads ``expert_share``, spread evenly, so
    that those that are in memory (the share that fits) are met as often as the others.
    """
    hot, experts = estimate.hot_mapped_bytes, estimate.expert_bytes
    if not experts:
        return int(hot - max(room, 0) * keeps)
    left = max(room - hot, 0)
    missing = 1 - min(left / experts, 1.0)
    dropped = max(hot - max(room, 0) * keeps, 0) if room < hot else 0
    return int(dropped + experts * estimate.expert_share * missing)


def _narrowed(low: float, high: float) -> TokenRate:
    """Keep the middle of a band that is too wide to be of use."""
    low, high = min(low, high), max(low, high)
    if high > WIDEST_BAND * low:
        middle = math.sqrt(low * high)
        low, high = middle / math.sqrt(WIDEST_BAND), middle * math.sqrt(WIDEST_BAND)
    return TokenRate(low=low, high=high)


def _inequality(what: str, needed: int, sign: str, budget: Budget) -> str:
    kept = f" less {gib(budget.keep_free_bytes)} kept free" if budget.keep_free_bytes else ""
    limits = {"system": f"free memory{kept}", "cgroup": "the cgroup's limit", "setting": "the set limit"}
    return f"{what} {gib(needed)} {sign} {gib(budget.budget_bytes)} ({limits[budget.limited_by]})"


def gib(count: int) -> str:
    """Write bytes in GiB, or in MiB below one."""
    return f"{count / (1 << 30):.2f} GiB" if count >= 1 << 30 else f"{count / (1 << 20):.0f} MiB"
