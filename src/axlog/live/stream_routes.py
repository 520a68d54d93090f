"""The routes and message plans of a document's streams; streams at one place share them.

A route is made for the place of a call, the keys that its messages use up, and a filter. Streams
that differ in none of these have one route and one plan, so that their automaton, their generated
matchers and joins are made once. The automaton stays when views come and go.
"""

from __future__ import annotations

from axlog.document.message_key import KeyPath
from axlog.live.collector import Collector
from axlog.live.maintained import MaintainedTree
from axlog.match.stream_plan import MessagePlan, RelationFilter
from axlog.query.compile import Relation
from axlog.views.counting.routes import KeyUser, Route, Wants

Wanted = tuple[tuple[bytes, ...], ...] | None
"""The groups of names of which a message must have one; None: it may have any."""


class StreamRoutes:
    """Routes and plans, until views or sites change."""

    def __init__(self, document: MaintainedTree, collector: Collector) -> None:
        self._document, self._collector = document, collector
        self._routes: dict[tuple[int, tuple[KeyUser, ...]], Route] = {}
        self._plans: dict[Route, MessagePlan] = {}
        self._filters: dict[tuple[int, tuple[tuple[Relation, ...], ...]], RelationFilter] = {}
        self._filter_of: dict[Route, RelationFilter] = {}

    def clear(self) -> None:
        """Forget all but the filters: views or sites have changed."""
        self._routes, self._plans, self._filter_of = {}, {}, {}

    def route(self, stream: str, wants: Wants | None) -> Route:
        """The route of a stream with a call, and with a filter or without one."""
        document, tree = self._document, self._document.tree
        keys = self._collector.key_users(stream)
        place = tree.parent(tree.calls_by_stream[stream])
        same = None if wants is not None else (place, tuple(keys))
        route = None if same is None else self._routes.get(same)
        if route is None:
            route = Route(document.engine, place, wants, keys, document.many_relations)
            if same is not None:
                self._routes[same] = route
                kept = place, tuple(dict.fromkeys(relations for relations, _, _ in keys))
                if kept not in self._filters:
                    self._filters[kept] = RelationFilter(document.many_relations)
                self._filter_of[route] = self._filters[kept]
        return route

    def plan(self, route: Route, wanted: Wanted, replace: KeyPath | None) -> MessagePlan:
        """The plan of a route."""
        plan = self._plans.get(route)
        if plan is None or (plan.wanted, plan.replace) != (wanted, replace):
            document = self._document
            depth = sum(1 for _ in document.tree.ancestors(route.node))
            plan = self._plans[route] = MessagePlan(
                route.here, route.everywhere, document.limits, depth, wanted, replace,
                document.many_relations,
            )  # fmt: skip
            if route in self._filter_of:
                plan.adopt(self._filter_of[route])
        return plan
