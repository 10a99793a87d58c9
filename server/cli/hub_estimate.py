"""``octavo estimate`` for a model that is on the Hub, not here."""

from octavo.core.client.types import EstimateAnswer
from octavo.core.errors import HubUnreachable, ModelNotFound, RepositoryNotFound
from octavo.core.hub.reference import is_reference, parse_reference
from octavo.server.cli.hub_reach import reached
from octavo.server.estimates import estimate_answer


def is_worth_asking(name: str) -> bool:
    """Tell whether a name that the library doesn't know may be a repository's."""
    return "/" in name and is_reference(name)


async def estimate_hub(
    name: str,
    fields: dict[str, object],
    budget: int | None,
    with_rule: bool,
    missing: ModelNotFound | None = None,
) -> EstimateAnswer:
    """Estimate a load of something on the Hub; where it isn't there either, ``missing`` is raised."""
    try:
        return await _estimated(name, fields, budget, with_rule)
    except (HubUnreachable, RepositoryNotFound) as fault:
        if missing is None:
            raise
        hint = f"{missing.hint} The Hub was asked, too: {fault.message}".strip()
        raise ModelNotFound(missing.message, hint=hint, **missing.details) from fault


async def _estimated(
    name: str, fields: dict[str, object], budget: int | None, with_rule: bool
) -> EstimateAnswer:
    asked = parse_reference(name)
    async with reached() as hub:
        if hub.service is not None:
            return await hub.service.estimate_hub(
                asked.repo,
                asked.wanted,
                fields,
                revision=asked.revision,
                budget_bytes=budget,
                rule_of_thumb=with_rule,
            )
        model, report = await hub.own.estimated(asked, fields, budget_bytes=budget)
        return estimate_answer(model, report, with_rule=with_rule)
