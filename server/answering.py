"""Write values as JSON answers."""

import msgspec
from starlette.responses import Response

_encode = msgspec.json.Encoder().encode


def json_response(value: object, status_code: int = 200) -> Response:
    """Answer with a value as JSON."""
    return Response(_encode(value), status_code, media_type="application/json")
