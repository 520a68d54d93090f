"""Read requests within limits, and return errors as RFC 9457 problem details."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from axlog.errors import (
    CODES,
    AccessError,
    AxlogError,
    ChannelError,
    ConnectorError,
    UnknownStreamError,
)

_STATUS = {
    "AX203": 404,
    "AX801": 404,
    "AX802": 503,
    "AX803": 410,
    "AX804": 410,
    "AX808": 503,
    "AX805": 404,
    "AX811": 401,
    "AX812": 429,
    "AX813": 400,
    "AX814": 403,
    "AX815": 403,
    "AX817": 409,
}
_LATER = (429, 503)
PATIENCE = 30.0
"""Seconds within which the body of a request must arrive."""


def status_of(error: AxlogError) -> int:
    """Return the HTTP status of an error: 400 unless the table has another."""
    if isinstance(error, ConnectorError):
        return 502
    if isinstance(error, UnknownStreamError):
        return 404
    return _STATUS.get(error.code, 422)


def problem(error: AxlogError) -> Response:
    """Return an error as a response."""
    status = status_of(error)
    body: dict[str, Any] = {
        "type": f"urn:axlog:error:{error.code}",
        "title": CODES[error.code],
        "status": status,
        "code": error.code,
        "detail": error.message,
    }
    if error.place is not None:
        body["place"] = str(error.place)
    for name in ("expected", "advice", "context"):
        value = getattr(error, name)
        if value:
            body[name] = value
    headers = {"Retry-After": "1"} if status in _LATER else {}
    if status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    return Response(
        json.dumps(body, ensure_ascii=False),
        status,
        headers=headers,
        media_type="application/problem+json",
    )


def answer(value: object, status: int = 200) -> Response:
    """Return a value as a JSON response."""
    return Response(json.dumps(value, ensure_ascii=False), status, media_type="application/json")


def wrong(what: str, expected: str | None = None) -> ChannelError:
    """Return the error for a malformed request."""
    return ChannelError("AX813", what, expected=expected)


async def body_of(request: Request, most: int) -> bytes:
    """Return the body of a request, within limits on its size and time."""
    body = bytearray()
    try:
        async with asyncio.timeout(PATIENCE):
            async for part in request.stream():
                body += part
                if len(body) > most:
                    raise AccessError("AX812", f"the request has more than {most} bytes")
    except TimeoutError:
        raise wrong(f"the request did not arrive within {PATIENCE:g} seconds") from None
    except ClientDisconnect:
        raise wrong("the request was aborted") from None
    return bytes(body)


async def json_of(request: Request, most: int) -> dict[str, Any]:
    """Return the JSON object of a request."""
    body = await body_of(request, most)
    try:
        value = json.loads(body or b"{}")
    except (ValueError, RecursionError) as error:
        raise wrong(f"the body is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise wrong("the body is not a JSON object")
    return value


def number_in(request: Request, name: str, default: float, least: float, most: float) -> float:
    """Return a number of the query string, within bounds."""
    given = request.query_params.get(name)
    if given is None:
        return default
    try:
        value = float(given)
    except ValueError:
        value = float("nan")
    if not least <= value <= most:
        raise wrong(f"{name}={given[:50]!r}", expected=f"a number from {least:g} to {most:g}")
    return value
