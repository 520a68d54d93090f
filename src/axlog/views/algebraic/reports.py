"""The options of a propagation, and the report of an update."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from axlog.views.algebraic.deltas import DeltaTables
from axlog.views.algebraic.labels import facts_of
from axlog.views.algebraic.shape import Shape
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


def unconcerned(shape: Shape, tables: DeltaTables) -> Report:
    """The report of an update whose labels cannot affect the view."""
    report = Report("nothing", "its labels cannot affect the view", moved=tables.size)
    labels = tables.labels
    for sign, moved in ((1, labels.added), (-1, labels.removed)):
        if moved:
            report.facts[sign] = facts_of(shape, moved, labels.above, labels.depths)
    return report


def guarded(tables: DeltaTables, held: bool, holds: bool) -> Report:
    """The report of an update if the conditions at the document node do not always hold."""
    if holds:
        reason = "the conditions at the document node hold again"
    else:
        reason = (
            f"the conditions at the document node {'no longer hold' if held else 'do not hold'}"
        )
    way = "recomputed" if held is not holds else "nothing"
    return Report(way, reason, is_evaluated=holds, moved=tables.size)
