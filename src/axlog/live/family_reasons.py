"""Why views that differ in constants do not share a plan, for `explain`.

A constant inside a `not`, an `or` or a collected path belongs to the plan. A parameter is a value
that every row of the plan has once. Such a place has no value, or several: a row would have to show
every text below the `not`, and to match a view it would be compared with all of them. Besides, a
row concerns nearly all views that differ in what must be absent, so it would cost all of them.
"""

from __future__ import annotations

from collections.abc import Iterator

from axlog.query.generalize import General
from axlog.query.pattern import (
    Branch,
    Collect,
    Comparison,
    Literal,
    Not,
    Or,
    PatternNode,
    TimeConstraint,
    Variable,
    branches_of,
)
from axlog.query.query import Query
from axlog.query.steps import clock_of, positions_of
from axlog.views.step_rows import Stepping

NEVER = "the `never` changes of one view depend on rows that do not concern the others"


def refusal(query: Query, stepping: Stepping, work: int | None, on_disk: bool) -> str | None:
    """Why a view shares its plan with no other, whatever its constants; None: it may."""
    clock, steps = clock_of(query.row_key.steps), query.row_key.steps
    found = {
        "it has a budget of its own": work is not None,
        "the query is more than a pattern": query.has_items,
        "it rejects values": stepping.rejects,
        "its rows are on disk": on_disk,
        "its rows depend on positions": positions_of(steps) is not None,
        "a `not` names the clock": clock is not None and bool(clock.unless),
    }
    return next((reason for reason, holds in found.items() if holds), None)


def fixed_places(general: General) -> tuple[str, ...]:
    """The places whose constants belong to the plan, so that all views of it have the same."""
    places = dict.fromkeys(
        place for branch in general.pattern.branches for place in _places(branch, "")
    )
    taken = {each.constraint for each in general.durations}
    for each in general.pattern.where:
        if isinstance(each, TimeConstraint) and each not in taken and abs(each.bound) > 1:
            places["times"] = None
    return tuple(places)


def _places(branch: Branch, inside: str) -> Iterator[str]:
    kinds = {Or: "`or`", Not: "`not`", Collect: "a collected path"}
    inside = kinds.get(type(branch), inside)
    if isinstance(branch, PatternNode) and inside:
        is_literal = isinstance(branch.test, Literal) and bool(branch.test.text)
        if is_literal or any(map(_has_constant, branch.comparisons)):
            yield inside
    for each in branches_of(branch):
        yield from _places(each, inside)


def _has_constant(asked: Comparison) -> bool:
    return not isinstance(asked.operand, Variable)
