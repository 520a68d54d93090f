"""Families of views over HTTP: a subscriber watches a published query with its own parameters.

    GET    /documents/NAME/families                          the published families
    GET    /documents/NAME/families/F/members?search=inria   members, found by their values
    PUT    /documents/NAME/families/F/members/MEMBER         {"parameters": {"client": "INRIA"}}
    GET    /documents/NAME/families/F/members/MEMBER         its rows
    GET    /documents/NAME/families/F/members/MEMBER/changes  a snapshot, then changes, as events
    DELETE /documents/NAME/families/F/members/MEMBER         remove it

A pipeline publishes a family by `for_each`. The grant is `subscribe` on the view: it allows values,
not queries, so a subscriber reads nothing that the query does not show. A member belongs to the
principal that added it, and only that principal sees it; its number is limited like that of other
views. The members of the pipeline's table, and those of others, are listed for administrators.

`{"parameters": {...}, "channel": "alerts"}` also publishes the changes of the member on a channel
that the principal may publish to. The channel's readers, filters and webhooks then follow it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from secrets import token_hex
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from axlog.connect.channels.channel import LocalChannel
from axlog.connect.channels.registry import Channels
from axlog.connect.channels.row_updates import updates_of
from axlog.errors import AccessError, ChannelError, QueryError
from axlog.live.document import Document
from axlog.live.internals import maintained
from axlog.live.view import View
from axlog.pipeline.families import family_of, is_pilot, row_of
from axlog.query.parameters import parameters_of, with_parameters
from axlog.server.access import Access, used_up
from axlog.server.channel_routes import channel_of
from axlog.server.operations import Operation
from axlog.server.responses import answer, json_of, number_in, wrong
from axlog.server.roles import Principal
from axlog.server.roles import channel as channel_resource
from axlog.server.roles import view as resource
from axlog.server.view_routes import MOST_ROWS, Views
from axlog.views.change import Change

MOST_MEMBERS = 1000
"""Members in one answer."""
_OWNED = "@"
"""Separates the family and the owner in the name of a member that a principal added."""
Published = Mapping[str, Mapping[str, "PublishedFamily"]]
"""The published families, by document and name."""


@dataclass(frozen=True, slots=True)
class PublishedFamily:
    """A query whose parameters subscribers choose."""

    query: str
    parameters: tuple[str, ...]
    language: str | None = None


class FamilyRoutes:
    """The operations of families."""

    def __init__(
        self, views: Views, published: Published, channels: Channels, access: Access
    ) -> None:
        self._views = views
        self._published = published
        self._channels = channels
        self._access = access
        self._owners: dict[tuple[str, str], str] = {}  # by document and view

    def operations(self) -> list[Operation]:
        """Return the table of operations."""
        every = "/documents/{document}/families"
        members = f"{every}/{{family}}/members"
        one, json = f"{members}/{{member}}", ("application/json",)
        search = (("search", "a part of a value or name"), ("limit", "at most"))
        return [
            Operation("GET", every, "The families of a document", self._families, "own"),
            Operation(
                "GET", members, "Members of a family", self._members, "subscribe", query=search
            ),
            Operation("PUT", one, "Add a member", self._add, "subscribe", body=json, success="201"),
            Operation(
                "GET",
                one,
                "A member's rows",
                self._rows,
                "subscribe",
                query=search[1:],
            ),
            Operation(
                "GET",
                f"{one}/changes",
                "A member's rows and changes, as events",
                self._changes,
                "subscribe",
                query=(("since", "the position of the last change that the reader has"),),
                answers=("text/event-stream",),
                headers=(("Last-Event-ID", "the position of the last change, like since"),),
            ),
            Operation("DELETE", one, "Remove a member", self._remove, "subscribe", success="204"),
        ]

    # Finding --------------------------------------------------------------------------------------

    def _found(self, request: Request) -> tuple[str, Document, str, PublishedFamily]:
        name, doc = self._views.named(request)
        family = request.path_params["family"]
        published = self._published.get(name, {}).get(family)
        if published is None:
            raise QueryError("AX203", f"there is no family {family[:100]!r}")
        return name, doc, family, published

    def _own(self, request: Request, caller: Principal) -> tuple[str, Document, View]:
        """Return a member of the caller; the names of others do not exist for it."""
        name, doc, family, _ = self._found(request)
        member = request.path_params["member"]
        view = member_name(family, caller.name, member)
        if (name, view) not in self._owners or doc.views.get(view) is None:
            raise QueryError("AX203", f"there is no member {member[:100]!r}")
        return name, doc, doc.view(view)

    async def _families(self, request: Request, caller: Principal) -> Response:
        self._access.check_known(caller)
        name, doc = self._views.named(request)
        found: dict[str, Any] = {}
        for family, published in self._published.get(name, {}).items():
            if caller.may("subscribe", resource(name, family)):
                found[family] = {
                    "query": published.query,
                    "parameters": list(published.parameters),
                    "members": sum(1 for _ in self._listed(name, doc, family, caller)),
                }
        return answer(found)

    def _listed(
        self, name: str, doc: Document, family: str, caller: Principal
    ) -> Iterator[tuple[str, list[Any]]]:
        """Return the members that a principal may see: names, and the values of a table's row."""
        sees_all = caller.may("administer", resource(name, family))
        for view, _ in maintained(doc).families.every_view():
            if family_of(view) == family and view != family and not is_pilot(view):
                if sees_all:
                    yield view, [str(value) for value in row_of(view)]
            elif view.startswith(f"{family}{_OWNED}"):
                owner = self._owners.get((name, view))
                if owner is not None and (sees_all or owner == caller.name):
                    yield view.removeprefix(f"{family}{_OWNED}"), []

    async def _members(self, request: Request, caller: Principal) -> Response:
        name, doc, family, _ = self._found(request)
        asked = request.query_params.get("search", "").casefold()
        limit = int(number_in(request, "limit", MOST_MEMBERS, 0, MOST_MEMBERS))

        def found() -> tuple[int, list[dict[str, Any]]]:
            with maintained(doc).lock:
                every = [m for m in self._listed(name, doc, family, caller)
                         if asked in m[0].casefold()]  # fmt: skip
            return len(every), [{"name": n, "values": v} for n, v in islice(every, limit)]

        count, shown = await asyncio.to_thread(found)
        return answer({"count": count, "members": shown})

    # Members --------------------------------------------------------------------------------------

    async def _add(self, request: Request, caller: Principal) -> Response:
        name, doc, family, published = self._found(request)
        given = await json_of(request, caller.limits.size)
        parameters, channel = given.get("parameters"), given.get("channel")
        if not isinstance(parameters, dict) or set(given) - {"parameters", "channel"}:
            raise wrong("a member needs parameters", '{"parameters": {"client": "INRIA"}}')
        missing = set(published.parameters) - set(parameters)
        if missing:
            raise wrong(f"the parameter {min(missing)!r} has no value")
        unknown = set(parameters) - set(published.parameters)
        if unknown:
            raise wrong(f"unknown parameter {min(unknown)!r}", ", ".join(published.parameters))
        target = self._target(channel, caller)
        text = with_parameters(published.query, parameters, published.language)
        view = member_name(family, caller.name, request.path_params["member"])
        key = (name, view)
        if key in self._owners:
            raise AccessError("AX817", f"there is a member {request.path_params['member']!r}")
        used_up(caller, "views", self.count_of(caller.name) + self._views.count_of(caller.name))
        self._owners[key] = caller.name

        def watch() -> View:
            with maintained(doc).families.restoring(is_shared=True):
                made = doc.watch(text, view, language=published.language)  # type: ignore[arg-type]
            if target is not None:
                _publish(made, target, family, f"{name}/{view}/{token_hex(8)}")
            return made

        try:
            made = await asyncio.to_thread(watch)
        except BaseException:
            del self._owners[key]
            raise
        return answer({"columns": list(made.columns)}, 201)

    def _target(self, channel: Any, caller: Principal) -> LocalChannel | None:
        if channel is None:
            return None
        if not isinstance(channel, str):
            raise wrong("the channel is not a text")
        self._access.check(caller, "publish", channel_resource(channel))
        return channel_of(self._channels, channel)

    def count_of(self, owner: str) -> int:
        """The number of members that a principal has."""
        return list(self._owners.values()).count(owner)

    async def _rows(self, request: Request, caller: Principal) -> Response:
        _, _, view = self._own(request, caller)
        limit = int(number_in(request, "limit", MOST_ROWS, 0, MOST_ROWS))
        return answer(await self._views.rows_of(view, limit))

    async def _changes(self, request: Request, caller: Principal) -> Response:
        name, doc, view = self._own(request, caller)
        family = request.path_params["family"]

        def check() -> None:
            self._access.check(caller, "subscribe", resource(name, family))

        return await self._views.events_of(request, caller, doc, view, check)

    async def _remove(self, request: Request, caller: Principal) -> Response:
        name, doc, view = self._own(request, caller)
        await asyncio.to_thread(doc.unwatch, view.name)
        del self._owners[name, view.name]
        return Response(status_code=204)


def member_name(family: str, owner: str, member: str) -> str:
    """The name of the view of a member that a principal added."""
    return f"{family}{_OWNED}{owner}/{member}"


def published_family(
    query: str, language: str | None = None, columns: tuple[str, ...] = ()
) -> PublishedFamily:
    """A family of this query; `columns`: the names that may be parameters (default: all)."""
    known = parameters_of(query, language)
    used = tuple(name for name in (columns or known) if name in known)
    if not used:
        raise ChannelError("AX801", "the query has no parameters")
    return PublishedFamily(query, used, language)


def _publish(view: View, channel: LocalChannel, family: str, producer: str) -> None:
    """Publish the rows of a view and its later changes on a channel."""
    number = 0

    def send(change: Change) -> None:
        nonlocal number
        for update in updates_of(change, family):
            number += 1
            channel.publish(update, (producer, number))

    view.subscribe(send, snapshot=True)
