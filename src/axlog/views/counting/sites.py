"""Sites: the document nodes at which deltas are joined, and the rows kept there.

A site is a document node with many nodes below it, or with an open call below it. For every
relation p that may hold at the site and has parts to join, the site keeps the bag L_e of each edge
e = (p, c), indexed on the columns that joins look up. A delta that rises to the site is joined with
the bags of the other edges by the rule of `delta_join.py`. Then the absences are updated: a body
row that is inserted or deleted hides or reveals the joined rows that agree with it.

A relation with one edge keeps nothing, and deltas pass through it. An update costs the rows that
change, never the rows kept. The exception: where the alternatives of an `or` share different
variables with other branches, the rows of that relation at the site are joined again, at the cost
of the rows kept.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from axlog.errors import QueryError
from axlog.evaluate.interpreter import Bags, Gathered, Interpreter, distinct
from axlog.evaluate.joins import Bag, Finish, Row, Tables, add, add_all
from axlog.query.compile import Relation
from axlog.views.counting.delta_join import DeltaRules, Noted
from axlog.views.counting.tables import NewIndex, Table

if TYPE_CHECKING:
    from axlog.views.counting.waiting_rows import WaitingRows


class State:
    """The rows that one relation keeps at one site."""

    def __init__(
        self,
        relation: Relation,
        rules: DeltaRules,
        own: Row,
        below: Gathered,
        here: Bags,
    ) -> None:
        self.relation = relation
        rule = self.rule = rules[relation]
        unified = rule.plan.unify(own)
        self.is_dead = unified is None  # its own columns contradict each other: it has no rows
        self.own = unified or ()
        self.alternatives = [
            [State(a, rules, (), below, here) for a in choice.alternatives]
            for choice in relation.choices
        ]
        self.bodies = [State(a.body, rules, (), below, here) for a in relation.absences]
        self.tables: list[Table] = []
        self.choice_rows: list[list[Table]] = []
        self.body_rows: list[Table] = []
        self.waiting: WaitingRows | None = None  # set where rows without a partner are dropped
        if not rule.is_passing:
            self._load(below, here, rules.new_index)

    def _load(self, below: Gathered, here: Bags, new_index: NewIndex) -> None:
        relation, keys = self.relation, self.rule.keys
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
        for check, state in zip(self.rule.plan.finish.absences, self.bodies, strict=True):
            rows = state.all_rows(below, here)
            self.body_rows.append(Table(rows, [check.positions], new_index))

    def all_rows(self, below: Gathered, here: Bags) -> Bag:
        """All rows, given the bags that rose to the site; a passing relation needs them."""
        if not self.rule.is_passing:
            return self.rows()
        (edge,) = self.relation.edges
        return self._join_one(0, Interpreter.part(edge.axis, edge.relation, below, here))

    def rows(self) -> Bag:
        """All rows, joined again from the tables."""
        if self.is_dead:
            return {}
        lookups = Tables(
            [[table.rows() for table in tables] for tables in self.choice_rows],
            [table.rows() for table in self.body_rows],
        )
        bags = [table.rows() for table in self.tables]
        return self.rule.plan.join(self.own, bags, lookups, self.rule.most_rows)

    def update(self, below: Gathered, here: Bags) -> Bag:
        """ΔR for the deltas that rose to the site; updates the tables."""
        if self.is_dead:
            return {}
        relation = self.relation
        deltas = [Interpreter.part(e.axis, e.relation, below, here) for e in relation.edges]
        if self.rule.is_passing:
            return self._join_one(0, deltas[0]) if deltas[0] else {}
        moved = [[state.update(below, here) for state in states] for states in self.alternatives]
        bodies = [state.update(below, here) for state in self.bodies]
        if not (any(deltas) or any(map(any, moved)) or any(bodies)):
            return {}
        if self.rule.is_correlated:
            return self._rejoin(deltas, moved, bodies)
        deltas += [self._update_choice(number, each) for number, each in enumerate(moved)]
        result = self.rule.apply(deltas, self.own, self.tables, self._holds, self._keep)
        for number, delta in enumerate(bodies):
            if delta:
                self._update_absence(result, number, delta)
        return result

    def try_update(self, below: Gathered, here: Bags, exploded: Noted) -> Bag:
        """`update`, unless the joins exceed a limit: then the error is noted.

        The tables are half updated in that case. The relation has no rows from then on.
        """
        if exploded and self.relation in exploded:
            return {}
        try:
            return self.update(below, here)
        except QueryError as error:
            exploded[self.relation] = error.kept()
            return {}

    @property
    def is_identity(self) -> bool:
        """Whether rows of the one edge pass unchanged: none is kept, tested, extended or cut."""
        relation = self.relation
        return (
            self.rule.is_passing
            and not relation.own
            and not relation.tests
            and relation.edges[0].relation.columns == relation.columns
        )

    def _join_one(self, part: int, delta: Bag) -> Bag:
        return self.rule.apply_one(part, delta, self.own, self.tables, self._holds)

    def _keep(self, part: int, delta: Bag) -> None:
        if self.waiting is None:
            self.tables[part].update(delta)
        else:
            self.waiting.keep_all(part, delta)

    def _holds(self, finish: Finish, joined: Row, but: int | None = None) -> bool:
        """Whether a joined row passes the tests and the absences, except the absence `but`."""
        if not all(check(joined) for check in finish.checks):
            return False
        for number, check in enumerate(finish.absences):
            if number == but:
                continue
            rows = self.body_rows[number].matching(check.positions, check.key(joined))
            if len(rows) > 1:
                self.rule.meter.spend(len(rows))
            if check.blocks(joined, (row for row, _ in rows)):
                return False
        return True

    def _update_choice(self, number: int, moved: list[Bag]) -> Bag:
        """The rows that some alternative gives now and none gave before, or the reverse.

        Updates the rows of the alternatives, but not the table of the choice.
        """
        choice = self.relation.choices[number]
        tables = self.choice_rows[number]
        touched = distinct(choice.columns, choice.alternatives, moved)
        places = [tuple(a.columns.index(c) for c in choice.columns) for a in choice.alternatives]
        for table, delta in zip(tables, moved, strict=True):
            table.update(delta)
        kept = self.tables[len(self.relation.edges) + number]
        whole = tuple(range(len(choice.columns)))
        changed: Bag = {}
        for row in touched:
            now = any(t.has(at, row) for t, at in zip(tables, places, strict=True))
            if now != kept.has(whole, row):
                changed[row] = 1 if now else -1
        return changed

    def _update_absence(self, result: Bag, number: int, delta: Bag) -> None:
        """Add the joined rows that the body no longer blocks, remove those it blocks now."""
        join, table = self.rule.absences[number], self.body_rows[number]
        meter = self.rule.meter
        check = join.finish.absences[number]
        body_key = self.rule.plan.finish.absences[number].body_key
        keys = list(dict.fromkeys(body_key(row) for row in delta))
        before = [[row for row, _ in table.matching(check.positions, key)] for key in keys]
        table.update(delta)
        for key, old in zip(keys, before, strict=True):
            new = [row for row, _ in table.matching(check.positions, key)]
            if check.is_exact and not check.checks and bool(old) == bool(new):
                continue
            most = self.rule.most_rows
            for joined, count in join.join(key, self.own, self.tables, most, meter):
                if len(old) + len(new) > 2:
                    meter.spend(len(old) + len(new))
                was, now = check.blocks(joined, old), check.blocks(joined, new)
                if was != now and self._holds(join.finish, joined, but=number):
                    add(result, join.finish.output(joined), -count if now else count)

    def _rejoin(self, deltas: list[Bag], moved: list[list[Bag]], bodies: list[Bag]) -> Bag:
        """ΔR as the difference of all rows after and before."""
        result: Bag = {}
        add_all(result, self.rows(), -1)
        for number, delta in enumerate(deltas):
            self.tables[number].update(delta)
        for number, each in enumerate(moved):
            delta = self._update_choice(number, each)
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
        """The delta of every relation at the site, from the deltas that rose to it.

        A relation whose joins exceed a limit is noted and has no rows from then on.
        """
        here: Bags = {}
        for state in self.states:
            delta = state.try_update(below, here, exploded)
            if delta:
                here[state.relation] = delta
        return here
