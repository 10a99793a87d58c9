"""What would help when a model doesn't fit well: alternatives with their totals, prices and settings.

What costs no quality comes first. Every alternative is estimated like the wish itself.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import msgspec

from octavo.core.config.load_config import FlashAttention, LoadConfig
from octavo.core.memory.types import Bandwidth, Budget, Estimate, Suggestion, Verdict, VerdictKind
from octavo.core.memory.verdict import judge

Estimator = Callable[[LoadConfig], Estimate]
"""``estimate`` with the model's header bound."""

SMALLEST_CONTEXT = 256
SMALL_MICRO_BATCH = 128
MOST = 6
CONTEXT_STEP = 256
COARSE_STEP, COARSE_FROM = 1024, 8192

_RANK: dict[VerdictKind, int] = {"resident": 0, "pages": 1, "wont_run": 2}


@dataclass(frozen=True, slots=True)
class Sibling:
    """The same model in another quantisation, on disk or on the Hub."""

    model: str
    quant: str
    estimator: Estimator
    is_here: bool = True


@dataclass(frozen=True, slots=True)
class Change:
    """One thing that could be done."""

    title: str
    cost: str
    config: LoadConfig
    sibling: Sibling | None = None


def advise(
    estimator: Estimator,
    config: LoadConfig,
    budget: Budget,
    disk: Bandwidth,
    *,
    siblings: Iterable[Sibling] = (),
    has_gpu: bool = False,
    trained: int | None = None,
) -> list[Suggestion]:
    """Give what would help, the best verdict first, then what costs least; nothing when it fits.

    No context beyond ``trained`` tokens is suggested.
    """
    now = estimator(config)
    verdict = judge(now, budget, disk)
    if verdict.kind == "resident":
        return []
    changes = [*_changes(estimator, now, budget, has_gpu, trained), *_other_quants(config, siblings)]
    found = [_suggestion(change, estimator, budget, disk) for change in changes]
    useful = [one for one in found if _helps(one, now, verdict)]
    return sorted(useful, key=lambda one: _RANK[one.verdict])[:MOST]


def fit(estimator: Estimator, config: LoadConfig, budget: Budget, most: int) -> int:
    """Give the largest context, up to ``most`` tokens, with which the model stays in memory.

    Where its weights alone are too much for that, the largest whose private bytes take at most half of the
    budget, since the rest holds weights; ``SMALLEST_CONTEXT`` where not even that is so.
    """
    most = max(most, SMALLEST_CONTEXT)
    for fits in (_stays, _leaves_half):
        if fits(estimator(with_context(config, SMALLEST_CONTEXT)), budget):
            return _largest(lambda n, fits=fits: fits(estimator(with_context(config, n)), budget), most)  # type: ignore[misc]
    return SMALLEST_CONTEXT


def with_context(config: LoadConfig, context: int) -> LoadConfig:
    """Give ``config`` with another context."""
    return msgspec.structs.replace(config, context=context)


def _stays(estimate: Estimate, budget: Budget) -> bool:
    needed = estimate.private_bytes + estimate.hot_mapped_bytes + estimate.expert_bytes
    return needed + budget.mapped_in_use_bytes <= budget.budget_bytes


def _leaves_half(estimate: Estimate, budget: Budget) -> bool:
    return 2 * estimate.private_bytes <= budget.budget_bytes


