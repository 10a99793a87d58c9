"""Turn errors into HTTP answers and into the last event of a stream."""

import logging
import math

import msgspec
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from octavo.core.errors import Detail, InvalidRequest, MethodNotAllowed, NotFound, OctavoError, QueueFull

_log = logging.getLogger(__name__)
_KEYS = frozenset({"message", "type", "code", "param", "hint", "details"})

ErrorObject = dict[str, Detail | dict[str, Detail]]


def openai_error(error: OctavoError) -> ErrorObject:
    """Give the error as OpenAI's clients read it: they show only ``message``, so the advice is in it too."""
    extra = {name: value for name, value in error.details.items() if name not in _KEYS}
    known = {"message": str(error), "type": error.kind, "code": error.code, "param": _param(error)}
    return {**known, "hint": error.hint, **extra}


def native_error(error: OctavoError) -> ErrorObject:
    """Give the error so that our own client can make the same error of it."""
    return {
        "message": error.message,
        "type": error.kind,
        "code": error.code,
        "param": _param(error),
        "hint": error.hint,
        "details": error.details,
    }


def error_response(error: OctavoError, path: str) -> Response:
    """Make the HTTP answer for an error on a route; only the native ones have a shape of their own."""
    shape = native_error if path.startswith("/api/") else openai_error
    return Response(
        msgspec.json.encode({"error": shape(error)}),
        status_code=error.status,
        headers=_headers(error),
        media_type="application/json",
    )


def answer_errors(app: FastAPI) -> None:
    """Have every failure of a route answered with an error body."""
    app.add_exception_handler(OctavoError, _on_octavo_error)
    app.add_exception_handler(HTTPException, _on_http_error)
    app.add_exception_handler(RequestValidationError, _on_invalid)
    app.add_exception_handler(Exception, _on_fault)


async def _on_octavo_error(request: Request, fault: Exception) -> Response:
    assert isinstance(fault, OctavoError)
    return error_response(fault, request.url.path)


async def _on_http_error(request: Request, fault: Exception) -> Response:
    assert isinstance(fault, HTTPException)
    response = error_response(_known(request, fault), request.url.path)
    response.headers.update(fault.headers or {})
    return response


async def _on_invalid(request: Request, fault: Exception) -> Response:
    assert isinstance(fault, RequestValidationError)
    first = fault.errors()[0]
    where = ".".join(str(part) for part in first["loc"])
    return error_response(
        InvalidRequest(f"The request can't be used: {where}: {first['msg']}."), request.url.path
    )


async def _on_fault(request: Request, fault: Exception) -> Response:
    _log.error("%s %s failed: %s", request.method, request.url.path, type(fault).__name__, exc_info=fault)
    error = OctavoError("The service failed on this request.", hint="Its log says why.")
    return error_response(error, request.url.path)


def _known(request: Request, fault: HTTPException) -> OctavoError:
    match fault.status_code:
        case 404:
            return no_route(request.method, request.url.path)
        case 405:
            return MethodNotAllowed(f"{request.url.path} doesn't answer {request.method}.")
        case _:
            return InvalidRequest(str(fault.detail))


def no_route(method: str, path: str) -> NotFound:
    """Make the error for a route that doesn't exist (on this door)."""
    return NotFound(f"There is no route {method} {path}.")


def _param(error: OctavoError) -> Detail:
    return error.details.get("param", error.details.get("field"))


def _headers(error: OctavoError) -> dict[str, str]:
    wait = error.details.get("retry_after_s", 1 if isinstance(error, QueueFull) else None)
    return {"Retry-After": str(math.ceil(wait))} if isinstance(wait, int | float) else {}
