"""Whether a future of given trees loses a row without one stream, for some times of the trees.

The trees of a future are given, their times are open: each message has one time, at or after the
clock. The pattern without its time constraints is evaluated once with all trees, and once without
those of the stream. Each match shows its row and the nodes that constraints compare, so it holds
exactly if a system of linear inequalities over the times holds. The future loses a row if some
times satisfy

    one match of the row, and none of its matches without the stream

A match fails if one of its inequalities does, so this is a choice for each match, searched depth
first; each system is decided over the integers (`time_constraints.py`), with any coefficients and
any number of times. Exact, or AX502. (Paper 2, section 5, theorem 6, and definition 7.)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from axlog.document.tree import Tree
from axlog.evaluate.answers import answers
from axlog.future.search_budget import spend
from axlog.future.time_constraints import Inequality, TimeSystem, inequalities, not_before
from axlog.query.compile import compile_pattern
from axlog.query.pattern import Kind, Output, Pattern, TimeConstraint

System = frozenset[Inequality]
Row = tuple[object, ...]
Matches = dict[Row, list[list[System]]]
"""The matches of each row; each holds if one of its systems does (`!=` gives two)."""


def has_times(pattern: Pattern) -> bool:
    """Whether a pattern constrains times."""
    return any(isinstance(constraint, TimeConstraint) for constraint in pattern.where)


@dataclass(frozen=True, slots=True)
class OpenTimes:
    """The open times of nodes that were added to a document: their names, by node."""

    names: Mapping[int, str]
    clock: int

    @property
    def bounds(self) -> list[Inequality]:
        return [not_before(name, self.clock) for name in sorted(set(self.names.values()))]


class TimedMatches:
    """The matches of a pattern with time constraints, by row."""

    def __init__(self, pattern: Pattern) -> None:
        self._constraints = [c for c in pattern.where if isinstance(c, TimeConstraint)]
        self._names = sorted({name for c in self._constraints for _, name in c.terms})
        timed = [output.of for output in pattern.outputs if output.kind is Kind.TIME]
        shown = [output for output in pattern.outputs if output.kind is not Kind.TIME]
        nodes = [Output(Kind.ID, name) for name in dict.fromkeys([*self._names, *timed])]
        self._timed = timed
        self.pattern = replace(
            pattern,
            where=tuple(c for c in pattern.where if not isinstance(c, TimeConstraint)),
            outputs=(*shown, *(each for each in nodes if each not in shown)),
        )
        columns = compile_pattern(self.pattern).root.columns
        self._at = {name: columns.index(f"{name}.node") for name in (*self._names, *timed)}
        asked = compile_pattern(pattern).root.columns
        kept = [c for c in asked if not c.endswith(".time")]
        self._shown = [columns.index(column) for column in kept]

    def of(self, tree: Tree, times: OpenTimes) -> Matches:
        """The matches in a document. A row shows the name of an open time in its place."""
        found: Matches = {}
        for match in answers(tree, self.pattern):
            spend(1)
            row: Row = (
                *(match[at] for at in self._shown),
                *(self._time(tree, times, int(match[self._at[name]])) for name in self._timed),
            )
            ways = list(self._systems(tree, times, match))
            if ways:
                found.setdefault(row, []).append(ways)
        return found

    @staticmethod
    def _time(tree: Tree, times: OpenTimes, node: int) -> str | int:
        return times.names.get(node, tree.time(node))

    def _systems(
        self, tree: Tree, times: OpenTimes, match: Sequence[str | int]
    ) -> Iterator[System]:
        """The systems of inequalities of which one must hold for a match; none if it never does."""
        at = {name: self._time(tree, times, int(match[self._at[name]])) for name in self._names}
        known = {name: time for name, time in at.items() if isinstance(time, int)}
        waiting: list[System] = [frozenset()]
        for constraint in self._constraints:
            terms = tuple(
                (factor, str(at[name]) if name not in known else name)
                for factor, name in constraint.terms
            )
            ways = list(_ways(replace(constraint, terms=terms), known))
            waiting = [one | way for one in waiting for way in ways]
        yield from waiting


def _ways(constraint: TimeConstraint, known: Mapping[str, int]) -> Iterator[System]:
    """The systems of which one must hold for a constraint."""
    settled = inequalities(constraint, dict(known))
    if settled is None:
        for operator in ("<", ">"):
            yield from _ways(replace(constraint, operator=operator), known)
    elif settled is True:
        yield frozenset()
    elif isinstance(settled, list):
        yield frozenset(settled)


def loses_at_some_times(with_all: Matches, without: Matches, times: OpenTimes) -> bool:
    """Whether some open times give a row of the first matches that the second do not have.

    Rows that show open times are compared by the names of these: the same row of other trees needs
    equal times, which is one more condition of its matches.
    """
    for row, matches in with_all.items():
        others = [way for same, ways in _same_rows(row, without) for way in _with(ways, same)]
        for ways in matches:
            if ways in without.get(row, ()):
                continue
            for system in ways:
                if _Search(others).is_possible([*times.bounds, *system]):
                    return True
    return False


def _same_rows(row: Row, among: Matches) -> Iterator[tuple[System, list[list[System]]]]:
    """The rows that equal a row under some equalities of open times, with these equalities."""
    for other, ways in among.items():
        same: set[Inequality] = set()
        for one, two in zip(row, other, strict=True):
            equal = _equal(one, two)
            if equal is None:
                break
            same |= equal
        else:
            yield frozenset(same), ways


def _equal(one: object, two: object) -> System | None:
    """The conditions under which two values of a row are equal; None if they never are."""
    if one == two:
        return frozenset()
    names = [value for value in (one, two) if isinstance(value, str) and value.startswith(TIME)]
    if not names:
        return None
    terms = [(1, names[0])] + ([(-1, names[1])] if len(names) > 1 else [])
    other = two if one == names[0] else one
    bound = int(other) if len(names) == 1 and isinstance(other, int) else 0
    upper = Inequality(tuple(sorted(terms)), bound)
    lower = Inequality(tuple(sorted((-factor, name) for factor, name in terms)), -bound)
    return frozenset({upper, lower})


TIME = "\0time "
"""How the names of open times begin; no string of a document does."""


def _with(matches: Iterable[list[System]], same: System) -> Iterator[list[System]]:
    for ways in matches:
        yield [system | same for system in ways]


class _Search:
    """Whether times satisfy a system, and falsify some matches."""

    def __init__(self, matches: list[list[System]]) -> None:
        # a match fails if all of its systems do
        self._systems = sorted({system for ways in matches for system in ways}, key=len)

    def is_possible(self, system: list[Inequality], at: int = 0) -> bool:
        spend(1)
        if not TimeSystem(system).is_satisfiable:
            return False
        if at == len(self._systems):
            return True
        return any(
            self.is_possible([*system, _negated(each)], at + 1) for each in self._systems[at]
        )


def _negated(each: Inequality) -> Inequality:
    """The inequality that holds where another does not."""
    return Inequality(
        tuple(sorted((-factor, name) for factor, name in each.terms)), -each.bound - 1
    )
