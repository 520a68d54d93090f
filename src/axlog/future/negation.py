"""Possible rows of a query with `not` and without joins, each decided exactly.

Every row of the query is also a row of the query without its `not`s, so the scenarios of that query
cover all possible rows. `profiles.py` then decides, with the values of a row pinned, whether the
row can appear. A scenario is listed if its row can appear by data from its own streams alone. A row
that also needs other streams (for a `not` inside a `not`) is listed with the needs of its scenario,
unless another listed row covers it.

Rejected (AX503): everything that `profiles` rejects, and rows that pin values of elements, or two
times. (Paper 2, section 5.)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from axlog.document.tree import Tree
from axlog.errors import UndecidedError
from axlog.evaluate.answers import answers, holds
from axlog.future.generalized_rows import Need, Values
from axlog.future.profiles import Pins, Profiles, check_covered
from axlog.future.scenarios import Scenarios
from axlog.query.compile import compile_pattern
from axlog.query.pattern import AnyNode, Axis, Branch, Not, Or, Pattern, PatternNode
from axlog.query.truth import Truth

_DOCUMENT = PatternNode(Axis.SELF, AnyNode())
LIMIT = 4_000_000
"""Largest number of node profiles to compute for all rows together."""


def without_not(pattern: Pattern) -> Pattern:
    """The pattern with every `not` assumed to hold."""
    branches = tuple(_positive(pattern.branches)) or (
        _DOCUMENT,
    )  # `match not(/a)` has no other branch
    return replace(pattern, branches=branches, where=())


def _positive(branches: Iterable[Branch]) -> Iterator[Branch]:
    for branch in branches:
        match branch:
            case PatternNode():
                yield replace(branch, branches=tuple(_positive(branch.branches)))
            case Or(alternatives=alternatives):
                ways = [tuple(_positive(each)) for each in alternatives]
                if all(ways):  # else one alternative has no conditions
                    yield Or(tuple(ways))
            case Not(branches=(Not(branches=inside),), where=()):
                yield from _positive(inside)
            case Not():
                continue
            case _:
                yield branch


class Negation:
    """A pattern with `not` over a document: which rows exist, and which can appear."""

    def __init__(self, tree: Tree, pattern: Pattern) -> None:
        check_covered(tree, pattern)
        self.tree = tree
        self.pattern = pattern
        self._spent = 0
        self._known: dict[tuple[frozenset[tuple[str, str | int]], frozenset[str] | None], bool] = {}
        self._columns = compile_pattern(pattern).root.columns
        self._present: set[Values] | None = None

    @property
    def truth(self) -> Truth:
        """Whether some row exists, can appear, or can never appear."""
        if holds(self.tree, replace(self.pattern, outputs=())):
            return Truth.TRUE
        return Truth.POSSIBLE if self.may_come({}) else Truth.NEVER

    def scenarios(self, *, together: bool) -> Scenarios:
        """Every scenario of the pattern without `not`; dominating ones may be ruled out later."""
        return Scenarios(self.tree, without_not(self.pattern), together=together, prune="none")

    def is_there(self, pins: Mapping[str, str | int]) -> bool:
        """Whether a row with these values exists now."""
        if self._present is None:
            self._present = set(answers(self.tree, self.pattern))
        at = [(self._columns.index(column), value) for column, value in pins.items()]
        return any(all(row[i] == value for i, value in at) for row in self._present)

    def may_come(self, pins: Mapping[str, str | int], among: frozenset[str] | None = None) -> bool:
        """Whether a row with these values exists or can appear, by data from `among` if given."""
        key = (frozenset(pins.items()), among)
        if key not in self._known:
            self._spent += len(self.tree)
            if self._spent > LIMIT:
                raise UndecidedError("AX502", "a query with `not` has too many rows to check")
            pinned = Pins(self.tree, dict(pins))
            self._known[key] = Profiles(self.tree, self.pattern, pinned, among).is_possible()
        return self._known[key]

    def _shown(self, pins: Mapping[str, str | int]) -> dict[str, str | int]:
        """The values of a scenario that its row shows."""
        return {column: value for column, value in pins.items() if column in self._columns}

    def open_scenarios(
        self, scenarios: Scenarios, met: Iterable[tuple[Values, Need]]
    ) -> list[tuple[Values, Need]]:
        """The possible scenarios that no other dominates."""
        by_row: dict[Values, list[Need]] = {}
        for values, need in met:
            by_row.setdefault(values, []).append(need)
        found: list[tuple[Values, Need]] = []
        uncertain: list[tuple[Values, Need]] = []
        for values, needs in by_row.items():
            pins = self._shown(pins_of(scenarios.columns, values))
            if not self.may_come(pins):
                continue
            own = [n for n in needs if self.may_come(pins, frozenset(s for _, s in n.brought))]
            if not own:
                uncertain.append((values, needs[0]))
                continue
            least = [n for n in own if not any(o.brought < n.brought for o in own)]
            found += [(values, n) for n in least if n.brought or not self.is_there(pins)]
        # a more general row covers it: its existing parts may contribute nothing
        shown = [values for values, _ in found]
        found += [(v, n) for v, n in uncertain if not any(_covers(each, v) for each in shown)]
        return found


def _covers(general: Values, values: Values) -> bool:
    return all(g is None or g == v for g, v in zip(general, values, strict=True))


def pins_of(columns: Iterable[str], values: Values) -> dict[str, str | int]:
    """The known values of a row, by column."""
    return {c: v for c, v in zip(columns, values, strict=True) if v is not None}
