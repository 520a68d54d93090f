"""Sites: the nodes at which deltas are joined, and the rows kept there.

A site is a document node with much below it (or an open call). It keeps, for every relation p that
may hold at it and has something to join, the bag L_e of each edge e = (p, c), indexed on the
columns that joins look up. A delta that rises to the site is joined with what the other edges have:

    ΔR = Σ_i  L'_1 ⋈ ... ⋈ L'_(i-1) ⋈ ΔL_i ⋈ L_(i+1) ⋈ ... ⋈ L_k         (primes: already updated)

then absences are settled: a body's row that comes or goes turns the joined rows that agree with it.
A relation with one edge keeps nothing: deltas pass through. Cost: rows that change, never rows
kept. Where alternatives of an `or` are tied to other branches by different variables, the site's
rows of that relation are joined anew; that costs what it keeps.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, TypeAlias

from axlog.errors import QueryError
from axlog.evaluate.interpreter import Bags, Gathered, Interpreter, distinct
from axlog.evaluate.joins import (
    Bag,
    Check,
    Finish,
    JoinPlan,
    Meeting,
    Row,
    Tables,
    add,
    add_all,
    make_check,
    too_many_rows,
)
from axlog.evaluate.work import Meter, Meters
from axlog.query.compile import Column, Relation
from axlog.views.counting.join_generator import (
    Push,
    generate_push,
    join_order,
    keys_used,
    ready_tests,
)
from axlog.views.counting.tables import NewIndex, Table

if TYPE_CHECKING:
    from axlog.views.counting.waiting_rows import Waiting


Noted: TypeAlias = dict[Relation, QueryError]
"""The relations whose joins exceeded a limit during the present update, and why."""


class Seed:
    """A join that starts from rows of one part, or from the key of an absence."""

    def __init__(self, plan: JoinPlan, columns: tuple[Column, ...], without: int | None) -> None:
        relation = plan.relation
        layout = list(columns)
        self.own = Meeting(layout, list(dict.fromkeys(plan.own)))
        layout += self.own.added_columns
        bound = set(layout)
        self.steps: list[tuple[int, Meeting, list[Check]]] = []
        """The parts in the order they are joined, each with the tests that it makes possible."""
        waiting = list(relation.tests)
        ready_tests(waiting, bound)  # tested at the end
        for number, meeting in join_order(plan.parts, layout, without):
            bound.update(meeting.added_columns)
            ready = ready_tests(waiting, bound)
            self.steps.append((number, meeting, [make_check(test, layout) for test in ready]))
        self.finish = Finish(relation, layout)

    def join(
        self, row: Row, own: Row, tables: list[Table], most: int, meter: Meter
    ) -> list[tuple[Row, int]]:
        """The joined rows that one seed row gives, with their counts; the meter counts reads."""
        meeting = self.own
        if meeting.key(row) != meeting.part_key(own):
            return []
        found = [(row + meeting.added(own), 1)]
        for number, meeting, checks in self.steps:
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


class Seeds:
    """Every way a relation's join can start; made once per relation."""

    def __init__(self, relation: Relation, most_rows: int, meter: Meter, noted: Noted) -> None:
        plan = JoinPlan(relation)
        self.plan = plan
        self.most_rows = most_rows
        self.meter = meter
        self._noted = noted
        self._parts: dict[int, Seed] = {}
        checks = plan.finish.absences
        keys = [tuple(check.columns[i] for i in check.positions) for check in checks]
        self.absences = [Seed(plan, key, None) for key in keys]
        self.keys = keys_used(plan, [*plan.parts, *keys])
        self.is_passing = (
            len(relation.edges) == 1 and not relation.choices and not relation.absences
        )
        self.is_correlated = any(choice.is_correlated for choice in relation.choices)
        self._pushes: dict[int, tuple[Push, str] | None] = {}

    def part(self, number: int) -> Seed:
        """The join that starts from rows of a part; made when the first rows come."""
        made = self._parts.get(number)
        if made is None:
            made = self._parts[number] = Seed(self.plan, self.plan.parts[number], number)
        return made

    def push(self, number: int) -> tuple[Push, str] | None:
        """The generated join of an edge, with its source; None where there is none."""
        if number not in self._pushes:
            relation = self.plan.relation
            self._pushes[number] = generate_push(relation, number, self.most_rows, self.meter)
        return self._pushes[number]

    def note(self, error: QueryError) -> None:
        """The relation's joins exceed a limit: it has no rows from now on."""
        self._noted[self.plan.relation] = error.kept()


