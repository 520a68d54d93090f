"""Natural joins of bags: the join of a relation's parts.

A bag maps a row (a tuple over sorted columns) to its count. The column positions of a join are
computed once per relation: the key, the columns that a part adds, the tests that can be made. The
law of a relation at one node, with own(n) the one row of the node's own columns:

    R(n) = project(own(n) ⋈ part_1(n) ⋈ ... ⋈ part_k(n)  where tests, an alternative, no absence)

A join with more than `Limits.rows` rows, and far more than its input, is refused before it is
computed: the product of twelve branches would never finish.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from operator import itemgetter
from typing import TypeAlias

from axlog.document.parser import DEFAULT_LIMITS
from axlog.errors import QueryError
from axlog.evaluate.value_tests import comparison
from axlog.evaluate.work import Meter
from axlog.query.compile import Column, Relation, Test
from axlog.query.pattern import TimeConstraint, Variable
from axlog.query.values import compare_numbers, comparer

Value: TypeAlias = str | int
Row: TypeAlias = tuple[Value, ...]
Bag: TypeAlias = dict[Row, int]
Check: TypeAlias = Callable[[Row], bool]

UNIT: Bag = {(): 1}
MOST_ROWS = DEFAULT_LIMITS.rows
MANY = 10_000
"""Pairs of rows from which the size of a join is counted before the join is computed."""
FEW = 16
"""Rows that a join may make without metering: most joins make one or two."""
GROWTH = 20
"""The size of a large join may be this many times that of its input."""


def too_many_rows(most: int) -> QueryError:
    """The error for a join with too many rows."""
    return QueryError(
        "AX215",
        f"the branches of the query join to more than {most:,} rows",
        advice="join its branches by a variable, or raise it with limits=Limits(rows=...)",
    )


def add(bag: Bag, row: Row, count: int) -> None:
    """Add to a row's count; a row with count zero is removed."""
    total = bag.get(row, 0) + count
    if total:
        bag[row] = total
    else:
        bag.pop(row, None)


def add_all(bag: Bag, other: Bag, sign: int = 1) -> None:
    for row, count in other.items():
        add(bag, row, sign * count)


def picker(positions: Sequence[int]) -> Callable[[Row], Row]:
    """A function that projects a row to these positions, always as a tuple."""
    if not positions:
        return lambda row: ()
    if len(positions) == 1:
        (only,) = positions
        return lambda row: (row[only],)
    return itemgetter(*positions)


class Meeting:
    """The join of rows of one layout with a part: the keys of both, the columns it adds."""

    __slots__ = ("added", "added_columns", "key", "part_key", "positions")

    def __init__(self, layout: Sequence[Column], columns: Sequence[Column]) -> None:
        shared = [column for column in columns if column in layout]
        self.added_columns = [column for column in columns if column not in layout]
        self.positions = tuple(columns.index(column) for column in shared)
        self.key = picker([layout.index(column) for column in shared])
        self.part_key = picker(self.positions)
        self.added = picker([columns.index(column) for column in self.added_columns])


def make_check(test: Test, layout: Sequence[Column]) -> Check:
    """A constraint as a function of rows."""
    at = [layout.index(column) for column in test.columns]
    constraint = test.constraint
    if isinstance(constraint, TimeConstraint):
        terms = [(coefficient, i) for (coefficient, _), i in zip(constraint.terms, at, strict=True)]
        symbol, bound = constraint.operator, constraint.bound
        return lambda row: compare_numbers(_total(row, terms), symbol, bound)
    if isinstance(constraint.right, Variable):
        holds_between = comparer(constraint.operator)
        left, right = at
        return lambda row: holds_between(str(row[left]), str(row[right]))
    holds = comparison(constraint.operator, constraint.right)
    (only,) = at
    return lambda row: holds(row[only])  # type: ignore[arg-type]


def _total(row: Row, terms: list[tuple[int, int]]) -> int:
    return sum(coefficient * int(row[at]) for coefficient, at in terms)


class JoinPlan:
    """The precomputed join of a relation: made once, used at every node."""

    def __init__(self, relation: Relation) -> None:
        self.relation = relation
        self.own = [column for column, _ in relation.own]
        self.parts: list[tuple[Column, ...]] = [
            *(edge.relation.columns for edge in relation.edges),
            *(choice.columns for choice in relation.choices),
        ]
        layout: list[Column] = []
        self.unify = _unifier(self.own)
        layout += dict.fromkeys(self.own)
        self.meetings: list[Meeting] = []
        for columns in self.parts:
            meeting = Meeting(layout, columns)
            self.meetings.append(meeting)
            layout += meeting.added_columns
        self.layout = layout
        self.finish = Finish(relation, layout)
        is_free = len(set(self.own)) == len(self.own) and self.finish.is_plain
        self.is_product = (
            is_free
            and len(self.parts) == len(relation.edges) <= 1
            and not any(meeting.positions for meeting in self.meetings)
        )
        """Whether the rows are the own row beside each row of one part, or alone."""

    def join(
        self,
        own: Row,
        bags: Sequence[Bag],
        tables: Tables,
        most: int = MOST_ROWS,
        meter: Meter | None = None,
    ) -> Bag:
        """The relation's rows from its own row and its parts' bags; the meter counts intermediate
        rows."""
        first = self.unify(own)
        if first is None:
            return {}
        rows: Bag = {first: 1}
        if len(bags) > 1:
            most = max(most, GROWTH * sum(map(len, bags)))
        for meeting, bag in zip(self.meetings, bags, strict=True):
            if len(rows) * len(bag) > min(MANY, most):  # counted before the join is computed
                expected = _meets_in(rows, bag, meeting)
                if meter is not None and len(bags) > 1:
                    meter.spend(expected)
                if expected > most:
                    raise too_many_rows(most)
            rows = _meet(rows, bag, meeting)
            if not rows:
                return rows
            if meter is not None and len(rows) > FEW:
                meter.spend(len(rows))
        return self.finish.project(rows.items(), tables)


