"""The n-ary join at one site: its rows change as its parts change.

A relation joins its own columns with its parts: one for each edge and one for each choice. When the
parts change by ΔL_1, ..., ΔL_k, the rows of the relation change by

    ΔR = Σ_i  L'_1 ⋈ ... ⋈ L'_(i-1) ⋈ ΔL_i ⋈ L_(i+1) ⋈ ... ⋈ L_k         (primes: already updated)

`Term` describes one term of this sum: the order in which the other parts are joined, the key that
each part is looked up by, and the tests that each part makes possible. The description has two
readers. `Term.join` interprets it for one row. `join_generator.py` writes the same term as Python
code. The interpreter is the definition, and the generated code is checked by it. A join costs the
rows that it reads, never the rows that its tables hold.

`JoinRule` holds what all sites of a relation share. `Join` is the operator at one site.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from axlog.errors import QueryError
from axlog.evaluate.joins import (
    AbsenceCheck,
    Bag,
    Check,
    JoinPlan,
    Meeting,
    Row,
    Value,
    add,
    make_check,
    picker,
    too_many_rows,
)
from axlog.evaluate.work import Meter, Meters
from axlog.query.compile import Column, Relation, Test
from axlog.views.operators.operator import Cost, Operator, Pending
from axlog.views.operators.range_lookup import Range, range_of
from axlog.views.operators.table import NewIndex, Positions, Table

if TYPE_CHECKING:
    from axlog.future.garbage import Proof
    from axlog.views.counting.join_prospects import Watch

Noted: TypeAlias = dict[Relation, QueryError]
"""The relations whose joins exceeded a limit during the current update, with the error."""


class Step(NamedTuple):
    """One part that a term looks up."""

    part: int
    meeting: Meeting
    tests: list[Test]  # tests whose last column this part binds
    checks: list[Check]  # the same tests, as functions of the joined row
    range: Range | None  # a test that orders the rows of a part that shares no column
    bound: int  # the position of the value that it compares them with, in the joined row


class Term:
    """One term of the delta rule: the join that starts from the rows of one part.

    With `without=None` the join starts from a key and visits all parts.
    """

    def __init__(
        self,
        plan: JoinPlan,
        columns: tuple[Column, ...],
        without: int | None,
        schema: Sequence[Column],
    ) -> None:
        self.plan = plan
        self.columns = columns
        self.schema = schema
        layout = list(columns)
        self.own = Meeting(layout, list(dict.fromkeys(plan.own)))
        layout += self.own.added_columns
        bound = set(layout)
        pending = list(plan.relation.tests)
        self.first_tests = _take_ready(pending, bound)
        """Tests that the start row and the own columns decide."""
        self._first_checks = [make_check(test, layout) for test in self.first_tests]
        self.steps: list[Step] = []
        for part, meeting in _join_order(plan.parts, layout, without):
            bound.update(meeting.added_columns)
            tests = _take_ready(pending, bound)
            checks = [make_check(test, layout) for test in tests]
            asked = None
            if not meeting.positions:
                asked = range_of(tests, plan.parts[part], meeting.added_columns)
            at = 0 if asked is None else layout.index(asked.column)
            self.steps.append(Step(part, meeting, tests, checks, asked, at))
        self.is_direct = not (self.steps or self.first_tests or self.own.positions)
        """Whether every row gives one row, with the own columns beside it."""
        self.layout = tuple(layout)
        self.output = picker([layout.index(column) for column in schema])

    @property
    def products(self) -> int:
        """How many parts share no column with the parts before them: each multiplies the rows."""
        parts = self.plan.parts
        return sum(bool(parts[step.part]) and not step.meeting.positions for step in self.steps)

    def join(
        self, row: Row, own: Row, tables: Sequence[Table], most: int, meter: Meter
    ) -> list[tuple[Row, int]]:
        """The rows that one start row joins to, with their counts; the meter counts reads."""
        meeting = self.own
        if meeting.key(row) != meeting.part_key(own):
            return []
        first = row + meeting.added(own)
        if not all(check(first) for check in self._first_checks):
            return []
        found = [(first, 1)]
        for number, meeting, _, checks, asked, at in self.steps:
            table, key, added = tables[number], meeting.key, meeting.added
            joined: list[tuple[Row, int]] = []
            for left, count in found:
                if asked is None:
                    there = table.matching(meeting.positions, key(left))
                else:
                    there = table.within(asked, left[at])
                if len(there) > 1:
                    meter.spend(len(there))
                joined += [(left + added(right), count * more) for right, more in there]
                if len(joined) > most:
                    raise too_many_rows(most)
            if checks and joined:
                meter.spend(len(joined) * len(checks))
                joined = [each for each in joined if all(check(each[0]) for check in checks)]
            found = joined
        return found


class Correlation(NamedTuple):
    """A choice whose alternatives must also agree with other parts of the join."""

    choice: int
    keys: list[Positions]  # for each alternative, the positions of its columns in a joined row
    columns: list[tuple[Column, ...]]  # the same columns by name


class JoinRule:
    """The delta rule of one relation; created once and used at every site."""

    def __init__(self, relation: Relation, most_rows: int, meter: Meter, noted: Noted) -> None:
        plan = JoinPlan(relation)
        self.plan = plan
        self.most_rows = most_rows
        self.meter = meter
        self._noted = noted
        self._terms: dict[int, Term] = {}
        self._lookups: dict[tuple[Column, ...], Term] = {}
        bound = tuple(plan.layout)
        self.correlations = [
            Correlation(
                number,
                [tuple(bound.index(c) for c in a.columns) for a in choice.alternatives],
                [a.columns for a in choice.alternatives],
            )
            for number, choice in enumerate(relation.choices)
            if choice.is_correlated
        ]
        self.absences = [AbsenceCheck(a.body.columns, a.tests, bound) for a in relation.absences]
        self.is_guarded = bool(self.correlations or self.absences)
        """Whether joined rows pass semi joins or anti joins before they are projected."""
        self.schema = bound if self.is_guarded else relation.columns
        self.project = picker([bound.index(column) for column in relation.columns])
        """From a row of the schema to the columns of the relation, if it is guarded."""
        self.places = [
            [tuple(a.columns.index(c) for c in choice.columns) for a in choice.alternatives]
            for choice in relation.choices
        ]
        """For each choice and alternative, the positions of the choice's columns."""
        starts = [absence_key(check) for check in self.absences]
        starts += [columns for each in self.correlations for columns in each.columns]
        self.keys = _keys_used(plan, [*plan.parts, *starts])
        """For each part, the positions that some term looks it up by."""
        self.ranged: set[int] = set()
        """The parts that some term looks up by an order."""
        if any(len(test.columns) == 2 for test in relation.tests):
            terms = map(self.term, range(len(plan.parts)))
            self.ranged = {s.part for term in terms for s in term.steps if s.range is not None}
        self.is_passing = (
            len(relation.edges) == 1 and not relation.choices and not relation.absences
        )
        """Whether the relation has one part only: deltas pass through and no table is kept."""
        has_edges = bool(relation.edges or relation.choices or relation.absences)
        self.keeps_nothing = self.is_passing or not has_edges
        """Whether no table is kept: it has one part, or its own row alone."""

    def term(self, part: int) -> Term:
        """The join that starts from rows of a part; created for the first delta of the part."""
        known = self._terms.get(part)
        if known is None:
            known = self._terms[part] = Term(self.plan, self.plan.parts[part], part, self.schema)
        return known

    def lookup(self, columns: tuple[Column, ...]) -> Term:
        """The join that starts from values of some columns and visits all parts."""
        known = self._lookups.get(columns)
        if known is None:
            known = self._lookups[columns] = Term(self.plan, columns, None, self.schema)
        return known

    def note(self, error: QueryError) -> None:
        """Record that the relation's joins exceeded a limit: it has no rows from now on."""
        self._noted[self.plan.relation] = error.kept()


