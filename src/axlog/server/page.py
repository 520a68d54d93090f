"""The live page: HTML with its style and scripts, and what it asks for as JSON.

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
from axlog.server.answers import answer, number_in, wrong
from axlog.server.listing import MOST, TRUTHS, Asked
from axlog.server.observing import Observed
from axlog.server.operations import Operation

_POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; "
    "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_TYPES = {
    "page.html": "text/html",
    "page.css": "text/css",
    "page.js": "text/javascript",
    "drawing.js": "text/javascript",
}


def page_operations(observer: Observed) -> list[Operation]:
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
        return answer(await in_thread(observer.state, _asked(request)))

    async def live_tree(request: Request, token: Token) -> Response:
        return answer(await in_thread(observer.tree, request.query_params.get("widget", "")))

    async def live_why(request: Request, token: Token) -> Response:
        asked = request.query_params
        try:
            row = json.loads(asked.get("row", ""))
        except (RecursionError, ValueError):
            row = None
        if not isinstance(row, dict):
            raise wrong("the row is not a JSON object", '?row={"x": "17"}')
        widget, view = asked.get("widget", ""), asked.get("view", "")
        return answer(await in_thread(observer.why, widget, view, row))

    named = (("widget", "the widget"), ("view", "its view"))
    sought = (("truth", "true, possible or never"), ("find", "a text"), ("show", "so many rows"))
    return [
        *(static(name) for name in _TYPES),
        Operation("GET", "/live/state", "What the live page shows", live_state,
                  query=(*named, *sought)),
        Operation("GET", "/live/tree", "The top of a document", live_tree, query=named[:1]),
        Operation("GET", "/live/why", "Why a row is there", live_why,
                  query=(*named, ("row", "the row as JSON"))),
    ]  # fmt: skip


def _asked(request: Request) -> Asked:
    given = request.query_params
    truth = given.get("truth", "")
    if truth not in ("", *TRUTHS):
        raise wrong("there is no such truth", ", ".join(TRUTHS))
    show = int(number_in(request, "show", 100, 1, MOST))
    return Asked(
        given.get("widget", ""), given.get("view", ""), truth, given.get("find", "")[:200], show
    )


@cache
def _file(name: str) -> bytes:
    return (files("axlog.server") / name).read_bytes()
