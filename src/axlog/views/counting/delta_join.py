"""The delta join: the change of a relation's rows at one site, from the changes of its parts.

A relation joins its own columns with its parts: one for each edge and one for each choice. When the
parts change by ΔL_1, ..., ΔL_k, the rows of the relation change by

    ΔR = Σ_i  L'_1 ⋈ ... ⋈ L'_(i-1) ⋈ ΔL_i ⋈ L_(i+1) ⋈ ... ⋈ L_k         (primes: already updated)

`DeltaRule` states this sum. `DeltaJoin` describes one term of it: the order in which the other
parts are joined, the key that each part is looked up by, and the tests that each part makes
possible. The description has two readers. `DeltaJoin.join` interprets it for one row.
`join_generator.py` writes the same term as Python code, for relations without connectives. The
interpreter is the definition, and the generated code is checked by it. A delta join costs the rows
that it reads, never the rows that the tables hold.

Absences are not parts. `sites.py` handles them after the sum, with a `DeltaJoin` that starts from
the key of the absence.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Sequence
from typing import NamedTuple, TypeAlias

from axlog.errors import QueryError
from axlog.evaluate.joins import (
    Bag,
    Check,
    Finish,
    JoinPlan,
    Meeting,
    Row,
    add,
    add_all,
    make_check,
    too_many_rows,
)
from axlog.evaluate.work import Meter, Meters
from axlog.query.compile import Column, Relation, Test
from axlog.views.counting.tables import NewIndex, Positions, Table

Noted: TypeAlias = dict[Relation, QueryError]
"""The relations whose joins exceeded a limit during the current update, with the error."""
Holds: TypeAlias = Callable[[Finish, Row], bool]
"""Whether a joined row passes the tests and the absences of its relation."""
Keep: TypeAlias = Callable[[int, Bag], None]
"""Applies the delta of a part to the table of the part."""


class Step(NamedTuple):
    """One part that a delta join looks up."""

    part: int
    meeting: Meeting
    tests: list[Test]  # tests whose last column this part binds
    checks: list[Check]  # the same tests, as functions of the joined row


class DeltaJoin:
    """One term of the delta rule: the join that starts from the rows of one part.

    With `without=None` the join starts from the key of an absence and visits all parts.
    """

    def __init__(self, plan: JoinPlan, columns: tuple[Column, ...], without: int | None) -> None:
        self.plan = plan
        self.columns = columns
        layout = list(columns)
        self.own = Meeting(layout, list(dict.fromkeys(plan.own)))
        layout += self.own.added_columns
        bound = set(layout)
        pending = list(plan.relation.tests)
        self.first_tests = _take_ready(pending, bound)
        """Tests that the start row and the own columns decide; `finish` checks them as well."""
        self.steps: list[Step] = []
        for part, meeting in _join_order(plan.parts, layout, without):
            bound.update(meeting.added_columns)
            tests = _take_ready(pending, bound)
            checks = [make_check(test, layout) for test in tests]
            self.steps.append(Step(part, meeting, tests, checks))
        self.finish = Finish(plan.relation, layout)

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
        found = [(row + meeting.added(own), 1)]
        for number, meeting, _, checks in self.steps:
            table, key, added = tables[number], meeting.key, meeting.added
            joined: list[tuple[Row, int]] = []
            for left, count in found:
                there = table.matching(meeting.positions, key(left))
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


class DeltaRule:
    """The delta rule of one relation; created once and used at every site."""

    def __init__(self, relation: Relation, most_rows: int, meter: Meter, noted: Noted) -> None:
        plan = JoinPlan(relation)
        self.plan = plan
        self.most_rows = most_rows
        self.meter = meter
        self._noted = noted
        self._terms: dict[int, DeltaJoin] = {}
        checks = plan.finish.absences
        keys = [tuple(check.columns[i] for i in check.positions) for check in checks]
        self.absences = [DeltaJoin(plan, key, None) for key in keys]
        self.keys = _keys_used(plan, [*plan.parts, *keys])
        """For each part, the positions that some delta join looks it up by."""
        self.is_passing = (
            len(relation.edges) == 1 and not relation.choices and not relation.absences
        )
        """Whether the relation has one part only: deltas pass through and no table is kept."""
        self.is_correlated = any(choice.is_correlated for choice in relation.choices)

    def term(self, part: int) -> DeltaJoin:
        """The join that starts from rows of a part; created for the first delta of the part."""
        known = self._terms.get(part)
        if known is None:
            known = self._terms[part] = DeltaJoin(self.plan, self.plan.parts[part], part)
        return known

    def apply(
        self,
        deltas: Sequence[Bag],
        own: Row,
        tables: Sequence[Table],
        holds: Holds,
        keep: Keep,
    ) -> Bag:
        """ΔR for the deltas of all parts; `keep` updates each table after its term."""
        result: Bag = {}
        for part, delta in enumerate(deltas):
            if delta:
                add_all(result, self.apply_one(part, delta, own, tables, holds))
                keep(part, delta)
        return result

    def apply_one(
        self, part: int, delta: Bag, own: Row, tables: Sequence[Table], holds: Holds
    ) -> Bag:
        """The term of one part: ΔL_i joined with the tables of the other parts, as they are."""
        term, meter, most = self.term(part), self.meter, self.most_rows
        finish = term.finish
        result: Bag = {}
        for row, count in delta.items():
            for joined, more in term.join(row, own, tables, most, meter):
                if finish.is_plain or holds(finish, joined):
                    add(result, finish.output(joined), count * more)
        return result

    def note(self, error: QueryError) -> None:
        """Record that the relation's joins exceeded a limit: it has no rows from now on."""
        self._noted[self.plan.relation] = error.kept()


class DeltaRules(dict[Relation, DeltaRule]):
    """The delta rules of the relations in use, with the settings that their tables share."""

    def __init__(self, new_index: NewIndex, most_rows: int, meters: Meters, noted: Noted) -> None:
        super().__init__()
        self.new_index = new_index
        self.most_rows = most_rows
        self._meters = meters
        self._noted = noted

    def __missing__(self, relation: Relation) -> DeltaRule:
        made = DeltaRule(relation, self.most_rows, self._meters[relation], self._noted)
        self[relation] = made
        return made

    def keep_only(self, used: set[Relation]) -> None:
        """Drop the rules of all other relations."""
        for relation in [relation for relation in self if relation not in used]:
            del self[relation]


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
