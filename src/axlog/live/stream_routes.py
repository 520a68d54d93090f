"""The routes and message plans of a document's streams; streams at one place share them.

A route is made for the place of a call, the keys that its messages use up, and a filter. Streams
that differ in none of these have one route and one plan, so that their automaton, their generated
matchers and joins are made once. The automaton stays when views come and go. If views were only
added, routes and plans with an automaton are added to: this costs the new views alone.
"""

from __future__ import annotations

from axlog.document.message_key import KeyPath
from axlog.live.collector import Collector
from axlog.live.maintained import MaintainedTree
from axlog.live.stream_needs import Wanted
from axlog.match.stream_plan import MessagePlan, RelationFilter
from axlog.query.compile import Relation
from axlog.views.counting.routes import KeyUser, Route, Wants

_Place = tuple[int, tuple[KeyUser, ...]]
"""The parent of a call, and the keys that messages there use up."""


class StreamRoutes:
    """Routes and plans, until views or sites change."""

    def __init__(self, document: MaintainedTree, collector: Collector) -> None:
        self._document, self._collector = document, collector
        self._rebuilt = -1
        self._grown = 0  # the states among those added to the engine that the routes have
        self._routes: dict[_Place, Route] = {}
        self._streams: dict[Route, str] = {}  # one stream of each route
        self._plans: dict[Route, MessagePlan] = {}
        self._filters: dict[tuple[int, tuple[tuple[Relation, ...], ...]], RelationFilter] = {}
        self._filter_of: dict[Route, RelationFilter] = {}

    def clear(self) -> None:
        """Forget all but the filters: views or sites have changed."""
        self._routes, self._streams, self._plans, self._filter_of = {}, {}, {}, {}
        self._rebuilt, self._grown = self._document.engine.rebuilt, len(self._document.engine.grown)

    @property
    def may_grow(self) -> bool:
        """Whether views were only added since the routes were made."""
        return self._rebuilt == self._document.engine.rebuilt

    def grow(self) -> None:
        """Follow the views that were added; forget the routes that cannot."""
        if not self.may_grow:
            self.clear()
            return
        engine = self._document.engine
        states, self._grown = engine.grown[self._grown :], len(engine.grown)
        routes, self._routes = self._routes, {}
        plans, self._plans = self._plans, {}
        for (place, keys), route in routes.items():
            stream, plan, kept = self._streams[route], plans.get(route), self._filter_of[route]
            users = self._collector.key_users(stream) if self._has_call(stream) else []
            is_own = sum(1 for each in self._filter_of.values() if each is kept) == 1
            is_same = tuple(users) == keys
            if (
                plan is None
                or plan.shared is not kept.filter
                or not (is_same or is_own)
                or not route.grow(states, users)
            ):
                del self._streams[route], self._filter_of[route]
                continue
            if not is_same:
                self._filters.pop(_filter_key(place, keys), None)
                self._filters[_filter_key(place, users)] = kept
            self._routes[place, tuple(users)] = route
            self._plans[route] = plan

    def _has_call(self, stream: str) -> bool:
        return stream in self._document.tree.calls_by_stream

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
                kept = _filter_key(place, keys)
                if kept not in self._filters:
                    self._filters[kept] = RelationFilter(document.many_relations)
                self._filter_of[route] = self._filters[kept]
                self._streams[route] = stream
        return route

    def plan(self, route: Route, wanted: Wanted, replace: KeyPath | None) -> MessagePlan:
        """The plan of a route."""
        plan = self._plans.get(route)
        if plan is not None and plan.replace == replace and self._follows(plan, route):
            if len(plan.here) + len(plan.everywhere) < len(route.here) + len(route.everywhere):
                kept = self._filter_of[route]
                plan = plan.grown(route.here, route.everywhere, wanted, kept)
                self._plans[route] = plan
            if plan.wanted == wanted:
                return plan
        document = self._document
        depth = sum(1 for _ in document.tree.ancestors(route.node))
        plan = self._plans[route] = MessagePlan(
            route.here, route.everywhere, document.limits, depth, wanted, replace,
            document.many_relations,
        )  # fmt: skip
        if route in self._filter_of:
            plan.adopt(self._filter_of[route])
        return plan

    @staticmethod
    def _follows(plan: MessagePlan, route: Route) -> bool:
        """Whether a plan has the first relations of a route, in its order."""
        here, everywhere = route.here[: len(plan.here)], route.everywhere[: len(plan.everywhere)]
        return (plan.here, plan.everywhere) == (here, everywhere)


def _filter_key(
    place: int, keys: list[KeyUser] | tuple[KeyUser, ...]
) -> tuple[int, tuple[tuple[Relation, ...], ...]]:
    return place, tuple(dict.fromkeys(relations for relations, _, _ in keys))
