"""`never` changes for views other than two-way joins, found by comparing possible rows.

    never after an update  =  the rows that were possible before it, of which afterwards no instance
                              holds or is possible

For two-way joins that streams feed, the join's tables give the `never` changes (`collector.py`).
For the other views the scenarios are kept as data arrives (`future/scenario_tracker.py`), and those
that become impossible are examined. Where only the end of a stream can make a scenario impossible,
messages cost nothing until a stream ends, and the messages that arrived before are then read once.
Where the clock, a key or the number of trees can, each message is read as it arrives, as nodes.

With `never="all"` views with `not`, and views under types, emit `never` changes too. Their possible
rows are computed anew after every update, which costs a walk over the document each time.

No `never` changes are emitted where messages were not kept (`keep="needed"`), for deferred views,
and where the analyses do not decide; `view.explain()` says so. None are emitted for rows that a
statement makes impossible: the tracker starts anew after it. Rows also differ by the nodes that
they show.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from axlog.document.delta import Delta
from axlog.document.tree import CALL
from axlog.errors import UndecidedError, UnsupportedError, UpdateError
from axlog.evaluate.joins import Bag
from axlog.future.generalized_rows import Values
from axlog.future.profiles import has_not
from axlog.future.scenario_tracker import Living, Scenario, is_followed
from axlog.future.scenarios import is_limited, may_bring
from axlog.future.truth import Outlook, column_of, row_of
from axlog.live.maintained import MaintainedTree, Told
from axlog.query.compile import Relation
from axlog.query.pattern import Kind
from axlog.query.truth import Truth
from axlog.views.change import Change, Row
from axlog.views.counting.maintainer import Counting
from axlog.views.view import MaintainedView as View

Shown = tuple[Any, ...]

_NODES = (Kind.ID, Kind.VAL, Kind.CONT)
_NOT_DECIDED = (UndecidedError, UnsupportedError, UpdateError)


@dataclass(slots=True)
class _Followed:
    """One view, and the facts known about its future rows."""

    view: View
    is_eager: bool  # whether each message is read
    # Root of the program whose rows are used, where nodes are not needed.
    root: Relation | None = None
    living: Living | None = None
    walked: dict[Values, Shown] | None = None  # the possible rows, where they are computed anew
    # Rows with nodes, as shown before the update.
    before: dict[Values, Shown] = field(default_factory=dict)
    reason: str | None = None  # why no `never` changes are emitted
    is_old: bool = False  # whether an update invalidated the scenarios


class NeverTracker:
    """Finds the `never` changes of one document's views."""

    def __init__(self, document: MaintainedTree, how: str, keeps: bool = True) -> None:
        """`keeps`: whether all messages become nodes of the document, sooner or later."""
        self._document = document
        self.how = how
        self._keeps = keeps
        self._followed: dict[View, _Followed] = {}
        self._views: list[View] = []
        self._added: list[int] = []  # added subtrees that were not read yet
        self._aside: list[int] = []  # the same, for subtrees whose rows some views have processed
        self._closed: list[str] = []
        self.is_eager = False  # whether some view must read every message
        self.is_busy = False  # whether some view must examine the current update

    def _look(self) -> None:
        """Compute whether messages and the current update must be examined."""
        every = self._followed.values()
        self.is_eager = any(each.is_eager and each.reason is None for each in every)
        is_final = bool(self._closed) or any(each.is_old for each in every)
        self.is_busy = self.is_eager or is_final

    def way(self, view: View) -> str:
        """Return how `never` changes of a view are found, or why none are emitted."""
        if self.how in ("off", "joins"):
            return f'not reported: the document has the option never="{self.how}"'
        followed = self._followed.get(view)
        if followed is None or not self._document.tree.calls_by_stream:
            return "not reported: no stream is open"
        if view.is_deferred:
            return "not reported: the view is deferred"
        if followed.reason is not None:
            return f"not reported: {followed.reason}"
        reason = self._refusal(followed)
        if reason is not None:
            return f"not reported: {reason}"
        if has_not(view.pattern) or self._document.tree.types is not None:
            return "reported by possible rows, worked out anew after every update"
        if followed.root is not None:
            return "reported by possible rows, kept as messages arrive"
        if followed.is_eager:
            return "reported by possible rows, kept as messages arrive, each read as nodes"
        return "reported by possible rows; messages are read when a stream ends"

    def _refusal(self, followed: _Followed) -> str | None:
        """Return why the possible rows of a view are not decided, before a stream ends.

        Costs a walk over the document where the rows are not kept yet.
        """
        if followed.living is not None or followed.walked is not None:
            return None
        view = followed.view
        try:
            tree = view.nodes_left()
            if has_not(view.pattern) or tree.types is not None:
                Outlook(tree, view.pattern).bindings()
            else:
                Living(tree, view.pattern, followed.root)
        except _NOT_DECIDED as error:
            return error.message
        return None

    def may_come(self, view: View) -> bool | None:
        """Return whether the view may still gain a row. None: its scenarios are not kept."""
        followed = self._followed.get(view)
        if followed is None or followed.living is None:
            return None
        if followed.root is None:
            self._document.settle()
        self.catch_up()
        living = self._followed[view].living  # it may have been given up
        return None if living is None else living.is_possible

    # Setup ----------------------------------------------------------------------------------------

    def refresh(self, told_by_joins: Iterable[View]) -> None:
        """Follow the views that joins do not cover. Called before every update."""
        if self.how not in ("kept", "all"):
            return
        joins = set(told_by_joins)
        tree = self._document.tree
        views = [view for view in self._document.views.values() if view.broken is None]
        wanted = [view for view in views if view not in joins]
        if wanted != self._views:
            self._views = wanted
            known = self._followed
            self._followed = {view: known.get(view) or self._follow(view) for view in wanted}
        for followed in self._followed.values():
            if followed.view.is_deferred:
                followed.living, followed.walked = None, None
            elif followed.is_eager and tree.calls_by_stream:
                self._build(followed)
        self._look()

    def _follow(self, view: View) -> _Followed:
        tree, pattern = self._document.tree, view.query.pattern
        if not self._keeps:
            return _Followed(view, is_eager=False, reason="messages are not kept")
        if has_not(pattern) or tree.types is not None:
            made = _Followed(view, is_eager=True)
            if self.how != "all":
                what = "`not`" if has_not(pattern) else "types"
                made.reason = f'{what}: possible rows are worked out anew; never="all" does'
            return made
        made = _Followed(view, is_eager=is_followed(tree, pattern))
        by_rows = made.is_eager and not (tree.facts or is_limited(tree))
        if by_rows and isinstance(view.maintainer, Counting):
            made.root = view.maintainer.root
        return made

    def _build(self, followed: _Followed) -> None:
        """Compute the current possible rows, if they are not kept yet."""
        if followed.reason is not None or followed.view.is_deferred:
            return
        view = followed.view
        try:
            if has_not(view.pattern) or self._document.tree.types is not None:
                if followed.walked is None:
                    followed.walked = _possible(Outlook(view.nodes_left(), view.pattern))
            elif followed.living is None:
                followed.living = self._living(view)
        except _NOT_DECIDED as error:
            self._give_up(followed, error)

    def _living(self, view: View) -> Living:
        tree = view.nodes_left()  # turns messages that were set aside into nodes
        self.catch_up()  # for the other views: this one has read all messages
        return Living(tree, view.pattern, self._followed[view].root)

    def _give_up(self, followed: _Followed, error: Exception) -> None:
        followed.reason = getattr(error, "message", str(error))
        followed.living, followed.walked = None, None
        self._look()

    def catch_up(self) -> None:
        """Let all views read the messages since the last call.

        Without the end of a stream, no scenario of a view that waits for one becomes impossible.
        """
        added, self._added = self._added, []
        aside, self._aside = self._aside, []
        for followed in self._followed.values():
            if followed.living is not None:
                try:
                    followed.living.grow(added if followed.root is not None else aside + added)
                except _NOT_DECIDED as error:
                    self._give_up(followed, error)

    # Updates --------------------------------------------------------------------------------------

    def forget(self) -> None:
        """Start anew, after an update that does not come from a stream."""
        self._added.clear()
        self._aside.clear()
        self._closed.clear()
        for view, followed in list(self._followed.items()):
            followed.living, followed.walked, followed.is_old = None, None, False
            self._followed[view] = self._follow(view)
        self._look()

    def arrival(
        self, place: int, here: tuple[Relation, ...], everywhere: tuple[Relation, ...]
    ) -> Callable[[tuple[Bag, ...]], None] | None:
        """Return a function that processes the rows of messages set aside. None: none is needed."""
        if not any(f.root is not None and f.reason is None for f in self._followed.values()):
            return None

        def arrive(bags: tuple[Bag, ...]) -> None:
            children = dict(zip(here, bags, strict=False))
            descendants = dict(zip(everywhere, bags[len(here) :], strict=True))
            for followed in self._followed.values():
                if followed.root is not None and followed.living is not None:
                    try:
                        followed.living.arrive(place, children, descendants)
                    except _NOT_DECIDED as error:
                        self._give_up(followed, error)

        return arrive

    def note(self, delta: Delta, stream: str | None, was_aside: bool = False) -> None:
        """Record an update that was applied. `stream` is None if it did not come from a stream."""
        if stream is None:
            self.forget()
            return
        if delta.opened or delta.closed or _uses_up_trees(delta, stream):
            for followed in self._followed.values():
                if followed.walked is None and followed.living is None:
                    followed.reason = self._follow(followed.view).reason  # may be decided now
            self._look()
        if not any(f.living is not None for f in self._followed.values()):
            return
        if was_aside:
            self._aside += delta.added
            return
        self._added += delta.added
        self._closed += delta.closed
        if _takes_away(delta) or self._opens_limits(delta) or _uses_up_calls(delta, stream):
            for followed in self._followed.values():
                followed.is_old = True
        self._look()

    def _opens_limits(self, delta: Delta) -> bool:
        tree = delta.tree
        calls = [
            tree.call(tree.calls_by_stream[s]) for s in delta.opened if s in tree.calls_by_stream
        ]
        return any(c.most is not None or c.mode != "stream" or c.deletes != "no" for c in calls)

    def before(self, stream: str, is_insertion: bool) -> None:
        """Prepare for an update of a stream. Messages that were set aside are nodes by now."""
        tree = self._document.tree
        node = tree.calls_by_stream.get(stream)
        if is_insertion and node is not None:
            call = tree.call(node)
            if call.mode == "stream" and call.most is None:
                return
        for followed in self._followed.values():
            self._build(followed)
        self.catch_up()
        for followed in self._followed.values():
            living, pattern = followed.living, followed.view.pattern
            if living is not None and any(o.kind in _NODES for o in pattern.outputs):
                followed.before = {
                    values: self._row(followed.view, living, values)
                    for values, needs in living.found.rows.items()
                    if any(need.brought for need in needs)
                }

    def abandon(self) -> None:
        """Discard the preparations for an update that was rejected."""
        for followed in self._followed.values():
            followed.before = {}

    def after(self, told: Told, time: int) -> Told:
        """Append the rows that an update made impossible to the changes of their views."""
        if any(f.is_eager and f.root is None for f in self._followed.values()):
            self._document.settle()
        added, self._added = self._added, []
        aside, self._aside = self._aside, []
        closed, self._closed = self._closed, []
        for view, followed in self._followed.items():
            if followed.reason is not None:
                continue
            new = added if followed.root is not None else aside + added
            never = self._fallen(followed, new, closed)
            followed.before = {}
            if not never:
                continue
            changes = view.number([Change("never", Row(view.columns, r)) for r in never], time)
            mine = next((each for known, each in told if known is view), None)
            if mine is None:
                told.append((view, changes))
            else:
                mine += changes
        self._look()
        return told

    # Impossible rows ------------------------------------------------------------------------------

    def _fallen(self, followed: _Followed, added: list[int], closed: list[str]) -> list[Shown]:
        try:
            if followed.walked is not None:
                return self._walk(followed)
            if followed.living is None:
                return []
            before, fallen = followed.living, self._move(followed, added, closed)
            return self._never(followed, before, fallen)
        except _NOT_DECIDED as error:
            self._give_up(followed, error)
            return []

    def _move(self, followed: _Followed, added: list[int], closed: list[str]) -> list[Scenario]:
        """Return the scenarios that became impossible."""
        living = followed.living
        assert living is not None
        if followed.is_old:
            followed.is_old = False
            view = followed.view
            followed.living = Living(view.nodes_left(), view.pattern, followed.root)
            return [(v, n) for v, needs in living.found.rows.items() for n in needs if n.brought]
        fallen = living.grow(added)
        for stream in closed:
            fallen += living.close(stream)
        return fallen + living.expire()

    def _never(
        self, followed: _Followed, before: Living, fallen: Iterable[Scenario]
    ) -> list[Shown]:
        """Return the rows of impossible scenarios of which no instance holds or can come."""
        view, living = followed.view, followed.living
        assert living is not None
        shown = [column_of(output) for output in view.pattern.outputs]
        old = [before.columns.index(column) for column in shown]
        new = [living.columns.index(column) for column in shown]
        found: dict[Values, Shown] = {}
        judged: set[Values] = set()
        for values, _ in fallen:
            row = tuple(values[i] for i in old)
            if row in judged:
                continue
            judged.add(row)
            known = [(at, value) for at, value in zip(new, row, strict=True) if value is not None]
            positions = dict(known)
            at = tuple(sorted(positions))
            if living.agrees(at, tuple(positions[i] for i in at)) or self._holds(view, row):
                continue
            found[row] = followed.before.get(values) or self._row(view, before, values)
        return list(found.values())

    def _holds(self, view: View, row: Values) -> bool:
        """Return whether a row exists whose nodes were collected."""
        if not self._document.collected:
            return False
        return any(
            all(
                value is None or value == known
                for value, known in zip(row, each.values_, strict=True)
            )
            for each in view.rows()
        )

    def _row(self, view: View, living: Living, values: Values) -> Shown:
        return tuple(row_of(living.tree, view.pattern, living.columns, values).values())

    def _walk(self, followed: _Followed) -> list[Shown]:
        """Return the impossible rows by walking the document, and compare with the walk before."""
        view, rows = followed.view, followed.walked
        assert rows is not None
        outlook = Outlook(view.nodes_left(), view.pattern)
        followed.walked = _possible(outlook)
        return [
            shown
            for binding, shown in rows.items()
            if binding not in followed.walked and outlook.truth_of(binding) is Truth.NEVER
        ]


def _takes_away(delta: Delta) -> bool:
    """Return whether an update removes more than calls, or changes a node."""
    kinds = delta.tree.kind_column
    return bool(delta.changed) or any(kinds[node] != CALL for node in delta.removed)


def _uses_up_calls(delta: Delta, stream: str) -> bool:
    """Return whether a message brings the last calls of its stream.

    Later trees of the stream then have one time.
    """
    tree = delta.tree
    return (
        bool(delta.opened) and stream in tree.calls_by_stream and not tree.may_bring_calls(stream)
    )


def _uses_up_trees(delta: Delta, stream: str) -> bool:
    """Return whether a message brings the last trees of its stream.

    Values above its call may then be final.
    """
    tree = delta.tree
    node = tree.calls_by_stream.get(stream)
    return bool(delta.added) and node is not None and not may_bring(tree, tree.call(node))


def _possible(outlook: Outlook) -> dict[Values, Shown]:
    return {binding: tuple(row.values()) for binding, row in outlook.bindings().items()}
