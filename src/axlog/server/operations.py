"""The table of what the server does, from which both the routes and the description are made.

The OpenAPI description (`/openapi.json`) cannot differ from what is served: an operation is one
entry with its method, its path, its words and its handler.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from axlog.errors import AxlogError
from axlog.server.access import Access, Token
from axlog.server.answers import problem

Handler = Callable[[Request, Token], Awaitable[Response]]
_TYPES = {"integer": ("after", "limit"), "number": ("wait",)}


@dataclass(frozen=True, slots=True)
class Operation:
    """One thing that can be asked of the server."""

    method: str
    path: str
    summary: str
    handler: Handler
    writes: bool = False  # it changes something: a token is needed
    query: tuple[tuple[str, str], ...] = ()  # names and words
    body: tuple[str, ...] = ()  # media types
    answers: tuple[str, ...] = ("application/json",)
    success: str = "200"
    headers: tuple[tuple[str, str], ...] = ()

    def route(self, access: Access) -> Route:
        async def endpoint(request: Request) -> Response:
            try:
                token = access.who(request.headers.get("authorization"), writes=self.writes)
                return await self.handler(request, token)
            except AxlogError as error:
                return problem(error)

        return Route(self.path, endpoint, methods=[self.method])

    def described(self) -> dict[str, Any]:
        """The operation in OpenAPI's words."""
        named = [_parameter(name, "path", "", True) for name in re.findall(r"{(\w+)}", self.path)]
        named += [_parameter(name, "query", words) for name, words in self.query]
        named += [_parameter(name, "header", words) for name, words in self.headers]
        said: dict[str, Any] = {
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
        if named:
            said["parameters"] = named
        if self.body:
            said["requestBody"] = {"required": True, "content": {t: {} for t in self.body}}
        if self.writes:
            said["security"] = [{"token": []}]
        return said


def _parameter(name: str, where: str, words: str, required: bool = False) -> dict[str, Any]:
    kind = next((kind for kind, names in _TYPES.items() if name in names), "string")
    said: dict[str, Any] = {"name": name, "in": where, "schema": {"type": kind}}
    if words:
        said["description"] = words
    if required:
        said["required"] = True
    return said


def description(operations: Iterable[Operation], version: str) -> dict[str, Any]:
    """The OpenAPI description of operations."""
    paths: dict[str, dict[str, Any]] = {}
    for operation in operations:
        entry = paths.setdefault(operation.path, {})
        entry[operation.method.lower()] = operation.described()
    return {
        "openapi": "3.1.0",
        "info": {"title": "axlog channels", "version": version},
        "paths": paths,
        "components": {"securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
    }
