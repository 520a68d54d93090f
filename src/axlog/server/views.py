"""Widgets over HTTP: their views' rows, and views that others add, within their quota.

    GET    /widgets                       widgets, their views and streams
    GET    /widgets/NAME/views/VIEW       the rows now
    PUT    /widgets/NAME/views/VIEW       add a view: {"query": "match ..."}; it counts to the quota
    DELETE /widgets/NAME/views/VIEW       take one away that was added so

A view that is added is filled from what the widget keeps; where that is not enough it is refused
(AX307). Views of the pipeline's own cannot be replaced or taken away.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from axlog.errors import AccessError, ChannelError, UndecidedError
from axlog.server.access import Access, Token
from axlog.server.answers import answer, json_of, number_in, wrong
from axlog.server.operations import Operation
from axlog.widgets.widget import Widget

MOST_ROWS = 10_000


class Views:
    """The operations of widgets."""

    def __init__(self, widgets: Mapping[str, Widget], access: Access) -> None:
        self.widgets = widgets
        self.access = access
        self._added: set[tuple[str, str]] = set()

    def operations(self) -> list[Operation]:
        """The table."""
        one, json = "/widgets/{widget}/views/{view}", ("application/json",)
        return [
            Operation("GET", "/widgets", "The widgets", self._widgets),
            Operation("GET", one, "A view's rows", self._rows, query=(("limit", "at most"),)),
            Operation("PUT", one, "Add a view", self._add_view, True, body=json, success="201"),
            Operation("DELETE", one, "Take a view away", self._drop_view, True, success="204"),
        ]

    def _widget(self, request: Request) -> tuple[str, Widget]:
        name = request.path_params["widget"]
        if name not in self.widgets:
            known = ", ".join(sorted(self.widgets)) or "none"
            raise ChannelError("AX801", f"there is no widget {name!r}", expected=known)
        return name, self.widgets[name]

    async def _widgets(self, request: Request, token: Token) -> Response:
        return answer(
            {
                name: {"views": sorted(widget.views), "streams": sorted(widget.streams())}
                for name, widget in self.widgets.items()
            }
        )

    async def _rows(self, request: Request, token: Token) -> Response:
        _, widget = self._widget(request)
        view = widget.view(request.path_params["view"])
        limit = int(number_in(request, "limit", MOST_ROWS, 0, MOST_ROWS))
        rows = await asyncio.to_thread(view.rows)
        said: dict[str, Any] = {
            "query": view.query.text,
            "count": len(rows),
            "rows": [{"row": row.plain(), "count": row.count} for row in rows[:limit]],
        }
        try:
            said["truth"] = (await asyncio.to_thread(lambda: view.truth)).value
        except UndecidedError as error:
            said["undecided"] = error.message
        return answer(said)

    async def _add_view(self, request: Request, token: Token) -> Response:
        name, widget = self._widget(request)
        view = request.path_params["view"]
        given = await json_of(request, token.size)
        query, language = given.get("query"), given.get("language")
        if not isinstance(query, str) or set(given) - {"query", "language"}:
            raise wrong("a view needs a query", '{"query": "match ..."}')
        if not isinstance(language, str | None):
            raise wrong("the language is not a text")
        if view in widget.views:
            raise wrong(f"there is a view {view!r} already")
        self.access.claim(token, "views", f"{name}/{view}")
        try:
            await asyncio.to_thread(widget.watch, query, view, language=language)
        except BaseException:
            self.access.release("views", f"{name}/{view}")
            raise
        self._added.add((name, view))
        return answer({"columns": list(widget.view(view).columns)}, 201)

    async def _drop_view(self, request: Request, token: Token) -> Response:
        name, widget = self._widget(request)
        view = request.path_params["view"]
        widget.view(view)
        if (name, view) not in self._added:
            raise AccessError("AX811", f"the view {view!r} is the pipeline's own")
        widget.document.forget(view)
        self._added.discard((name, view))
        self.access.release("views", f"{name}/{view}")
        return Response(status_code=204)