class AllSeeds(dict[Relation, Seeds]):
    """The seeds of every relation in use, and where what states keep of it goes."""

    def __init__(self, new_index: NewIndex, most_rows: int, meters: Meters, noted: Noted) -> None:
        super().__init__()
        self.new_index = new_index
        self.most_rows = most_rows
        self._meters = meters
        self._noted = noted

    def __missing__(self, relation: Relation) -> Seeds:
        made = Seeds(relation, self.most_rows, self._meters[relation], self._noted)
        self[relation] = made
        return made

    def keep_only(self, used: set[Relation]) -> None:
        """Let go of the others."""
        for relation in [relation for relation in self if relation not in used]:
            del self[relation]


class State:
    """What one relation keeps at one site."""

    def __init__(
        self,
        relation: Relation,
        seeds: AllSeeds,
        own: Row,
        below: Gathered,
        here: Bags,
    ) -> None:
        self.relation = relation
        known = self.seeds = seeds[relation]
        unified = known.plan.unify(own)
        self.is_dead = unified is None  # its own columns contradict each other
        self.own = unified or ()
        self.alternatives = [
            [State(a, seeds, (), below, here) for a in choice.alternatives]
            for choice in relation.choices
        ]
        self.bodies = [State(a.body, seeds, (), below, here) for a in relation.absences]
        self.tables: list[Table] = []
        self.choice_rows: list[list[Table]] = []
        self.body_rows: list[Table] = []
        self.waiting: Waiting | None = None  # set where rows that wait in vain are let go
        if not known.is_passing:
            self._load(below, here, seeds.new_index)

    def _load(self, below: Gathered, here: Bags, new_index: NewIndex) -> None:
        relation, keys = self.relation, self.seeds.keys
        for number, edge in enumerate(relation.edges):
            bag = Interpreter.part(edge.axis, edge.relation, below, here)
            self.tables.append(Table(bag, keys[number], new_index))
        for choice, states in zip(relation.choices, self.alternatives, strict=True):
            bags = [state.all_rows(below, here) for state in states]
            places = [
                tuple(a.columns.index(c) for c in choice.columns) for a in choice.alternatives
            ]
            self.choice_rows.append(
                [Table(b, [at], new_index) for b, at in zip(bags, places, strict=True)]
            )
            bound = distinct(choice.columns, choice.alternatives, bags)
            whole = tuple(range(len(choice.columns)))
            self.tables.append(Table(bound, [*keys[len(self.tables)], whole], new_index))
        for check, state in zip(self.seeds.plan.finish.absences, self.bodies, strict=True):
            rows = state.all_rows(below, here)
            self.body_rows.append(Table(rows, [check.positions], new_index))

    def all_rows(self, below: Gathered, here: Bags) -> Bag:
        """All rows, from what has risen to the site: a relation that keeps none passes it on."""
        if not self.seeds.is_passing:
            return self.rows()
        (edge,) = self.relation.edges
        return self._join_delta(0, Interpreter.part(edge.axis, edge.relation, below, here))

    def rows(self) -> Bag:
        """All rows, joined anew from what is kept."""
        if self.is_dead:
            return {}
        lookups = Tables(
            [[table.rows() for table in tables] for tables in self.choice_rows],
            [table.rows() for table in self.body_rows],
        )
        bags = [table.rows() for table in self.tables]
        return self.seeds.plan.join(self.own, bags, lookups, self.seeds.most_rows)

    def update(self, below: Gathered, here: Bags) -> Bag:
        """ΔR from the deltas that have risen; what is kept moves along."""
        if self.is_dead:
            return {}
        relation = self.relation
        deltas = [Interpreter.part(e.axis, e.relation, below, here) for e in relation.edges]
        if self.seeds.is_passing:
            return self._join_delta(0, deltas[0]) if deltas[0] else {}
        turned = [[state.update(below, here) for state in states] for states in self.alternatives]
        bodies = [state.update(below, here) for state in self.bodies]
        if not (any(deltas) or any(map(any, turned)) or any(bodies)):
            return {}
        if self.seeds.is_correlated:
            return self._rejoin(deltas, turned, bodies)
        result: Bag = {}
        for number, delta in enumerate(deltas):
            self._settle(result, number, delta)
        for number, moved in enumerate(turned):
            delta = self._turn_choice(number, moved)
            self._settle(result, len(deltas) + number, delta)
        for number, delta in enumerate(bodies):
            if delta:
                self._turn_absence(result, number, delta)
        return result

    def moved(self, below: Gathered, here: Bags, exploded: Noted) -> Bag:
        """`update`, for a relation that may explode: it is noted, and half moved."""
        if exploded and self.relation in exploded:
            return {}
        try:
            return self.update(below, here)
        except QueryError as error:
            exploded[self.relation] = error.kept()
            return {}

    @property
    def is_identity(self) -> bool:
        """Whether rows of the one edge pass unchanged: nothing kept, tested, added or dropped."""
        relation = self.relation
        return (
            self.seeds.is_passing
            and not relation.own
            and not relation.tests
            and relation.edges[0].relation.columns == relation.columns
        )

    def push(self, number: int, delta: Bag) -> Bag:
        """ΔR for a delta of one edge alone; what is kept moves along."""
        if self.is_dead:
            return {}
        generated = self.seeds.push(number)
        if generated is not None:
            result = generated[0](delta, self.own, self.tables)
        else:
            result = self._join_delta(number, delta)
        if self.tables:
            self._keep(number, delta)
        return result

    def _settle(self, result: Bag, number: int, delta: Bag) -> None:
        if delta:
            add_all(result, self._join_delta(number, delta))
            self._keep(number, delta)

    def _keep(self, number: int, delta: Bag) -> None:
        if self.waiting is None:
            self.tables[number].update(delta)
        else:
            self.waiting.keep_all(number, delta)

    def _join_delta(self, number: int, delta: Bag) -> Bag:
        seed, meter = self.seeds.part(number), self.seeds.meter
        result: Bag = {}
        finish = seed.finish
        for row, count in delta.items():
            for joined, more in seed.join(row, self.own, self.tables, self.seeds.most_rows, meter):
                if finish.is_plain or self._holds(finish, joined):
                    add(result, finish.output(joined), count * more)
        return result

    def _holds(self, finish: Finish, joined: Row, but: int | None = None) -> bool:
        """Whether a joined row passes tests and absences, one absence left out."""
        if not all(check(joined) for check in finish.checks):
            return False
        for number, check in enumerate(finish.absences):
            if number == but:
                continue
            rows = self.body_rows[number].matching(check.positions, check.key(joined))
            if len(rows) > 1:
                self.seeds.meter.spend(len(rows))
            if check.blocks(joined, (row for row, _ in rows)):
                return False
        return True

    def _turn_choice(self, number: int, moved: list[Bag]) -> Bag:
        """The rows over all alternatives that came to be, or ceased to be, given by some."""
        choice = self.relation.choices[number]
        tables = self.choice_rows[number]
        touched = distinct(choice.columns, choice.alternatives, moved)
        places = [tuple(a.columns.index(c) for c in choice.columns) for a in choice.alternatives]
        for table, delta in zip(tables, moved, strict=True):
            table.update(delta)
        kept = self.tables[len(self.relation.edges) + number]
        whole = tuple(range(len(choice.columns)))
        turned: Bag = {}
        for row in touched:
            now = any(t.has(at, row) for t, at in zip(tables, places, strict=True))
            if now != kept.has(whole, row):
                turned[row] = 1 if now else -1
        return turned

    def _turn_absence(self, result: Bag, number: int, delta: Bag) -> None:
        """Joined rows that a body's rows blocked and no longer do, or the other way round."""
        seed, table = self.seeds.absences[number], self.body_rows[number]
        meter = self.seeds.meter
        check = seed.finish.absences[number]
        keys = list(
            dict.fromkeys(self.seeds.plan.finish.absences[number].body_key(r) for r in delta)
        )
        before = [[row for row, _ in table.matching(check.positions, key)] for key in keys]
        table.update(delta)
        for key, old in zip(keys, before, strict=True):
            new = [row for row, _ in table.matching(check.positions, key)]
            if check.is_exact and not check.checks and bool(old) == bool(new):
                continue
            most = self.seeds.most_rows
            for joined, count in seed.join(key, self.own, self.tables, most, meter):
                if len(old) + len(new) > 2:
                    meter.spend(len(old) + len(new))
                was, now = check.blocks(joined, old), check.blocks(joined, new)
                if was != now and self._holds(seed.finish, joined, but=number):
                    add(result, seed.finish.output(joined), -count if now else count)

    def _rejoin(self, deltas: list[Bag], turned: list[list[Bag]], bodies: list[Bag]) -> Bag:
        result: Bag = {}
        add_all(result, self.rows(), -1)
        for number, delta in enumerate(deltas):
            self.tables[number].update(delta)
        for number, moved in enumerate(turned):
            delta = self._turn_choice(number, moved)
            self.tables[len(deltas) + number].update(delta)
        for table, delta in zip(self.body_rows, bodies, strict=True):
            table.update(delta)
        add_all(result, self.rows())
        return result


class Site:
    """One document node at which deltas are joined."""

    __slots__ = ("is_value_sensitive", "states")

    def __init__(self, states: Iterable[State], is_value_sensitive: bool) -> None:
        self.states = list(states)
        self.is_value_sensitive = is_value_sensitive

    def update(self, below: Gathered, exploded: Noted) -> Bags:
        """ΔM of every relation at the site, from the deltas that have risen to it.

        A relation whose joins explode is noted, and moves no more.
        """
        here: Bags = {}
        for state in self.states:
            delta = state.moved(below, here, exploded)
            if delta:
                here[state.relation] = delta
        return here
