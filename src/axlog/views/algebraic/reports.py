"""The options of a propagation, the report of an update, and its text for `explain`.

Law: no option changes a row.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from axlog.query.pattern import Pattern
from axlog.views.algebraic.deltas import DeltaTables
from axlog.views.algebraic.labels import facts_of
from axlog.views.algebraic.shape import Shape, refusal, shape_of
from axlog.views.algebraic.terms import MOST_LISTED, Facts, Pruned, Term, judged


@dataclass(frozen=True, slots=True)
class Options:
    """The options of a propagation; the results do not depend on them."""

    snowcaps: str = "cost"  # or leaves, levels
    may_recompute: bool = True
    is_measured: bool = True  # evaluate the view if maintenance costs more
    is_direct: bool = True  # no tables of bindings if one node identifies a row


@dataclass(slots=True)
class Report:
    """The work done for one update."""

    way: str = "terms"  # or recomputed, nothing
    reason: str = ""
    is_evaluated: bool = False  # whether the whole view was
    evaluated: list[Term] = field(default_factory=list)
    facts: dict[int, Facts] = field(default_factory=dict)
    expression: float = 0.0  # seconds to find the remaining terms
    moved: int = 0  # nodes on one side of the update only
    scanned: int = 0  # staying nodes that were read
    costs: list[tuple[frozenset[int], int, bool]] = field(default_factory=list)
    """For each term: its snowcap, the nodes read, and whether the snowcap was kept."""

    def pruned(self, shape: Shape) -> Iterator[Pruned]:
        """The terms that were not evaluated, and why."""
        for sign, facts in self.facts.items():
            if len(shape.nodes) - 1 <= MOST_LISTED:
                for one in judged(shape, sign, facts):
                    if isinstance(one, Pruned):
                        yield one


def unaffected_report(shape: Shape, tables: DeltaTables) -> Report:
    """The report of an update whose labels cannot affect the view."""
    report = Report("nothing", "its labels cannot affect the view", moved=tables.size)
    labels = tables.labels
    for sign, moved in ((1, labels.added), (-1, labels.removed)):
        if moved:
            report.facts[sign] = facts_of(shape, moved, labels.above, labels.depths)
    return report


def guard_report(tables: DeltaTables, held: bool, holds: bool) -> Report:
    """The report of an update if the conditions at the document node do not always hold."""
    if holds:
        reason = "the conditions at the document node hold again"
    else:
        reason = (
            f"the conditions at the document node {'no longer hold' if held else 'do not hold'}"
        )
    way = "recomputed" if held is not holds else "nothing"
    return Report(way, reason, is_evaluated=holds, moved=tables.size)


# Text ---------------------------------------------------------------------------------------------

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
