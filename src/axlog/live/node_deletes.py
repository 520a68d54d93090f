"""A stream's delete of one message that is nodes: straight from the index to the views.

The node is found by the value that the pattern names. Its block is matched once more, and the rows
leave the joins with negative counts, by a route as those of a message that arrives: the delete
costs what it deletes. The pending update list, the delta and the passes over all views before and
after it are left out.

Law: rows, changes and the document are those of the delete as a pending update list.

Not handled (None): patterns that match several nodes, or messages that were set aside as well;
large subtrees and those with calls; rows that show what is above the node; values that are compared
there; views that are not kept by the document's counting engine, that read the clock or refuse
updates; watched joins and possible rows that are followed.
"""

from __future__ import annotations

from dataclasses import dataclass

from axlog.document.sibling_removal import removable, remove
from axlog.document.stream_update import retracted
from axlog.document.times import LATEST, Time, microseconds
from axlog.document.tree import ELEMENT
from axlog.errors import AxlogError
from axlog.evaluate.siblings import SiblingPatterns
from axlog.future.restoration import can_bring_again
from axlog.live.collector import Collector
from axlog.live.maintained import MaintainedTree
from axlog.live.message_deletes import MessageDeletes
from axlog.live.stream_engine import StreamEngine
from axlog.views.change import Change
from axlog.views.counting.block_removal import BlockRemoval
from axlog.views.counting.maintainer import Counting
from axlog.views.counting.routes import Route
from axlog.views.counting.sites import SiteRelation
from axlog.views.maintainer import PutAside
from axlog.views.view import MaintainedView

WORTH = 4
"""The deletes at one place after which a route is made for them."""


@dataclass(slots=True)
class _Place:
    """What deletes at one place need, until views or sites on the path to it change."""

    path: tuple[int, ...]  # the place and the nodes above it
    states: list[SiteRelation]
    views: list[MaintainedView]
    readers: list[Counting]  # maintainers whose rows show ids, values or contents
    removal: BlockRemoval | None = None
    seen: int = 0  # deletes before there was one


class NodeDeletes:
    """Deletes of single nodes at the places of calls."""

    def __init__(
        self,
        document: MaintainedTree,
        engine: StreamEngine,
        collector: Collector,
        patterns: SiblingPatterns,
        aside: MessageDeletes,
    ) -> None:
        self._document, self._engine, self._collector = document, engine, collector
        self._patterns, self._aside = patterns, aside
        self._places: dict[int, _Place | None] = {}
        self._known: tuple[object, ...] = ()

    def apply(
        self, stream: str, text: str, at: Time | None, latest: int | None
    ) -> list[Change] | None:
        """Delete the node that a pattern matches; the changes. None: the long path must do it."""
        document, tree = self._document, self._document.tree
        with document.lock:
            call = tree.calls_by_stream.get(stream)
            if call is None or not self._may_apply() or retracted(text) is not None:
                return None
            parent = tree.parent_column[call]
            place = self._place(parent)
            if place is None or place.removal is None:
                return None
            try:
                time = tree.clock if at is None else microseconds(at)
                pattern, constants = self._patterns.find(text)
            except AxlogError:
                return None  # the long path reports the error
            is_late = not tree.clock <= time <= LATEST or (latest is not None and time > latest)
            if is_late or tree.call(call).deletes == "no":
                return None
            found = pattern.matching(tree, document.value_index, call, constants)
            if len(found) != 1 or tree.kind_column[found[0]] != ELEMENT:
                return None
            if self._engine.aside and self._aside.matching(pattern, constants, parent) != []:
                return None
            return self._delete(stream, found[0], place, place.removal, time)

    def _delete(
        self, stream: str, root: int, place: _Place, removal: BlockRemoval, time: int
    ) -> list[Change] | None:
        document, tree = self._document, self._document.tree
        index = document.value_index
        nodes = removable(tree, root)
        if nodes is None or not removal.is_block(root):
            return None
        tracker = self._collector.tracker
        if not (
            tracker.is_untouched(False)
            or tracker.is_untouched(can_bring_again(tree, stream, (root,)))
        ):
            return None
        for kept in place.readers:
            if kept.shows_any(place.path):
                return None
            kept.relabel()
        found = removal.rows(root)
        remove(tree, nodes, index, time)
        status = self._engine.status(stream)
        status.messages += 1
        status.microseconds = time
        document.current.origin = stream, status.messages
        document.revisions += 1
        emitted = removal.route.carry_found(found, time)
        removal.end()
        return document.announce(emitted)

    def _may_apply(self) -> bool:
        """Whether nothing has to be known of a deletion but the rows that it takes away."""
        document = self._document
        return (
            not (document.clocked or document.families or document.collected)
            and document.type_guard is None
            and not self._engine.wants
        )

    def _place(self, parent: int) -> _Place | None:
        """What deletes at a place need; None: they cannot be handled."""
        document, engine = self._document, self._document.engine
        calls = document.tree.calls_by_stream
        now = (engine.version, self._collector.version, list(document.views.values()))
        known = self._known
        if known[:3] != now or known[3] != calls:
            self._collector.refresh()
            engine.build()
            views = list(document.views.values())
            self._known = (engine.version, self._collector.version, views, dict(calls))
            known_places, self._places = self._places, {}
            self._places[parent] = self._made(parent, views, known_places.get(parent))
        elif parent not in self._places:
            self._places[parent] = self._made(parent, now[2], None)
        place = self._places[parent]
        if place is not None and place.removal is None:
            place.seen += 1
            if place.seen > WORTH:
                route = Route(engine, parent, many=document.many_relations)
                route.follow(place.views)
                place.removal = BlockRemoval(engine, route)
        return place

    def _made(
        self, parent: int, views: list[MaintainedView], known: _Place | None
    ) -> _Place | None:
        engine, tree = self._document.engine, self._document.tree
        if self._collector.joins or parent not in engine.sites():
            return None
        if engine.is_value_sensitive(parent):
            return None
        every = [view.maintainer for view in views]
        counting = [each for each in every if isinstance(each, Counting)]
        is_alike = all(isinstance(each, Counting | PutAside) for each in every)
        if not counting or not is_alike or any(view.rejects for view in views):
            return None
        if any(each.engine is not engine for each in counting):
            return None
        path = (parent, *tree.ancestors(parent))
        states = [state for node in path for state in engine.states_at(node)]
        if known is not None and known.states == states and known.views == views:
            return known
        readers = [each for each in counting if each.shows_nodes]
        return _Place(path, states, views, readers)
