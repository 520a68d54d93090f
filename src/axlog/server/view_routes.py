"""Documents over HTTP: rows of their views, and views added by clients within their quota.

    GET    /documents                             documents, their views and streams
    GET    /documents/NAME/views/VIEW             the current rows
    GET    /documents/NAME/views/VIEW/changes     a snapshot and the changes after it, as events
    PUT    /documents/NAME/views/VIEW             add a view: {"query": "match ..."}
    DELETE /documents/NAME/views/VIEW             remove an added view

Changes are server-sent events: `snapshot` with the position and the number of rows, the rows as
`insert` changes, `position`, and then every change with its position as the event's id. A reader
that reconnects (`Last-Event-ID`, or `?since=`) gets the changes after that position. A view that is
followed retains its newest changes (`View.retain`). A reader that falls behind them gets the event
`gap` with AX803 and a new snapshot.

An added view is back-filled from the data that the document keeps; if that is not enough it is
refused (AX307). It belongs to the principal that added it; only that principal or an administrator
can remove it. Views of the pipeline cannot be replaced or removed.

The routes of version 0.1, with `/widgets` instead of `/documents`, still work. Their answers have
the header `Deprecation` and a `Link` to the current route.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from dataclasses import replace
from typing import Any

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from axlog.errors import AccessError, ChannelError, QueryError, UndecidedError, UpdateError
from axlog.live.document import Document
from axlog.live.view import View
from axlog.query.query import checked_language
from axlog.server.access import Access, used_up
from axlog.server.change_events import followed
from axlog.server.channel_routes import leaving
from axlog.server.operations import Operation, address_of
from axlog.server.responses import answer, json_of, number_in, wrong
from axlog.server.roles import Principal
from axlog.server.roles import document as whole
from axlog.server.roles import view as resource
from axlog.views.family_names import is_member, shown_with

MOST_ROWS = 10_000
RETAINED = 1000
"""Changes that a followed view retains."""


class Views:
    """Return the operations of documents."""

    def __init__(
        self,
        documents: Mapping[str, Document],
        access: Access,
        families: Mapping[str, Collection[str]] | None = None,
    ) -> None:
        """`families`: the names of those that subscribers may add members to, by document."""
        self.documents = documents
        self.access = access
        self._families = families or {}
        self._owners: dict[tuple[str, str], str] = {}  # of the added views

    def operations(self) -> list[Operation]:
        """Return the table of operations."""
        one, json = "/documents/{document}/views/{view}", ("application/json",)
        current = [
            Operation("GET", "/documents", "The documents", self._documents, "own"),
            Operation("GET", one, "A view's rows", self._rows, query=(("limit", "at most"),)),
            Operation(
                "GET",
                f"{one}/changes",
                "A view's rows and changes, as events",
                self._changes,
                query=(("since", "the position of the last change that the reader has"),),
                answers=("text/event-stream",),
                headers=(("Last-Event-ID", "the position of the last change, like since"),),
            ),
            Operation("PUT", one, "Add a view", self._add_view, "watch", body=json, success="201"),
            Operation("DELETE", one, "Remove a view", self._drop_view, "watch", success="204"),
        ]
        old = (one for one in current if one.handler != self._changes)
        return [*current, *(_of_version_0_1(operation) for operation in old)]

    def named(self, request: Request) -> tuple[str, Document]:
        name = request.path_params["document"]
        if name not in self.documents:
            raise ChannelError("AX801", f"there is no document {name[:100]!r}")
        return name, self.documents[name]

    def count_of(self, owner: str) -> int:
        """The number of views that a principal has added."""
        return list(self._owners.values()).count(owner)

    def _view(self, doc: Document, name: str) -> View:
        """Return a view by name; the error does not reveal other names."""
        if name not in doc.views:
            raise QueryError("AX203", f"there is no view {name[:100]!r}")
        return doc.view(name)

    async def _documents(self, request: Request, caller: Principal) -> Response:
        """Return the documents that the principal may use: whole, a view, or a family."""
        self.access.check_known(caller)
        documents: dict[str, dict[str, list[str]]] = {}
        for name, doc in self.documents.items():
            is_whole = caller.may("read", whole(name))
            published = self._families.get(name, ())
            own = (
                view
                for view in sorted(doc.views)
                if not is_member(view) and (view == (of := shown_with(view)) or of not in published)
            )
            views = [view for view in own if caller.may("read", resource(name, view))]
            families = [one for one in published if caller.may("subscribe", resource(name, one))]
            if is_whole or views or families:
                documents[name] = {
                    "views": views,
                    "streams": sorted(doc.streams()) if is_whole else [],
                    **({"families": families} if families else {}),
                }
        return answer(documents)

    async def _rows(self, request: Request, caller: Principal) -> Response:
        _, doc = self.named(request)
        view = self._view(doc, request.path_params["view"])
        limit = int(number_in(request, "limit", MOST_ROWS, 0, MOST_ROWS))
        return answer(await self.rows_of(view, limit))

    async def rows_of(self, view: View, limit: int) -> dict[str, Any]:
        """Return the rows of a view, for JSON."""
        rows = await asyncio.to_thread(view.rows)
        body: dict[str, Any] = {
            "query": view.query.text,
            "key": list(view.key),
            "count": len(rows),
            "rows": [
                {"key": row.plain_key(), "row": row.to_dict(), "count": row.count}
                for row in rows[:limit]
            ],
        }
        try:
            body["truth"] = (await asyncio.to_thread(lambda: view.truth)).value
        except (UndecidedError, UpdateError) as error:  # undecided, or the needed data was dropped
            body["undecided"] = error.message
        return body

    async def _changes(self, request: Request, caller: Principal) -> Response:
        name, doc = self.named(request)
        view = self._view(doc, request.path_params["view"])

        def check() -> None:
            self.access.check(caller, "read", resource(name, view.name))

        return await self.events_of(request, caller, doc, view, check)

    async def events_of(
        self,
        request: Request,
        caller: Principal,
        doc: Document,
        view: View,
        check: Callable[[], None],
    ) -> Response:
        """Return the changes of a view as events; `check` raises when they must end."""
        last = request.headers.get("last-event-id")
        since = _position(last or request.query_params.get("since"))
        if not view.retained:
            view.retain(RETAINED)
        if since is not None and last is None:
            await asyncio.to_thread(view.changes_since, since)  # AX803 as the status
        with self.access.streaming(caller, address_of(request)):
            pass  # checked before streaming starts, so that it is refused with a status

        async def events() -> AsyncIterator[bytes]:
            yield b"retry: 1000\n\n"
            with self.access.streaming(caller, address_of(request)):
                async with leaving(request) as gone:
                    async for part in followed(doc, view, since, gone, check):
                        yield part

        return StreamingResponse(
            events(),
            media_type="text/event-stream",
            headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
        )

    async def _add_view(self, request: Request, caller: Principal) -> Response:
        name, doc = self.named(request)
        view = request.path_params["view"]
        given = await json_of(request, caller.limits.size)
        query, language = given.get("query"), given.get("language")
        if not isinstance(query, str) or set(given) - {"query", "language"}:
            raise wrong("a view needs a query", '{"query": "match ..."}')
        if not isinstance(language, str | None):
            raise wrong("the language is not a text")
        written_in = checked_language(language)
        if view in doc.views or (name, view) in self._owners:
            raise AccessError("AX817", f"there is a view {view!r} already")
        used_up(caller, "views", self.count_of(caller.name))
        self._owners[name, view] = caller.name
        try:
            work = caller.limits.work
            await asyncio.to_thread(doc.watch, query, view, language=written_in, work=work)
        except BaseException:
            del self._owners[name, view]
            raise
        return answer({"columns": list(doc.view(view).columns)}, 201)

    async def _drop_view(self, request: Request, caller: Principal) -> Response:
        name, doc = self.named(request)
        view = request.path_params["view"]
        self._view(doc, view)
        owner = self._owners.get((name, view))
        if owner is None:
            raise AccessError("AX814", f"the view {view!r} belongs to the pipeline")
        if owner != caller.name and not caller.may("administer", resource(name, view)):
            raise AccessError("AX814", f"the view {view!r} belongs to another principal")
        doc.unwatch(view)
        del self._owners[name, view]
        return Response(status_code=204)


def _of_version_0_1(operation: Operation) -> Operation:
    """Return the same operation under the route that version 0.1 had for it."""
    old = operation.path.replace("/documents", "/widgets", 1)
    return replace(operation, path=old, successor="/documents")


def _position(given: str | None) -> int | None:
    if given is None:
        return None
    if not given.isdecimal() or len(given) > 18:
        raise wrong(f"since={given[:50]!r}", expected="the position of a change")
    return int(given)
