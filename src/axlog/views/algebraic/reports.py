"""How a view is propagated to, and what is said of it afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from axlog.views.algebraic.deltas import DeltaTables
from axlog.views.algebraic.labels import facts_of
from axlog.views.algebraic.shape import Shape
from axlog.views.algebraic.terms import ALL, MOST_LISTED, Facts, Pruned, Term, judged


@dataclass(frozen=True, slots=True)
class Options:
    """How a view is propagated to; the answers do not depend on it."""

    rules: frozenset[str] = ALL
    snowcaps: str = "cost"  # or leaves, levels
    deletion: str = "index"  # or scan, the paper's way
    may_recompute: bool = True
    is_measured: bool = True  # what costs more than an evaluation is evaluated
    is_direct: bool = True  # rows known by one node without tables of bindings


@dataclass(slots=True)
class Report:
    """What was done for one update."""

    way: str = "terms"  # or recomputed, nothing
    reason: str = ""
    is_evaluated: bool = False  # whether the whole view was
    evaluated: list[Term] = field(default_factory=list)
    facts: dict[int, Facts] = field(default_factory=dict)
    expression: float = 0.0  # seconds it took to know which terms are left
    moved: int = 0  # nodes on one side of the update only
    scanned: int = 0  # nodes that stay and were looked at
    costs: list[tuple[frozenset[int], int, bool]] = field(default_factory=list)
    """For each term its snowcap, the nodes looked at, and whether the snowcap was kept."""

    def pruned(self, shape: Shape, rules: frozenset[str] = ALL) -> Iterator[Pruned]:
        """The terms that were not evaluated, and why."""
        for sign, facts in self.facts.items():
            if len(shape.nodes) - 1 <= MOST_LISTED:
                for one in judged(shape, sign, facts, rules):
                    if isinstance(one, Pruned):
                        yield one


def unconcerned(shape: Shape, tables: DeltaTables) -> Report:
    """What is said of an update none of whose labels the view has where it could matter."""
    report = Report("nothing", "its labels do not meet the view's", moved=tables.size)
    labels = tables.labels
    for sign, moved in ((1, labels.added), (-1, labels.removed)):
        if moved:
            report.facts[sign] = facts_of(shape, moved, labels.above, labels.depths)
    return report


def guarded(tables: DeltaTables, held: bool, holds: bool) -> Report:
    """What is said of an update where the conditions at the document node do not always hold."""
    if holds:
        reason = "the conditions at the document node hold again"
    else:
        reason = f"the conditions at the document node {'hold no more' if held else 'do not hold'}"
    way = "recomputed" if held is not holds else "nothing"
    return Report(way, reason, is_evaluated=holds, moved=tables.size)
