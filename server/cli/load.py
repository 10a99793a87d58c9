"""``octavo load``: load a model in the service."""

import asyncio
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from octavo.server.cli.console import Json, answer, done, say, usage, utf8

if TYPE_CHECKING:
    from octavo.core.client.types import LoadAnswer, StreamEvent


def _waits(ttl: float | None) -> float | None:
    if ttl is not None and not 0 <= ttl < float("inf"):
        raise typer.BadParameter(f"{ttl} is no number of seconds; 0 is never")
    return ttl


Model = Annotated[
    str,
    typer.Argument(metavar="MODEL", callback=utf8, help="An id, part of one, or a GGUF file's path."),
]
Context = Annotated[int | None, typer.Option("--context-length", "--context", "-c", help="Tokens.")]
Slots = Annotated[int | None, typer.Option("--slots", "--parallel", help="Requests at the same time.")]
Gpu = Annotated[
    str | None, typer.Option("--gpu", help="off, max, a share from 0 to 1, or layers (from 2 on).")
]
GpuLayers = Annotated[int | None, typer.Option("--gpu-layers", help="Layers on the GPU; -1 is all.")]
KvK = Annotated[str | None, typer.Option("--kv-k", help="Type of the K cache: f16, q8_0, q4_0 …")]
KvV = Annotated[str | None, typer.Option("--kv-v", help="Type of the V cache.")]
Identifier = Annotated[
    str | None, typer.Option("--identifier", "--id", callback=utf8, help="The name to load it under.")
]
Ttl = Annotated[
    float | None,
    typer.Option("--ttl", callback=_waits, help="Idle seconds until it is unloaded; 0 is never."),
]
Fields = Annotated[
    list[str] | None, typer.Option("--set", "-s", help="Any load setting as NAME=VALUE; may be repeated.")
]
Force = Annotated[bool, typer.Option("--force", help="Load it even if it would not run by the estimate.")]
EstimateOnly = Annotated[
    bool, typer.Option("--estimate-only", help="Load nothing; tell what it would need, like octavo estimate.")
]
Yes = Annotated[
    bool, typer.Option("--yes", "-y", help="Never ask; of several models that fit take the first.")
]
Exact = Annotated[bool, typer.Option("--exact", help="MODEL is a whole id, not a part of one.")]


def load(
    model: Model,
    context_length: Context = None,
    slots: Slots = None,
    gpu: Gpu = None,
    gpu_layers: GpuLayers = None,
    kv_k: KvK = None,
    kv_v: KvV = None,
    identifier: Identifier = None,
    ttl: Ttl = None,
    fields: Fields = None,
    force: Force = False,
    estimate_only: EstimateOnly = False,
    yes: Yes = False,
    exact: Exact = False,
    json: Json = False,
) -> None:
    """Load a model; starts the service when none runs. It stays until it is unloaded or its TTL ends."""
    if yes or exact:
        model = done(lambda: chosen_name(model, is_exact=exact), json)
    gpu = done(lambda: whole_layers(model, gpu), json)
    said = load_wishes(context_length, slots, gpu, gpu_layers, kv_k, kv_v, fields)
    if estimate_only:
        from octavo.server.cli.estimate import estimate_load

        estimate_load(model, said, None, False, json)
    else:
        answer(lambda: asyncio.run(_load(model, said, identifier, ttl, force)), json, _show)


def load_wishes(
    context: int | None,
    slots: int | None,
    gpu: str | None,
    gpu_layers: int | None,
    kv_k: str | None,
    kv_v: str | None,
    fields: list[str] | None,
) -> dict[str, object]:
    """Put the options together into load settings; a usage error for what can't be one."""
    said: dict[str, object] = {
        "context": context,
        "slots": slots,
        "gpu_layers": _gpu_layers(gpu) if gpu_layers is None else gpu_layers,
        "kv_k": kv_k,
        "kv_v": kv_v,
        **_pairs(fields or []),
    }
    _check_values(said)
    return said


async def _load(
    model: str, fields: dict[str, object], identifier: str | None, ttl_s: float | None, force: bool
) -> "LoadAnswer":
    from octavo.server.cli.reach import held, model_argument, started

    async with await started() as client, held(client, _progress):
        return await client.load(model_argument(model), fields, identifier, ttl_s, force=force)


def _progress(event: "StreamEvent") -> None:
    from octavo.core.events import LoadProgressed

    if isinstance(event, LoadProgressed) and sys.stderr.isatty():
        end = "\n" if event.share >= 1 else ""
        print(f"\rLoading {event.model}: {event.share:.0%}", end=end, file=sys.stderr, flush=True)


def _show(loaded: "LoadAnswer") -> None:
    for note in loaded.notes:
        print(note)
    context = loaded.load_config.get("context")
    print(f"{loaded.instance_id} is loaded: {context} tokens of context, {loaded.load_time_seconds:.1f} s.")


def chosen_name(name: str, *, is_exact: bool) -> str:
    """Give the id to load: the whole of it where that is asked for, else the first of those that fit."""
    from octavo.core.errors import AmbiguousModel, ModelNotFound
    from octavo.server.cli.library import catalog
    from octavo.server.library import exact

    models = catalog()
    try:
        return exact(models, name).id if is_exact else models.find(name).id
    except ModelNotFound:
        if is_exact:
            raise
        return name  # the service may know it: it takes in the starter model when it starts
    except AmbiguousModel as several:
        ids = several.details.get("candidates")
        if is_exact or not isinstance(ids, list):
            raise
        say(f"{several.message} The first is taken.")
        return ids[0]


def whole_layers(model: str, gpu: str | None) -> str | None:
    """Turn a share of a model, as ``lms`` takes it (0.5), into layers; leave all else as it is."""
    try:
        share = float(gpu or "")
    except ValueError:
        return gpu
    if not 0 < share < 1:
        return {0.0: "off", 1.0: "max"}.get(share, gpu)
    from octavo.server.cli.library import record

    return str(max(2, round(share * asyncio.run(record(model)).layers)))


def _gpu_layers(gpu: str | None) -> int | None:
    named = {None: None, "off": 0, "max": -1}
    if gpu in named:
        return named[gpu]
    try:
        return int(gpu or "")
    except ValueError as fault:
        raise typer.BadParameter("--gpu takes off, max, a share from 0 to 1, or layers") from fault


def _pairs(fields: list[str]) -> dict[str, object]:
    pairs = dict(field.partition("=")[::2] for field in fields)
    if not all(pairs.values()):
        raise typer.BadParameter("--set takes NAME=VALUE")
    _check_names(set(pairs))
    return dict(pairs)


def _check_values(said: dict[str, object]) -> None:
    from octavo.core.config.load_config import resolve

    with usage():
        resolve(("the command line", said))


def _check_names(names: set[str]) -> None:
    from octavo.core.config.load_config import LoadConfig

    if unknown := sorted(names - set(LoadConfig.__struct_fields__)):
        known = ", ".join(LoadConfig.__struct_fields__)
        raise typer.BadParameter(f"there is no load setting {unknown[0]!r}; there are: {known}")
