"""What views need of the messages of a stream: which names, and whether nodes."""

from __future__ import annotations

from axlog.future.deletions import loses_by
from axlog.live.maintained import MaintainedTree
from axlog.match.matcher_generator import names_needed
from axlog.query.pattern import Kind
from axlog.views.counting.maintainer import Counting
from axlog.views.counting.routes import Route
from axlog.views.maintainer import PutAside
from axlog.views.view import MaintainedView

Wanted = tuple[tuple[bytes, ...], ...] | None
"""The groups of names of which a message must have one; None: it may have any."""


def names_wanted(route: Route) -> tuple[tuple[bytes, ...], ...] | None:
    """Return the names that a message must have for some relation.

    None: one relation needs no name.
    """
    groups = [names_needed(relation) for relation in (*route.here, *route.everywhere)]
    if not all(groups):
        return None
    # Long names first: they are rarer and faster to search for.
    return tuple(
        tuple(sorted((name.encode() for name in names), key=lambda n: (-len(n), n)))
        for names in groups
    )


class Expectation:
    """Lets views drop rows that cannot be shown any more, if nothing can remove rows."""

    def __init__(self, document: MaintainedTree) -> None:
        self._document = document
        self._known: tuple[int, list[str]] = (-1, [])
        self._views: list[MaintainedView] = []

    def follow(self, views: list[MaintainedView]) -> None:
        """Tell the views, once each, unless calls or sites have changed.

        To be called once messages were dropped: statements are refused then.
        """
        document, seen = self._document, self._views
        now = document.engine.rebuilt, sorted(document.tree.calls_by_stream)
        is_same = self._known == now and views[: len(seen)] == seen
        self._known, self._views = now, views
        if not _only_inserts(document):
            return
        for view in views[len(seen) :] if is_same else views:
            is_safe = loses_by(document.tree, view.query.pattern) is None
            if is_safe and isinstance(view.maintainer, Counting):
                view.maintainer.expect_insertions()


def _only_inserts(document: MaintainedTree) -> bool:
    """Return whether no message of the open streams can remove a row of a view without `not`.

    A stream that replaces, brings calls, or adds to a value that a view compares can. One that
    deletes can for the views that it reaches.
    """
    tree, engine = document.tree, document.engine
    for node in tree.calls_by_stream.values():
        call = tree.call(node)
        if call.replace is not None or call.calls:
            return False
        if engine.is_value_sensitive(tree.parent(node)):
            return False
    return True


def needs_no_nodes(view: MaintainedView) -> bool:
    """Return whether a view needs only strings and times.

    A view that is set aside needs nothing.
    """
    if isinstance(view.maintainer, PutAside):
        return True
    if not isinstance(view.maintainer, Counting) or view.maintainer.gathers:
        return False
    kinds = (Kind.VARIABLE, Kind.LABEL, Kind.TIME)
    patterns = (view.query.pattern, *view.stepping.sides)
    return all(output.kind in kinds for each in patterns for output in each.outputs)


def only_concerns_views(document: MaintainedTree, stream: str) -> bool:
    """Return whether messages only affect views: they are neither counted nor checked."""
    tree = document.tree
    call = tree.call(tree.calls_by_stream[stream])
    return not (
        call.mode != "stream"
        or call.most is not None
        or call.deletes == "only"
        or document.keep_whitespace
        or any(fact.is_enforced for fact in (*tree.facts, *tree.references))
        or document.type_guard is not None
    )
