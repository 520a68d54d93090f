"""Union and difference terms, and the rules that prune them.

A term binds each pattern node to nodes that stay (R) or to nodes of the delta (Δ). An insertion
adds the terms with some Δ+, a deletion removes those with some Δ-. R is the set of nodes that
survive. Law: the terms are disjoint, and the change of a view is the sum of its terms, each with
its sign, derivation counts included (example: `//a[//c][//b]` on `a[c[b], c, b]`).

A rule is a function that returns the reason why a term is empty or need not be evaluated, or None.
Rules hold for restated nodes too, because a delta contains all nodes below its nodes.

    nesting     no node that stays is below a node of the delta
    empty       a pattern node that no node of the delta matches
    above       no node above the places of the update has the label that the term needs there
    stored      a term with a Δ- of a node that rows show: the reverse index finds these rows as a
                whole

`surviving` gives the terms that no rule prunes, without creating the others. With few non-empty
deltas it is cheap for patterns of any size.

(Paper 5, sections 3.1, 3.2 and 4.1 to 4.3. There R is the set of nodes before the update. `nesting`
is propositions 3.3 and 4.2, `empty` 3.6, `above` 3.8 and 4.7. `stored` corrects 4.3, which omits
terms with an even number of Δ-: right only if the id of every node is stored.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import islice, product

from axlog.views.algebraic.shape import ROOT, Shape

MOST_TERMS = 256
"""With more terms to evaluate, the view is recomputed instead."""
MOST_LISTED = 12
"""The most nodes of a pattern whose terms are all listed."""


@dataclass(frozen=True)
class Term:
    """The pattern nodes bound to the delta; the others are bound to nodes that stay."""

    shape: Shape = field(repr=False, compare=False)
    delta: frozenset[int]
    sign: int = 1

    @cached_property
    def roots(self) -> tuple[int, ...]:
        """The nodes of the delta whose parents stay."""
        nodes = self.shape.nodes
        return tuple(sorted(n for n in self.delta if nodes[n].above not in self.delta))

    @cached_property
    def snowcap(self) -> frozenset[int]:
        """The pattern nodes that stay, without the document node.

        No rule prunes a term only if the parents of these nodes stay too.
        """
        return frozenset(range(1, len(self.shape.nodes))) - self.delta

    def __str__(self) -> str:
        mark = "+" if self.sign > 0 else "-"
        names = [
            f"Δ{mark}_{node}" if node.number in self.delta else f"R_{node}"
            for node in self.shape.nodes[1:]
        ]
        return " ".join(names)


@dataclass(frozen=True, slots=True)
class Facts:
    """The facts of the delta tables: the pattern nodes that match in and above the delta."""

    matched: frozenset[int]
    above: frozenset[int]
    """Pattern nodes whose test passes at a staying node above a place of the update."""
    barred: frozenset[int] = frozenset()
    """Pattern nodes that cannot be topmost in the delta: no place is as deep as their parent."""


def terms(shape: Shape, sign: int = 1) -> Iterator[Term]:
    """The 2^k - 1 terms that have a delta."""
    numbers = range(1, len(shape.nodes))
    for chosen in product((False, True), repeat=len(numbers)):
        delta = frozenset(n for n, is_delta in zip(numbers, chosen, strict=True) if is_delta)
        if delta:
            yield Term(shape, delta, sign)


# The rules ------------------------------------------------------------------------------------


def new_nodes_have_no_old_children(term: Term, facts: Facts | None) -> str | None:
    """Δ R on an edge is empty."""
    for number in sorted(term.delta):
        node = term.shape.nodes[number]
        for below in node.below:
            if below not in term.delta:
                under = term.shape.nodes[below]
                return f"no node that stays is below a Δ_{node}, so Δ_{node} R_{under} is empty"
    return None


def some_delta_is_empty(term: Term, facts: Facts | None) -> str | None:
    """No node of the delta matches a pattern node."""
    assert facts is not None
    for number in sorted(term.delta - facts.matched):
        return f"Δ_{term.shape.nodes[number]} is empty"
    return None


def nothing_above_has_the_label(term: Term, facts: Facts | None) -> str | None:
    """No node above the update has the label that a term needs there."""
    assert facts is not None
    for root in term.roots:
        if root in facts.barred:
            named = term.shape.nodes[root]
            return f"no place of the update is as deep as the parent of {named}"
        for above in term.shape.above[root]:
            if above not in facts.above:
                named, wanted = term.shape.nodes[root], term.shape.nodes[above]
                return f"no {wanted} is above the update, so R_{wanted} Δ_{named} is empty"
    return None


def rows_of_stored_nodes_go_whole(term: Term, facts: Facts | None) -> str | None:
    """Rows with the id of a deleted node need no term."""
    for number in sorted(term.delta & term.shape.stored):
        node = term.shape.nodes[number]
        return f"rows show the id of {node}: the reverse index finds the rows to delete"
    return None


Rule = Callable[[Term, Facts | None], str | None]

INSERTION: dict[str, Rule] = {
    "nesting": new_nodes_have_no_old_children,
    "empty": some_delta_is_empty,
    "above": nothing_above_has_the_label,
}
DELETION: dict[str, Rule] = {
    "nesting": new_nodes_have_no_old_children,
    "stored": rows_of_stored_nodes_go_whole,
    "empty": some_delta_is_empty,
    "above": nothing_above_has_the_label,
}
ALL = frozenset({*INSERTION, *DELETION})
WITHOUT_DATA = ("nesting", "stored")
"""Rules that do not depend on an update."""


@dataclass(frozen=True, slots=True)
class Pruned:
    """A term that need not be evaluated, and why."""

    term: Term
    rule: str
    reason: str

    def __str__(self) -> str:
        return f"{self.term}  not evaluated: {self.reason}"


def judged(
    shape: Shape, sign: int, facts: Facts | None, rules: frozenset[str] = ALL
) -> Iterator[Term | Pruned]:
    """Every term, or the reason why one of the rules prunes it."""
    applied = INSERTION if sign > 0 else DELETION
    for term in terms(shape, sign):
        yield next(_reasons(term, facts, applied, rules), term)


def _reasons(
    term: Term, facts: Facts | None, applied: dict[str, Rule], rules: frozenset[str]
) -> Iterator[Pruned]:
    for name, holds in applied.items():
        if name in rules and (facts is not None or name in WITHOUT_DATA):
            reason = holds(term, facts)
            if reason is not None:
                yield Pruned(term, name, reason)


@lru_cache(maxsize=4096)
def surviving(shape: Shape, sign: int, facts: Facts) -> tuple[Term, ...] | None:
    """The terms that no rule prunes; None if there are too many.

    Cached: updates of one kind have the same terms.
    """
    enter = _possible_roots(shape, sign, facts)
    found = list(islice(_grown(shape, ROOT, enter), MOST_TERMS + 2))
    if len(found) > MOST_TERMS + 1:
        return None
    return tuple(Term(shape, delta, sign) for delta in found if delta)


def _possible_roots(shape: Shape, sign: int, facts: Facts) -> dict[int, frozenset[int]]:
    """The nodes that can be topmost in a delta, each with all nodes below it."""
    stored = shape.stored if sign < 0 else frozenset()
    found = {}
    for node in shape.nodes[1:]:
        below = frozenset(shape.subpatterns[node.number])
        is_above = all(above in facts.above for above in shape.above[node.number])
        is_there = node.number not in facts.barred
        if below <= facts.matched and is_above and is_there and not below & stored:
            found[node.number] = below
    return found


def _grown(shape: Shape, number: int, enter: dict[int, frozenset[int]]) -> Iterator[frozenset[int]]:
    """The deltas below a node that stays: each child's subpattern, something in it, or nothing."""
    choices = []
    for below in shape.nodes[number].below:
        own = [enter[below]] if below in enter else []
        inside = islice(_grown(shape, below, enter), MOST_TERMS + 2)  # more are too many anyway
        choices.append([*inside, *own])
    for chosen in product(*choices):
        yield frozenset().union(*chosen)