def _largest(fits: Callable[[int], bool], most: int) -> int:
    """Search by halves; a larger context never needs less."""
    if fits(most):
        return most
    low, high = SMALLEST_CONTEXT, most  # low fits, high doesn't
    while high - low > CONTEXT_STEP:
        middle = (low + high) // 2 // CONTEXT_STEP * CONTEXT_STEP
        if middle in (low, high):
            break
        low, high = (middle, high) if fits(middle) else (low, middle)
    step = COARSE_STEP if low >= COARSE_FROM else CONTEXT_STEP
    return max(low // step * step, SMALLEST_CONTEXT)


def _changes(
    estimator: Estimator, now: Estimate, budget: Budget, has_gpu: bool, trained: int | None
) -> Iterator[Change]:
    """Give the changes that keep the model, those without loss of quality first."""
    config = now.config
    if config.micro_batch > SMALL_MICRO_BATCH:
        smaller = msgspec.structs.replace(config, micro_batch=SMALL_MICRO_BATCH)
        yield Change(f"Micro-batch {SMALL_MICRO_BATCH}", "Long prompts are read more slowly.", smaller)
    if {config.kv_k, config.kv_v} & {"f32", "f16", "bf16"}:
        yield Change("KV cache in q8_0", "No loss that can be noticed.", _q8_cache(config))
    if config.repack or config.load_mode.value not in ("mmap", "mmap_mlock"):
        yield Change("Weights mapped from the file", "Prompts may be read more slowly.", _mapped(config))
    if now.expert_bytes and config.gpu_layers and has_gpu:
        on_cpu = msgspec.structs.replace(config, cpu_moe_layers=4095)
        yield Change("Experts on the processor", "Slower than all on the GPU.", on_cpu)
    if config.slots > 1:
        single = msgspec.structs.replace(config, slots=1)
        yield Change("One request at a time", "Others wait until it is answered.", single)
    yield from _smaller_contexts(estimator, now, budget, min(now.n_ctx, trained or now.n_ctx))


def _smaller_contexts(estimator: Estimator, now: Estimate, budget: Budget, most: int) -> Iterator[Change]:
    """Give the largest context up to ``most`` that fits, with the cache as it is and in q8_0."""
    price = "Longer conversations are cut."
    for title, config in (("", now.config), (", KV cache in q8_0", _q8_cache(now.config))):
        context = fit(estimator, config, budget, most)
        if context < now.n_ctx:
            yield Change(f"Context of {context:,} tokens{title}", price, with_context(config, context))


def _other_quants(config: LoadConfig, siblings: Iterable[Sibling]) -> Iterator[Change]:
    for sibling in siblings:
        where = "" if sibling.is_here else " It has to be fetched first."
        yield Change(f"The model in {sibling.quant}", f"Some quality is lost.{where}", config, sibling)


def _q8_cache(config: LoadConfig) -> LoadConfig:
    return msgspec.structs.replace(config, kv_k="q8_0", kv_v="q8_0", flash_attention=FlashAttention.ON)


def _mapped(config: LoadConfig) -> LoadConfig:
    return msgspec.structs.replace(config, repack=False, load_mode=type(config.load_mode)("mmap"))


def _suggestion(change: Change, estimator: Estimator, budget: Budget, disk: Bandwidth) -> Suggestion:
    sibling = change.sibling
    new = (sibling.estimator if sibling else estimator)(change.config)
    verdict = judge(new, budget, disk)
    return Suggestion(
        title=change.title,
        cost=change.cost + _speed(verdict),
        model=sibling.model if sibling else new.model,
        config=change.config,
        private_bytes=new.private_bytes,
        mapped_bytes=new.mapped_bytes,
        verdict=verdict.kind,
    )


def _helps(suggestion: Suggestion, now: Estimate, verdict: Verdict) -> bool:
    """A better verdict helps; where there is none to be had, at least 2 % less."""
    if _RANK[suggestion.verdict] < _RANK[verdict.kind]:
        return True
    total = now.private_bytes + now.mapped_bytes
    return suggestion.verdict == verdict.kind and _total(suggestion) < 0.98 * total


def _total(suggestion: Suggestion) -> int:
    return suggestion.private_bytes + suggestion.mapped_bytes


def _speed(verdict: Verdict) -> str:
    rate = verdict.tokens_per_second
    return f" About {rate.low:.1f}–{rate.high:.1f} tokens per second." if rate else ""