def absence_key(check: AbsenceCheck) -> tuple[Column, ...]:
    """The columns of a body that the joined rows have too."""
    return tuple(check.columns[at] for at in check.positions)


class Share(NamedTuple):
    """A part of the rows of a document: those with some values in a column, or without it."""

    column: Column
    owns: Callable[[Value], bool]


class JoinRules(dict[Relation, JoinRule]):
    """The delta rules of the relations in use, with the settings that their tables share."""

    def __init__(self, new_index: NewIndex, most_rows: int, meters: Meters, noted: Noted) -> None:
        super().__init__()
        self.new_index = new_index
        self.most_rows = most_rows
        self._meters = meters
        self._noted = noted
        self.shares: tuple[Share, ...] = ()  # the rows of the document to begin with

    def own_rows(self, columns: Sequence[Column], rows: Bag) -> Bag:
        """Those of some rows of the document that the tables begin with."""
        for share in self.shares:
            if share.column in columns:
                at, owns = columns.index(share.column), share.owns
                rows = {row: count for row, count in rows.items() if owns(row[at])}
        return rows

    def __missing__(self, relation: Relation) -> JoinRule:
        made = JoinRule(relation, self.most_rows, self._meters[relation], self._noted)
        self[relation] = made
        return made

    def keep_only(self, used: set[Relation]) -> None:
        """Drop the rules of all other relations."""
        for relation in [relation for relation in self if relation not in used]:
            del self[relation]


