"""Put a report about memory into the shape that the native dialect and the command line show."""

import msgspec

from octavo.core.client.types import EstimateAnswer, SuggestedLoad
from octavo.core.library.models import Model
from octavo.core.memory.rule import rule_of_thumb
from octavo.core.memory.types import Report, Suggestion


def estimate_answer(model: Model, report: Report, *, with_rule: bool = False) -> EstimateAnswer:
    """Give the answer to an estimate; the inequality that decided is the first of its reasons."""
    found, verdict = report.estimate, report.verdict
    answer = EstimateAnswer(
        model=found.model,
        n_ctx=found.n_ctx,
        components=found.components,
        private_bytes=found.private_bytes,
        mapped_bytes=found.mapped_bytes,
        hot_mapped_bytes=found.hot_mapped_bytes,
        budget_bytes=report.budget.budget_bytes,
        available_bytes=report.budget.available_bytes,
        verdict=verdict.kind,
        disk_bytes_per_token=verdict.disk_bytes_per_token,
        tokens_per_second=verdict.tokens_per_second,
        confidence=found.confidence,
        reasons=[verdict.inequality, *found.reasons],
        suggestions=[_suggested(one) for one in report.suggestions],
    )
    if with_rule and model.description is not None:
        return msgspec.structs.replace(answer, rule_of_thumb=rule_of_thumb(model.description, found))
    return answer


def _suggested(one: Suggestion) -> SuggestedLoad:
    return SuggestedLoad(
        f"{one.title}: {one.cost}", one.config, one.private_bytes, one.mapped_bytes, one.verdict
    )
