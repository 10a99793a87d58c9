"""``octavo estimate``: what a load would need, and what would come of it."""

import asyncio
import re
from typing import TYPE_CHECKING, Annotated

import typer

from octavo.server.cli.console import Json, answer, done, print_table
from octavo.server.cli.load import (
    Context,
    Fields,
    Gpu,
    GpuLayers,
    KvK,
    KvV,
    Model,
    Slots,
    load_wishes,
    whole_layers,
)

if TYPE_CHECKING:
    from octavo.core.client.types import EstimateAnswer

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "ki": 1 << 10, "mi": 1 << 20, "gi": 1 << 30}
_UNITS["ti"] = 1 << 40

Budget = Annotated[
    str | None, typer.Option("--budget", help="Another machine's memory: 16GiB, 500MB, bytes.")
]
Rule = Annotated[bool, typer.Option("--rule-of-thumb", help="Also tell parameters × bytes × 1.2 + KV + OS.")]


def estimate(
    model: Model,
    context_length: Context = None,
    slots: Slots = None,
    gpu: Gpu = None,
    gpu_layers: GpuLayers = None,
    kv_k: KvK = None,
    kv_v: KvV = None,
    fields: Fields = None,
    budget: Budget = None,
    rule_of_thumb: Rule = False,
    json: Json = False,
) -> None:
    """Tell what a load would need, whether it fits, and what would help; loads nothing."""
    gpu = done(lambda: whole_layers(model, gpu), json)
    said = load_wishes(context_length, slots, gpu, gpu_layers, kv_k, kv_v, fields)
    most = parsed_size(budget) if budget is not None else None
    estimate_load(model, said, most, rule_of_thumb, json)


def estimate_load(
    model: str, fields: dict[str, object], budget_bytes: int | None, with_rule: bool, as_json: bool
) -> None:
    """Estimate a load and print the answer."""
    answer(lambda: asyncio.run(_estimate(model, fields, budget_bytes, with_rule)), as_json, show_estimate)


def parsed_size(text: str) -> int:
    """Read an amount of memory such as ``16GiB``, ``500MB`` or plain bytes; gives bytes."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?i?)b?\s*", text.lower())
    if found is None or found[2] not in _UNITS:
        raise typer.BadParameter(f"--budget takes an amount such as 16GiB, not {text!r}")
    return int(float(found[1]) * _UNITS[found[2]])


async def _estimate(
    name: str, fields: dict[str, object], budget: int | None, with_rule: bool
) -> "EstimateAnswer":
    from octavo.core.errors import ModelNotFound
    from octavo.core.hub.reference import PREFIX
    from octavo.server.cli.hub_estimate import estimate_hub, is_worth_asking

    if name.startswith(PREFIX):
        return await estimate_hub(name, fields, budget, with_rule)
    try:
        return await _estimate_here(name, fields, budget, with_rule)
    except ModelNotFound as missing:
        if not is_worth_asking(name):
            raise
        return await estimate_hub(name, fields, budget, with_rule, missing)


async def _estimate_here(
    name: str, fields: dict[str, object], budget: int | None, with_rule: bool
) -> "EstimateAnswer":
    from octavo.server.cli.reach import model_argument, running

    client = await running()
    if client is None:
        return await asyncio.to_thread(_without_service, name, fields, budget, with_rule)
    async with client:
        return await client.estimate(
            model_argument(name), fields, budget_bytes=budget, rule_of_thumb=with_rule
        )


def _without_service(
    name: str, fields: dict[str, object], budget: int | None, with_rule: bool
) -> "EstimateAnswer":
    from octavo.core.config.settings import SettingsFile
    from octavo.core.runtime.assess import Assessor
    from octavo.server.cli.library import catalog
    from octavo.server.cli.reach import checked_home
    from octavo.server.estimates import estimate_answer

    home = checked_home()
    library = catalog()
    model = library.find(name)
    model.require_sound()
    assessor = Assessor(home, SettingsFile(home.settings))
    report = assessor.assess(model, fields, budget_bytes=budget, others=library.models())
    return estimate_answer(model, report, with_rule=with_rule)


def show_estimate(told: "EstimateAnswer") -> None:
    """Print an estimate for a person."""
    import msgspec

    from octavo.core.memory.verdict import gib

    parts = msgspec.structs.asdict(told.components)
    rows = [(name.replace("_", " "), gib(count)) for name, count in parts.items() if count]
    rows += [
        ("private in all", gib(told.private_bytes)),
        ("read for every token", gib(told.hot_mapped_bytes)),
    ]
    rows += [("budget", gib(told.budget_bytes))]
    print(f"{told.model}, {told.n_ctx:,} cells of context ({told.confidence})")
    print_table(("part", "size"), rows)
    _show_rule(told)
    print(_verdict_line(told))
    for reason in told.reasons:
        print(f"  {reason}")
    for one in told.suggestions:
        print(f"- {one.title} → {gib(one.private_bytes + one.mapped_bytes)}, {_WORDS[one.verdict]}")


_WORDS = {"resident": "stays in memory", "pages": "pages from disk", "wont_run": "will not run"}


def _verdict_line(told: "EstimateAnswer") -> str:
    rate = told.tokens_per_second
    speed = f" at about {rate.low:.1f}–{rate.high:.1f} tokens per second" if rate else ""
    return f"It {_WORDS[told.verdict]}{speed}."


def _show_rule(told: "EstimateAnswer") -> None:
    import msgspec

    from octavo.core.memory.verdict import gib

    rule = told.rule_of_thumb
    if isinstance(rule, msgspec.UnsetType):
        return
    whole = f"{gib(rule.weights_bytes)} + {gib(rule.kv_bytes)} KV + {gib(rule.system_bytes)} OS"
    print(f"Rule of thumb: {whole} = {gib(rule.total_bytes)}.")
    print(f"Without the OS it is {rule.error:+.0%} off the estimate of {gib(rule.exact_bytes)}.")
