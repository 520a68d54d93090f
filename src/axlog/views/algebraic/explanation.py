"""The terms of a view as text, for `explain`: evaluated terms, and why others are not needed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from axlog.query.pattern import Pattern
from axlog.views.algebraic.reports import Report
from axlog.views.algebraic.shape import Shape, refusal, shape_of
from axlog.views.algebraic.terms import MOST_LISTED, Facts, Pruned, Term, judged

MOST_SHOWN = 31
"""The most terms of a view whose pruned terms are listed; beyond it they are counted."""


def term_lines(pattern: Pattern) -> tuple[str, ...]:
    """The terms of a pattern, as far as they are known without an update."""
    reason = refusal(pattern)
    if reason is not None:
        return (f"no terms: {reason}",)
    shape = shape_of(pattern)
    guards = (f"rows only while {guard} holds at the document node" for guard in shape.guards)
    return (*guards, *(line for sign in (1, -1) for line in _side(shape, sign, None)))


def report_lines(shape: Shape, report: Report) -> tuple[str, ...]:
    """A report of the last update: its propagation, its terms, and why others were pruned."""
    way = f"{report.way}: {report.reason}" if report.reason else report.way
    lines = [f"last update: {way}; {report.moved} nodes moved, {report.scanned} read"]
    for sign, facts in sorted(report.facts.items(), reverse=True):
        lines += _side(shape, sign, facts)
    return tuple(lines)


def _side(shape: Shape, sign: int, facts: Facts | None) -> Iterator[str]:
    what = "insertions add" if sign > 0 else "deletions remove"
    size = len(shape.nodes) - 1
    if size > MOST_LISTED:
        yield f"{what}: terms of {size} nodes are computed for each update"
        return
    every = list(judged(shape, sign, facts))
    left = [one for one in every if isinstance(one, Term)]
    pruned = [one for one in every if isinstance(one, Pruned)]
    yield f"{what}: {len(left)} of {len(every)} terms"
    yield from (f"  {term}" for term in left)
    if len(every) <= MOST_SHOWN:
        yield from (f"  {one}" for one in pruned)
        return
    for rule, count in sorted(Counter(one.rule for one in pruned).items()):
        example = next(one for one in pruned if one.rule == rule)
        yield f"  {count} terms not evaluated, for example {example}"
