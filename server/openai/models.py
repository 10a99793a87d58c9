"""``GET /v1/models`` and ``/v1/models/{id}``."""

import asyncio

import msgspec
from fastapi import APIRouter, Request
from starlette.responses import Response

from octavo.core.events import InstanceStatus
from octavo.core.library.models import Model
from octavo.server.answering import json_response
from octavo.server.listing import listed
from octavo.server.openai.names import jit
from octavo.server.studio import Studio, studio_of

router = APIRouter()


class ModelObject(msgspec.Struct, frozen=True, kw_only=True):
    """A model that a request may name; ``context_length`` tokens are usable by one request."""

    id: str
    object: str = "model"
    created: int
    owned_by: str
    context_length: int | None
    loaded: bool
    capabilities: tuple[str, ...] = ("completion", "chat")


class ModelObjects(msgspec.Struct, frozen=True):
    """The list of them."""

    data: list[ModelObject]
    object: str = "list"


@router.get("/v1/models")
async def list_models(request: Request) -> Response:
    """List all models that a request may name: with loading on demand all, else what is loaded."""
    return json_response(ModelObjects(await _objects(studio_of(request))))


@router.get("/v1/models/{name:path}")
async def get_model(request: Request, name: str) -> Response:
    """Describe one model, named as a request would name it."""
    studio = studio_of(request)
    objects = {item.id: item for item in await _objects(studio)}
    if name in objects:
        return json_response(objects[name])
    found = await asyncio.to_thread(studio.catalog.find, name, allow_path=False)
    return json_response(_of_model(found, None))


async def _objects(studio: Studio) -> list[ModelObject]:
    models = {model.id: model for model in await listed(studio) if model.is_loadable}
    loaded = [status for status in studio.runtime.instances() if status.state == "ready"]
    objects = {status.instance: _of_instance(status, models.get(status.model)) for status in loaded}
    if jit(studio):
        objects |= {name: _of_model(model, None) for name, model in models.items() if name not in objects}
    return list(objects.values())


def _of_instance(status: InstanceStatus, model: Model | None) -> ModelObject:
    if model is not None:
        return msgspec.structs.replace(_of_model(model, status.context), id=status.instance)
    return ModelObject(
        id=status.instance, created=0, owned_by="local", context_length=status.context, loaded=True
    )


def _of_model(model: Model, context: int | None) -> ModelObject:
    trained = model.description.context_length if model.description else None
    return ModelObject(
        id=model.id,
        created=model.modified_ns // 1_000_000_000,
        owned_by=model.publisher or "local",
        context_length=trained if context is None else context,
        loaded=context is not None,
    )