class Join(Operator):
    """The n-ary join of the parts of a relation, and of the node's own row.

    Law: ΔR = Σ_i L'_1 ⋈ ... ⋈ ΔL_i ⋈ ... ⋈ L_k, where the tests hold. Port i is part i. A join with
    one part keeps nothing; any other keeps the rows of each part, indexed by the keys that terms
    look up.
    """

    name = "join"
    __slots__ = ("kept", "own", "rule", "schema", "waiting")

    def __init__(self, rule: JoinRule, own: Row, parts: Sequence[Bag], new_index: NewIndex) -> None:
        """`parts`: the rows of each part; ignored by a join with one part, which keeps none."""
        self.rule = rule
        self.schema = rule.schema
        self.own = own
        self.waiting: Watch | None = None  # set where rows without a partner are dropped
        self.kept: list[Table] = []
        if not rule.is_passing:
            self.kept = [
                Table(bag, keys, new_index, part in rule.ranged)
                for part, (bag, keys) in enumerate(zip(parts, rule.keys, strict=True))
            ]

    def tables(self) -> Sequence[Table]:
        return self.kept

    def apply(self, port: int, delta: Bag) -> Bag:
        rule = self.rule
        term, meter, most, own, kept = (
            rule.term(port),
            rule.meter,
            rule.most_rows,
            self.own,
            self.kept,
        )
        if self.waiting is not None:
            self.waiting.settle()
        output = term.output
        result: Bag = {}
        if term.is_direct and not kept:
            beside = term.own.added(own)
            for row, count in delta.items():
                add(result, output(row + beside), count)
            return result
        for row, count in delta.items():
            for joined, more in term.join(row, own, kept, most, meter):
                add(result, output(joined), count * more)
        if self.waiting is not None:
            self.waiting.keep_all(port, delta)
        elif kept:
            kept[port].update(delta)
        return result

    def lookup(self, columns: tuple[Column, ...], key: Row) -> Bag:
        rule = self.rule
        if self.waiting is not None:
            self.waiting.settle()
        term = rule.lookup(columns)
        result: Bag = {}
        for joined, count in term.join(key, self.own, self.kept, rule.most_rows, rule.meter):
            add(result, term.output(joined), count)
        return result

    def lineage(self, row: Row) -> list[tuple[int, Row]]:
        rule = self.rule
        if rule.is_passing:
            raise AssertionError("a join with one part keeps no rows")
        term = rule.lookup(tuple(self.schema))
        found: dict[tuple[int, Row], None] = {}
        for joined, _ in term.join(row, self.own, self.kept, rule.most_rows, rule.meter):
            values = dict(zip(term.layout, joined, strict=True))
            for part, columns in enumerate(rule.plan.parts):
                found[(part, tuple(values[column] for column in columns))] = None
        return list(found)

    @property
    def partition_key(self) -> tuple[Column, ...] | None:
        """The columns that all parts have. The parts then split alike, and so does the output."""
        parts = self.rule.plan.parts
        shared = [c for c in parts[0] if all(c in part for part in parts)] if parts else []
        return tuple(shared) or None

    def cost(self, port: int) -> Cost:
        steps, parts = self.rule.term(port).steps, self.rule.plan.parts
        scans = sum(bool(parts[step.part]) and not step.meeting.positions for step in steps)
        return Cost(len(steps) - scans, scans)

    def pending(self, port: int, row: Row) -> Pending | None:
        return None if self.waiting is None else self.waiting.pending(port, row)

    def next_deadline(self) -> int | None:
        return None if self.waiting is None else self.waiting.next_deadline()

    def prune(self, proof: Proof) -> int:
        return 0 if self.waiting is None else self.waiting.prune(proof)


def _join_order(
    parts: list[tuple[Column, ...]], layout: list[Column], without: int | None
) -> Iterator[tuple[int, Meeting]]:
    """The parts in the order of the join: the part that shares most columns comes first.

    Extends `layout` by the columns of a part before it yields the part.
    """
    columns, bound = [frozenset(part) for part in parts], set(layout)
    pending = [number for number in range(len(parts)) if number != without]
    while pending:
        number = max(pending, key=lambda each: len(columns[each] & bound))
        pending.remove(number)
        meeting = Meeting(layout, parts[number])
        layout += meeting.added_columns
        bound |= columns[number]
        yield number, meeting


def _take_ready(pending: list[Test], bound: Container[Column]) -> list[Test]:
    """Remove and return the tests whose columns are all bound."""
    ready: list[Test] = []
    rest: list[Test] = []
    for test in pending:
        (ready if all(column in bound for column in test.columns) else rest).append(test)
    pending[:] = rest
    return ready


def _keys_used(plan: JoinPlan, starts: list[tuple[Column, ...]]) -> list[list[Positions]]:
    """For each part, the positions that joins from these start columns look it up by."""
    used: list[list[Positions]] = [[] for _ in plan.parts]
    for number, columns in enumerate(starts):
        layout = list(dict.fromkeys([*columns, *plan.own]))
        without = number if number < len(plan.parts) else None
        for part, meeting in _join_order(plan.parts, layout, without):
            used[part].append(meeting.positions)
    return used
