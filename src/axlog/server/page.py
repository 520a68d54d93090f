"""The live page: HTML with its style and scripts, and its data as JSON.

There is no build step and no external address: the page is served from the package, and its content
security policy allows nothing from elsewhere. Contents of documents are inserted as text, never as
markup. The files are public, because they contain no data; the data shows only what the principal
may read.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import replace
from functools import cache
from importlib.resources import files
from typing import Any

from starlette.concurrency import run_in_threadpool as in_thread
from starlette.requests import Request
from starlette.responses import Response

from axlog.server.access import Access
from axlog.server.operations import Operation
from axlog.server.page_actions import action_operations, asked_in
from axlog.server.responses import answer, wrong
from axlog.server.roles import SERVER, Principal, document, view
from axlog.server.summaries import Observed

_POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; "
    "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_TYPES = {
    "page.html": "text/html",
    "page.css": "text/css",
    **dict.fromkeys(
        ("drawing.js", "rows.js", "explanation.js", "tools.js", "page.js"), "text/javascript"
    ),
}


def page_operations(
    observer: Observed, access: Access, documents: Collection[str] = ()
) -> list[Operation]:
    """Return the operations of the live page.

    `documents`: those to which the server lets principals add views (`view_routes.py`).
    """

    def static(name: str) -> Operation:
        async def file(request: Request, caller: Principal) -> Response:
            headers = {
                "Content-Security-Policy": _POLICY,
                "X-Content-Type-Options": "nosniff",
                "Cache-Control": "no-cache",
                "Referrer-Policy": "no-referrer",
            }
            return Response(_file(name), media_type=_TYPES[name], headers=headers)

        file.__name__ = name.replace(".", "_")
        path = "/" if name == "page.html" else f"/{name}"
        return Operation("GET", path, f"The live page: {name}", file, "", answers=(_TYPES[name],))

    async def live_state(request: Request, caller: Principal) -> Response:
        access.check_known(caller)
        asked = asked_in(request)
        if asked.view and not caller.may("read", view(asked.document, asked.view)):
            asked = replace(asked, document="", view="")
        state = shown_to(caller, await in_thread(observer.state, asked))
        state["can_watch"] = [name for name in documents if caller.may("watch", view(name, "new"))]
        return answer(state)

    async def live_tree(request: Request, caller: Principal) -> Response:
        name = request.query_params.get("document", "")
        access.check(caller, "read", document(name))
        return answer(await in_thread(observer.tree, name))

    async def live_why(request: Request, caller: Principal) -> Response:
        asked = request.query_params
        try:
            row = json.loads(asked.get("row", ""))
        except (RecursionError, ValueError):
            row = None
        if not isinstance(row, dict):
            raise wrong("the row is not a JSON object", '?row={"x": "17"}')
        name = asked.get("document", "")
        access.check(caller, "read", document(name))  # reasons show the document
        try:
            return answer(await in_thread(observer.why, name, asked.get("view", ""), row))
        except KeyError as error:
            raise wrong(f"the row has no value for {error.args[0]!r}") from None

    named = (("document", "the document"), ("view", "its view"))
    sought = (
        ("truth", "true, possible or never"),
        ("find", "a text"),
        ("show", "maximum number of rows"),
        ("start", "number of rows to skip, of one truth"),
    )
    return [
        *(static(name) for name in _TYPES),
        Operation("GET", "/live/state", "The data of the live page", live_state, "own",
                  query=(*named, *sought)),
        Operation("GET", "/live/tree", "The top of a document", live_tree, "own",
                  query=named[:1]),
        Operation("GET", "/live/why", "The truth of a row, why, and its history", live_why, "own",
                  query=(*named, ("row", "the row, or the values of its key, as JSON"))),
        *action_operations(observer, access),
    ]  # fmt: skip


def shown_to(caller: Principal, state: dict[str, Any]) -> dict[str, Any]:
    """Remove from the state of a page what a principal may not read.

    For a document of which only views may be read, streams and sizes are omitted. Dead letters,
    lagging connectors and the system's graph belong to the server as a whole.
    """
    documents = []
    for each in state["documents"]:
        name = each["name"]
        views = [one for one in each["views"] if caller.may("read", view(name, one["name"]))]
        if caller.may("read", document(name)):
            documents.append({**each, "views": views})
        elif views:
            hidden: dict[str, Any] = {"nodes": None, "state": None, "sizes": [], "streams": []}
            documents.append({**each, **hidden, "views": views})
    changes = [
        one for one in state["changes"] if caller.may("read", view(one["document"], one["view"]))
    ]
    page = {**state, "documents": documents, "changes": changes}
    if not caller.may("read", SERVER):
        empty: dict[str, Any] = {"sources": [], "wires": [], "sinks": []}
        page |= {"letters": [], "refused": 0, "lagging": [], "pressure": [], "system": empty}
    page["can_replay"] = state["can_replay"] and caller.may("administer", SERVER)
    return page


@cache
def _file(name: str) -> bytes:
    return (files("axlog.server") / name).read_bytes()
