"""Signs of life, what is loaded, and what it uses."""

import os

from fastapi import APIRouter, Request
from starlette.responses import Response

from octavo.core import __version__
from octavo.core.client.types import Health
from octavo.server.answering import json_response
from octavo.server.metrics import CONTENT_TYPE, exposition, families
from octavo.server.studio import studio_of

router = APIRouter()


@router.get("/health")
async def get_health() -> Response:
    """Say that the service lives."""
    return json_response(Health("ok", __version__, os.getpid()))


@router.get("/api/v1/instances")
async def list_instances(request: Request) -> Response:
    """List what is loaded, loading or has crashed."""
    return json_response(studio_of(request).runtime.instances())


@router.get("/metrics")
async def get_metrics(request: Request) -> Response:
    """Sample memory and speed for Prometheus; scans nothing."""
    sample = studio_of(request).runtime.observer.sampled()
    return Response(exposition(families(sample)), headers={"Content-Type": CONTENT_TYPE})


@router.get("/api/v1/figures")
async def get_figures(request: Request) -> Response:
    """Sample memory and speed."""
    return json_response(studio_of(request).runtime.figures())
