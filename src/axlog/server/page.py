"""The live page: one file of HTML with its style and script, and what it asks for as JSON.

No build step and no outside address: the page is served from the package, and its policy lets it
load nothing from anywhere else. Everything that comes from documents is put in as text, never as
markup.
"""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files

from starlette.concurrency import run_in_threadpool as in_thread
from starlette.requests import Request
from starlette.responses import Response

from axlog.server.access import Token
from axlog.server.answers import answer, wrong
from axlog.server.observing import Observer
from axlog.server.operations import Operation

_POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; "
    "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_TYPES = {"page.html": "text/html", "page.css": "text/css", "page.js": "text/javascript"}


def page_operations(observer: Observer) -> list[Operation]:
    """What the server does for the live page."""

    def static(name: str) -> Operation:
        async def file(request: Request, token: Token) -> Response:
            headers = {
                "Content-Security-Policy": _POLICY,
                "X-Content-Type-Options": "nosniff",
                "Cache-Control": "no-cache",
                "Referrer-Policy": "no-referrer",
            }
            return Response(_file(name), media_type=_TYPES[name], headers=headers)

        file.__name__ = name.replace(".", "_")
        path = "/" if name == "page.html" else f"/{name}"
        return Operation("GET", path, f"The live page: {name}", file, answers=(_TYPES[name],))

    async def live_state(request: Request, token: Token) -> Response:
        return answer(await in_thread(observer.state))

    async def live_outlook(request: Request, token: Token) -> Response:
        asked = request.query_params
        widget, view = asked.get("widget", ""), asked.get("view", "")
        return answer(await in_thread(observer.outlook, widget, view))

    async def live_tree(request: Request, token: Token) -> Response:
        return answer(await in_thread(observer.tree, request.query_params.get("widget", "")))

    async def live_why(request: Request, token: Token) -> Response:
        asked = request.query_params
        try:
            row = json.loads(asked.get("row", ""))
        except ValueError:
            row = None
        if not isinstance(row, dict):
            raise wrong("the row is not a JSON object", '?row={"x": "17"}')
        widget, view = asked.get("widget", ""), asked.get("view", "")
        return answer(await in_thread(observer.why, widget, view, row))

    named = (("widget", "the widget"), ("view", "its view"))
    return [
        *(static(name) for name in _TYPES),
        Operation("GET", "/live/state", "What the live page shows", live_state),
        Operation("GET", "/live/outlook", "Truth and possible rows", live_outlook, query=named),
        Operation("GET", "/live/tree", "The top of a document", live_tree, query=named[:1]),
        Operation("GET", "/live/why", "Why a row is there", live_why,
                  query=(*named, ("row", "the row as JSON"))),
    ]  # fmt: skip


@cache
def _file(name: str) -> bytes:
    return (files("axlog.server") / name).read_bytes()
