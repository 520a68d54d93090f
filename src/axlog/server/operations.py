"""The table of operations, from which both the routes and the OpenAPI description are generated.

The description (`/openapi.json`) cannot differ from what is served: an operation is one entry with
its method, path, description, required grant and handler.

The object of a request follows from its path: `{channel}`, `{document}`, or `{document}` and
`{view}` or `{family}`. The grant is checked before anything is looked up, so a principal without it
cannot learn whether the object exists. If the object is named elsewhere (`needs="own"`), the
handler checks.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from axlog.errors import AxlogError
from axlog.reporting import report
from axlog.server.access import Access
from axlog.server.responses import problem
from axlog.server.roles import SERVER, Principal, Resource, channel, document, view

Handler = Callable[[Request, Principal], Awaitable[Response]]
_events = logging.getLogger("axlog.server")
_TYPES = {"integer": ("after", "limit", "since"), "number": ("wait",)}


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation of the server."""

    method: str
    path: str
    summary: str
    handler: Handler
    needs: str = "read"  # a verb of `roles.VERBS`, "own": the handler checks, or "": open to all
    query: tuple[tuple[str, str], ...] = ()  # names and descriptions
    body: tuple[str, ...] = ()  # media types
    answers: tuple[str, ...] = ("application/json",)
    success: str = "200"
    headers: tuple[tuple[str, str], ...] = ()
    successor: str | None = None  # the route that replaces it, if it is deprecated

    def route(self, access: Access) -> Route:
        @cache
        def log_once() -> None:
            report(_events, logging.WARNING, "a client uses a deprecated route",
                   method=self.method, path=self.path, successor=self.successor)  # fmt: skip

        async def endpoint(request: Request) -> Response:
            try:
                caller = access.caller(request)
                access.spend(caller, address_of(request))
                if self.needs not in ("", "own"):
                    access.check(caller, self.needs, about(request))
                answered = await self.handler(request, caller)
                if self.successor is not None:
                    mark_deprecated(answered, self.successor)
                    log_once()
            except AxlogError as error:
                return problem(error)
            if request.method == "HEAD" and isinstance(answered, StreamingResponse):
                return Response(status_code=answered.status_code, headers=dict(answered.headers))
            return answered

        return Route(self.path, endpoint, methods=[self.method])

    def described(self) -> dict[str, Any]:
        """Return the OpenAPI description of the operation."""
        named = [_parameter(name, "path", "", True) for name in re.findall(r"{(\w+)", self.path)]
        named += [_parameter(name, "query", words) for name, words in self.query]
        named += [_parameter(name, "header", words) for name, words in self.headers]
        operation: dict[str, Any] = {
            "summary": self.summary,
            "operationId": self.handler.__name__.strip("_"),
            "responses": {
                self.success: {"description": "done", "content": {t: {} for t in self.answers}},
                "default": {
                    "description": "a problem (RFC 9457) with axlog's code",
                    "content": {"application/problem+json": {}},
                },
            },
        }
        if self.successor is not None:
            operation |= {"deprecated": True, "operationId": f"old_{operation['operationId']}"}
        if named:
            operation["parameters"] = named
        if self.body:
            operation["requestBody"] = {"required": True, "content": {t: {} for t in self.body}}
        if self.needs:
            operation["security"] = [{"token": []}, {"session": []}]
            operation["x-axlog-grant"] = self.needs
        return operation


def mark_deprecated(answered: Response, successor: str) -> None:
    """Add the headers of an answer to a deprecated route."""
    answered.headers["Deprecation"] = "true"
    answered.headers["Link"] = f'<{successor}>; rel="successor-version"'


def about(request: Request) -> Resource:
    """Return the object of a request, from the names in its path."""
    named = request.path_params
    if "channel" in named:
        return channel(named["channel"])
    if "family" in named:
        return view(named["document"], named["family"])
    if "view" in named:
        return view(named["document"], named["view"])
    return document(named["document"]) if "document" in named else SERVER


def address_of(request: Request) -> str:
    """Return the address of the client."""
    return "" if request.client is None else request.client.host


def _parameter(name: str, where: str, words: str, required: bool = False) -> dict[str, Any]:
    kind = next((kind for kind, names in _TYPES.items() if name in names), "string")
    parameter: dict[str, Any] = {"name": name, "in": where, "schema": {"type": kind}}
    if words:
        parameter["description"] = words
    if required:
        parameter["required"] = True
    return parameter


def description(operations: Iterable[Operation], version: str) -> dict[str, Any]:
    """Return the OpenAPI description of all operations."""
    paths: dict[str, dict[str, Any]] = {}
    for operation in operations:
        path = re.sub(r":\w+}", "}", operation.path)  # path converters are not part of OpenAPI
        entry = paths.setdefault(path, {})
        entry[operation.method.lower()] = operation.described()
    return {
        "openapi": "3.1.0",
        "info": {"title": "axlog", "version": version},
        "paths": paths,
        "components": {
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer"},
                "session": {"type": "apiKey", "in": "cookie", "name": "axlog-PORT"},
            }
        },
    }