def _meets_in(rows: Bag, bag: Bag, meeting: Meeting) -> int:
    """The number of rows of a join with one part."""
    if not meeting.positions:
        return len(rows) * len(bag)
    there = Counter(map(meeting.part_key, bag))
    return sum(there[meeting.key(row)] for row in rows)


def _meet(rows: Bag, bag: Bag, meeting: Meeting) -> Bag:
    if not meeting.positions:
        if len(bag) == 1 and () in bag:
            count = bag[()]
            return rows if count == 1 else {row: c * count for row, c in rows.items()}
        added = meeting.added
        return {r + added(s): c * d for r, c in rows.items() for s, d in bag.items()}
    part_key, added, key = meeting.part_key, meeting.added, meeting.key
    index: dict[Row, list[tuple[Row, int]]] = {}
    for row, count in bag.items():
        index.setdefault(part_key(row), []).append((added(row), count))
    met: Bag = {}
    for row, count in rows.items():
        for more, other in index.get(key(row), ()):
            met[row + more] = count * other
    return met


def _unifier(columns: Sequence[Column]) -> Callable[[Row], Row | None]:
    """Own columns may name one variable twice (`$x = $x`): both must agree."""
    distinct = list(dict.fromkeys(columns))
    if len(distinct) == len(columns):
        return lambda row: row
    places = [[i for i, c in enumerate(columns) if c == column] for column in distinct]

    def unify(row: Row) -> Row | None:
        if any(row[i] != row[group[0]] for group in places for i in group):
            return None
        return tuple(row[group[0]] for group in places)

    return unify


class Tables:
    """The rows that checks read at one node: alternatives of choices, bodies of absences."""

    __slots__ = ("alternatives", "bodies")

    def __init__(
        self, alternatives: Sequence[Sequence[Bag]] = (), bodies: Sequence[Bag] = ()
    ) -> None:
        self.alternatives = alternatives
        self.bodies = bodies


class Finish:
    """The steps after the join: tests, correlated choices, absences, projection."""

    def __init__(self, relation: Relation, layout: Sequence[Column]) -> None:
        self.checks = [make_check(test, layout) for test in relation.tests]
        self.choices = [
            (number, [picker([layout.index(c) for c in a.columns]) for a in choice.alternatives])
            for number, choice in enumerate(relation.choices)
            if choice.is_correlated
        ]
        self.absences = [
            AbsenceCheck(absence.body.columns, absence.tests, layout)
            for absence in relation.absences
        ]
        self.output = picker([layout.index(column) for column in relation.columns])
        self.is_plain = not (self.checks or self.choices or self.absences)

    def holds(self, row: Row, tables: Tables) -> bool:
        """Whether a joined row passes all checks."""
        if not all(check(row) for check in self.checks):
            return False
        for number, pickers in self.choices:
            bags = tables.alternatives[number]
            if not any(pick(row) in bag for pick, bag in zip(pickers, bags, strict=True)):
                return False
        return not any(
            absence.is_blocked(row, body)
            for absence, body in zip(self.absences, tables.bodies, strict=True)
        )

    def project(self, rows: Iterable[tuple[Row, int]], tables: Tables) -> Bag:
        output = self.output
        found: Bag = {}
        for row, count in rows:
            if self.is_plain or self.holds(row, tables):
                out = output(row)
                found[out] = found.get(out, 0) + count
        return found


class AbsenceCheck:
    """Whether a body's bag has a row that agrees with a joined row."""

    def __init__(
        self, columns: tuple[Column, ...], tests: tuple[Test, ...], layout: Sequence[Column]
    ) -> None:
        meeting = Meeting(layout, columns)
        self.columns = columns
        self.key, self.body_key, self.positions = meeting.key, meeting.part_key, meeting.positions
        self.is_exact = not meeting.added_columns
        self.added = meeting.added
        self.checks = [make_check(test, [*layout, *meeting.added_columns]) for test in tests]

    def is_blocked(self, row: Row, body: Bag) -> bool:
        key = self.key(row)
        if self.is_exact and not self.checks:
            return key in body
        return self.blocks(row, (r for r in body if self.body_key(r) == key))

    def blocks(self, row: Row, candidates: Iterable[Row]) -> bool:
        """Whether one of the body's rows with this row's key passes the body's own tests."""
        added, checks = self.added, self.checks
        return any(all(check(row + added(r)) for check in checks) for r in candidates)
