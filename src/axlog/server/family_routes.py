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

Members outlast the server, if it has a directory (`kept_members.py`). Rights are checked again when
it starts, and before each row that goes to a channel.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from axlog.connect.channels.registry import Channels
from axlog.errors import AccessError, AxlogError, ChannelError, QueryError
from axlog.live.document import Document
from axlog.live.internals import maintained, maintained_view
from axlog.live.view import View
from axlog.pipeline.families import row_of
from axlog.query.parameters import parameters_of, with_parameters
from axlog.reporting import report
from axlog.server.access import Access, used_up
from axlog.server.channel_routes import channel_of
from axlog.server.kept_members import KeptMember, KeptMembers
from axlog.server.member_channels import MemberChannel, forget_member
from axlog.server.operations import Operation
from axlog.server.responses import answer, json_of, number_in, wrong
from axlog.server.roles import Principal
from axlog.server.roles import channel as channel_resource
from axlog.server.roles import view as resource
from axlog.server.view_routes import MOST_ROWS, Views
from axlog.views.family_names import GENERATION, OWNED, family_of, is_pilot

_log = logging.getLogger("axlog.server")
MOST_MEMBERS = 1000
"""Members in one answer."""
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
        self,
        views: Views,
        published: Published,
        channels: Channels,
        access: Access,
        kept: KeptMembers | None = None,
    ) -> None:
        self._views = views
        self._published = published
        self._channels = channels
        self._access = access
        self._kept = kept or KeptMembers()
        self._known: dict[tuple[str, str], KeptMember] = {}  # by document and view
        for member in self._kept:
            try:
                self._watch_again(member)
            except AxlogError as error:
                report(_log, logging.WARNING, "member not watched", view=member.family,
                       member=member.name, owner=member.owner, code=error.code,
                       reason=error.message)  # fmt: skip

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
        if (name, view) not in self._known or doc.views.get(view) is None:
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
            elif view.startswith(f"{family}{OWNED}"):
                member = self._known.get((name, view))
                if member is not None and (sees_all or member.owner == caller.name):
                    values = [str(value) for value in member.parameters.values()]
                    yield view.removeprefix(f"{family}{OWNED}"), values

    async def _members(self, request: Request, caller: Principal) -> Response:
        name, doc, family, _ = self._found(request)
        asked = request.query_params.get("search", "").casefold()
        limit = int(number_in(request, "limit", MOST_MEMBERS, 0, MOST_MEMBERS))

        def found() -> tuple[int, list[dict[str, Any]]]:
            with maintained(doc).lock:
                every = [
                    (member, values)
                    for member, values in self._listed(name, doc, family, caller)
                    if any(asked in each.casefold() for each in (member, *values))
                ]
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
        self._target(channel, caller)
        asked = request.path_params["member"]
        member = KeptMember(name, family, caller.name, asked, parameters, channel)
        key = (name, member_name(family, caller.name, asked))
        if key in self._known:
            raise AccessError("AX817", f"there is a member {asked!r}")
        used_up(caller, "views", self.count_of(caller.name) + self._views.count_of(caller.name))
        self._known[key] = member

        def watch() -> View:
            made = self._watch(doc, published, member)
            try:
                self._kept.add(member)
            except BaseException:
                doc.unwatch(made.name)
                raise
            return made

        try:
            made = await asyncio.to_thread(watch)
        except BaseException:
            del self._known[key]
            raise
        return answer({"columns": list(made.columns)}, 201)

    def _watch(
        self, doc: Document, published: PublishedFamily, member: KeptMember, position: int = 0
    ) -> View:
        """Watch a member, and publish it on its channel."""
        text = with_parameters(published.query, member.parameters, published.language)
        view = member_name(member.family, member.owner, member.name)
        with maintained(doc).lock:
            with maintained(doc).families.restoring(is_shared=True):
                made = doc.watch(text, view, language=published.language)  # type: ignore[arg-type]
            if position:
                maintained_view(made).position = position
            if member.channel is not None:
                target = channel_of(self._channels, member.channel)
                MemberChannel(made, target, member.family, f"{member.document}/{view}",
                              lambda: self._is_allowed(member)).start()  # fmt: skip
        return made

    def _watch_again(self, member: KeptMember) -> None:
        """Watch a member that was kept, if its family is published and its owner may have it."""
        published = self._published.get(member.document, {}).get(member.family)
        doc = self._views.documents.get(member.document)
        if published is None or doc is None:
            raise QueryError("AX203", f"there is no family {member.family!r}")
        if not self._is_allowed(member):
            raise AccessError("AX814", f"{member.owner!r} may not have this member any more")
        self._watch(doc, published, member, GENERATION * self._kept.generation)
        view = member_name(member.family, member.owner, member.name)
        self._known[member.document, view] = member

    def _is_allowed(self, member: KeptMember) -> bool:
        """Whether the owner of a member has the rights that it needs."""
        owner = self._access.named(member.owner)
        return (
            owner is not None
            and owner.may("subscribe", resource(member.document, member.family))
            and (member.channel is None or owner.may("publish", channel_resource(member.channel)))
        )

    def _target(self, channel: Any, caller: Principal) -> None:
        """Check the channel that is to follow a member."""
        if channel is None:
            return
        if not isinstance(channel, str):
            raise wrong("the channel is not a text")
        self._access.check(caller, "publish", channel_resource(channel))
        channel_of(self._channels, channel)

    def count_of(self, owner: str) -> int:
        """The number of members that a principal has."""
        return sum(member.owner == owner for member in self._known.values())

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
        member = self._known[name, view.name]
        await asyncio.to_thread(self._kept.remove, member)
        await asyncio.to_thread(doc.unwatch, view.name)
        del self._known[name, view.name]
        if member.channel is not None and member.channel in self._channels:
            forget_member(channel_of(self._channels, member.channel), f"{name}/{view.name}")
        return Response(status_code=204)


def member_name(family: str, owner: str, member: str) -> str:
    """The name of the view of a member that a principal added."""
    return f"{family}{OWNED}{owner}/{member}"


def published_family(
    query: str, language: str | None = None, columns: tuple[str, ...] = ()
) -> PublishedFamily:
    """A family of this query; `columns`: the names that may be parameters (default: all)."""
    known = parameters_of(query, language)
    used = tuple(name for name in (columns or known) if name in known)
    if not used:
        raise ChannelError("AX801", "the query has no parameters")
    return PublishedFamily(query, used, language)
