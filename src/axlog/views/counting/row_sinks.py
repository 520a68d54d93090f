"""Sinks: functions that rows enter on their way from a message to the answers (`routes.py`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, TypeAlias

from axlog.evaluate.joins import Bag, Row
from axlog.match.matcher_generator import Answers, Sink
from axlog.query.compile import Relation
from axlog.query.pattern import Axis
from axlog.views.counting.maintainer import Counting
from axlog.views.counting.sites import SiteRelation
from axlog.views.operators.join_generator import can_generate

if TYPE_CHECKING:
    from axlog.views.change import Change
    from axlog.views.view import MaintainedView

ViewChanges: TypeAlias = "list[tuple[MaintainedView, list[Change]]]"
"""Views with their changes."""
Take: TypeAlias = Callable[[Bag, int], ViewChanges]
"""Passes the answers of one root relation, at a time, to its views."""
Known = Mapping[str, frozenset[str | int]]
"""By column, the values that can still matter; an absent column may have any value."""


def on_first_use(make: Callable[[], Sink]) -> Sink:
    """A sink that is made when its first row arrives."""
    made: Sink | None = None

    def sink(row: Row, count: int, answers: Answers) -> None:
        nonlocal made
        if made is None:
            made = make()
        made(row, count, answers)

    return sink


def into_answers(root: Relation) -> Sink:
    def sink(row: Row, count: int, answers: Answers) -> None:
        known = answers.get(root)
        if known is None:
            answers[root] = {row: count}
        else:
            total = known.get(row, 0) + count
            if total:
                known[row] = total
            else:
                del known[row]

    return sink


def guarded(state: SiteRelation, then: Sink) -> Sink:
    """A sink for joined rows: they pass the semi joins and anti joins, and are projected."""
    passes, project = [guard.passes for guard in state.guards], state.rule.project

    def sink(row: Row, count: int, answers: Answers) -> None:
        for guard in passes:
            if not guard(row):
                return
        then(project(row), count, answers)

    return sink


def into_all(sinks: list[Sink]) -> Sink:
    if len(sinks) == 1:
        return sinks[0]

    def sink(row: Row, count: int, answers: Answers) -> None:
        for each in sinks:
            each(row, count, answers)

    return sink


def only(relation: Relation, known: Known | None, sinks: list[Sink]) -> Sink:
    """The sinks of a relation, restricted to rows whose values can still matter."""
    then = into_all(sinks)
    if not known:
        return then
    tests = [(relation.columns.index(column), values) for column, values in known.items()]

    def sink(row: Row, count: int, answers: Answers) -> None:
        for at, values in tests:
            if row[at] not in values:
                return
        then(row, count, answers)

    return sink


def taker_of(view: MaintainedView, otherwise: Take) -> Take:
    """Passes the answers of a root relation that feeds one view and no other.

    `otherwise`: another maintains the view now, or it was set aside.
    """
    kept = view.maintainer
    assert isinstance(kept, Counting)

    def take(bag: Bag, time: int) -> ViewChanges:
        if view.maintainer is not kept:
            return otherwise(bag, time)
        changes = view.taken(kept.take(bag), time)
        return [(view, changes)] if changes else []

    return take


def scale_all(views: Iterable[MaintainedView], before: int, after: int) -> bool:
    """Multiply the counts of all rows of views; False, and nothing is done, if one cannot."""
    kept = [each.maintainer for each in views if isinstance(each.maintainer, Counting)]
    for maintainer in kept:
        if not maintainer.can_scale:
            return False
    for maintainer in kept:
        maintainer.scale(before, after)
    return True


def has_sink_for_rows(state: SiteRelation) -> bool:
    """Whether a relation at a site, with its connectives, looks only downward and is generated."""
    own = (Axis.SELF, Axis.DESCENDANT_OR_SELF)
    if any(edge.axis in own for edge in state.relation.edges) or not can_generate(
        state.rule, state.join.kept
    ):
        return False
    inside = [each for inputs in state.alternatives for each in inputs]
    return all(map(has_sink_for_rows, [*inside, *state.bodies]))
