"""Which quant to take: the largest that stays in memory, in words that a person can check."""

from collections.abc import Sequence

from octavo.core.hub.types import Choice, Fit
from octavo.core.memory.types import Budget
from octavo.core.memory.verdict import gib

ENOUGH_BITS = 9.0
"""Bits per weight beyond which nothing is gained that can be noticed; Q8_0 has 8.5."""

FEW_BITS = 3.0
"""Bits per weight below which much quality is lost."""

USABLE_BITS = 3.5


def recommended(choices: Sequence[Choice], budget: Budget) -> tuple[str | None, str]:
    """Give the name of the choice to take and the reason; None and why there is none."""
    judged = [(choice, choice.fit) for choice in choices if choice.fit is not None and not choice.missing]
    if not judged:
        return None, "No choice could be judged." if choices else "There is no GGUF model in it."
    if staying := [choice for choice, fit in judged if fit.verdict == "resident"]:
        return _largest(staying, any(_bits(choice) > ENOUGH_BITS for choice in staying))
    if paging := [(choice, fit) for choice, fit in judged if fit.verdict == "pages"]:
        return _quickest(paging)
    least = min(fit.private_bytes for _, fit in judged)
    there = gib(max(budget.budget_bytes, 0))
    return None, f"none of them will run: at least {gib(least)} must stay in memory, there are {there}"


def _largest(staying: Sequence[Choice], is_capped: bool) -> tuple[str, str]:
    enough = [choice for choice in staying if _bits(choice) <= ENOUGH_BITS]
    best = max(enough, key=_size) if enough else min(staying, key=_size)
    fit = best.fit
    assert fit is not None
    size = "largest" if enough else "smallest"
    reason = f"{size} that stays in memory with {_context(fit)}; {_bits(best):.1f} bits per weight"
    if is_capped and enough:
        reason += f"; more than {ENOUGH_BITS:.0f} gain nothing that can be noticed"
    if _bits(best) < FEW_BITS:
        reason += "; so few cost much quality: a smaller model in more bits may answer better"
    return best.name, reason


def _quickest(paging: Sequence[tuple[Choice, Fit]]) -> tuple[str, str]:
    usable = [pair for pair in paging if _bits(pair[0]) >= USABLE_BITS] or paging
    best, fit = min(usable, key=lambda pair: _size(pair[0]))
    rate = fit.tokens_per_second
    speed = f", at about {rate.low:.1f}–{rate.high:.1f} tokens per second" if rate else ""
    return (
        best.name,
        f"none stays in memory with {_context(fit)}; this one pages from disk{speed}; "
        f"{_bits(best):.1f} bits per weight",
    )


def _context(fit: Fit) -> str:
    whole, rest = divmod(fit.n_ctx, 1024)
    return f"{whole}k context" if whole and not rest else f"{fit.n_ctx:,} tokens of context"


def _bits(choice: Choice) -> float:
    return choice.bits_per_weight or 0.0


def _size(choice: Choice) -> tuple[int, str]:
    return choice.size_bytes, choice.name
