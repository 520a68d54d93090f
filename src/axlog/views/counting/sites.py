"""Sites: the document nodes at which deltas are joined, and the operators there.

A site is a document node with many nodes below it, or with an open call below it. For every
relation that may hold at the site, a `SiteRelation` chains operators:

    edges, and `or` as Distinct -> Join -> SemiJoin for each correlated `or`
                                        -> AntiJoin for each `not` -> columns of the relation

The alternatives of an `or` and the body of a `not` are relations at the same site, with operators
of their own. A delta that rises to the site passes the chain once.

A relation with one edge keeps nothing, and deltas pass through it. An update costs the rows that
change, never the rows kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from axlog.errors import QueryError
from axlog.evaluate.gathered import Bags, Gathered
from axlog.evaluate.joins import Bag, Row, Tables, add, add_all
from axlog.query.compile import Relation
from axlog.views.operators.anti_join import LEFT, RIGHT, AntiJoin
from axlog.views.operators.distinct import Distinct
from axlog.views.operators.join import Join, JoinRules, Noted
from axlog.views.operators.operator import Operator
from axlog.views.operators.semi_join import SemiJoin


class SiteRelation:
    """One relation at one site: the operators that keep its rows."""

    __slots__ = (
        "alternatives", "anti_joins", "bodies", "choices", "guards", "is_dead", "join", "own",
        "relation", "rule", "semi_joins",
    )  # fmt: skip

    def __init__(
        self, relation: Relation, rules: JoinRules, own: Row, below: Gathered, here: Bags
    ) -> None:
        self.relation = relation
        rule = self.rule = rules[relation]
        unified = rule.plan.unify(own)
        self.is_dead = unified is None  # its own columns contradict each other: it has no rows
        self.own = unified or ()
        self.alternatives = [
            [SiteRelation(a, rules, (), below, here) for a in choice.alternatives]
            for choice in relation.choices
        ]
        self.bodies = [SiteRelation(a.body, rules, (), below, here) for a in relation.absences]
        new_index = rules.new_index
        self.choices = [
            Distinct(
                choice.columns,
                [a.columns for a in choice.alternatives],
                places,
                [
                    rules.own_rows(each.relation.columns, each.all_rows(below, here))
                    for each in inputs
                ],
                new_index,
            )
            for choice, places, inputs in zip(
                relation.choices, rule.places, self.alternatives, strict=True
            )
        ]
        parts: list[Bag] = []
        if not rule.is_passing:
            parts = [
                rules.own_rows(e.relation.columns, below.part(e.axis, e.relation, here))
                for e in relation.edges
            ]
            parts += [choice.rows() for choice in self.choices]
        self.join = Join(rule, self.own, parts, new_index)
        self.guards: list[SemiJoin | AntiJoin] = []
        self.semi_joins: dict[int, int] = {}  # by choice, the number of its guard
        last: Operator = self.join
        for correlation in rule.correlations:
            number, keys, columns = correlation
            last = SemiJoin(last, self.choices[number], columns, keys)
            self.semi_joins[number] = len(self.guards)
            self.guards.append(last)
        self.anti_joins = len(self.guards)  # the number of the first
        for check, body in zip(rule.absences, self.bodies, strict=True):
            blocking = rules.own_rows(body.relation.columns, body.all_rows(below, here))
            last = AntiJoin(last, check, blocking, rule.meter, new_index)
            self.guards.append(last)

    def operators(self) -> Iterator[Operator]:
        """The operators, those of alternatives and bodies last."""
        yield self.join
        yield from self.choices
        yield from self.guards[self.anti_joins :]
        for inputs in self.alternatives:
            for each in inputs:
                yield from each.operators()
        for body in self.bodies:
            yield from body.operators()

    def all_rows(self, below: Gathered, here: Bags) -> Bag:
        """All rows, given the bags that rose to the site; a passing relation needs them."""
        if not self.rule.is_passing:
            return self.rows()
        if self.is_dead:
            return {}
        (edge,) = self.relation.edges
        return self.join.apply(0, below.part(edge.axis, edge.relation, here))

    def rows(self) -> Bag:
        """All rows, joined again from the tables."""
        if self.is_dead:
            return {}
        lookups = Tables(
            [[table.rows() for table in choice.kept] for choice in self.choices],
            [table.rows() for guard in self.guards[self.anti_joins :] for table in guard.tables()],
        )
        bags = [table.rows() for table in self.join.kept]
        return self.rule.plan.join(self.own, bags, lookups, self.rule.most_rows)

    def update(self, below: Gathered, here: Bags) -> Bag:
        """ΔR for the deltas that rose to the site; updates the state.

        The right sides of semi joins and anti joins come first, while the join still has its old
        rows. The deltas of the join then meet right sides that are up to date.
        """
        if self.is_dead:
            return {}
        relation, join = self.relation, self.join
        deltas = [below.part(e.axis, e.relation, here) for e in relation.edges]
        if self.rule.is_passing:
            return join.apply(0, deltas[0]) if deltas[0] else {}
        result: Bag = {}
        for number, inputs in enumerate(self.alternatives):
            chosen: Bag = {}
            for port, each in enumerate(inputs):
                delta = each.update(below, here)
                if delta:
                    add_all(chosen, self.choose(number, port, delta, result))
            deltas.append(chosen)
        for number, body in enumerate(self.bodies):
            delta = body.update(below, here)
            if delta:
                self.block(number, delta, result)
        for port, delta in enumerate(deltas):
            if delta:
                self.pass_on(join.apply(port, delta), 0, result)
        return result

    def choose(self, number: int, port: int, delta: Bag, result: Bag) -> Bag:
        """Apply the delta of one alternative; the delta of the choice. Adds to the result.

        A correlated choice has a semi join, whose output may change even if the choice does not.
        """
        choice, guard = self.choices[number], self.semi_joins.get(number)
        if guard is None:
            return choice.apply(port, delta)
        flips = choice.kept[port].flips(delta)
        chosen = choice.apply(port, delta)
        self.pass_on(self.guards[guard].apply(1 + port, flips), guard + 1, result)
        return chosen

    def block(self, number: int, delta: Bag, result: Bag) -> None:
        """Apply the delta of the body of a `not`; adds to the result."""
        guard = self.anti_joins + number
        if self.join.waiting is not None:
            self.join.waiting.block(number, delta)
        self.pass_on(self.guards[guard].apply(RIGHT, delta), guard + 1, result)

    def pass_on(self, delta: Bag, first: int, result: Bag) -> None:
        """Carry a delta through the guards from the given one on, and add it to the result."""
        if not self.rule.is_guarded:
            add_all(result, delta)
            return
        for guard in self.guards[first:]:
            if not delta:
                return
            delta = guard.apply(LEFT, delta)
        project = self.rule.project
        for row, count in delta.items():
            add(result, project(row), count)

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


class Site:
    """One document node at which deltas are joined."""

    __slots__ = ("is_value_sensitive", "states")

    def __init__(self, states: Iterable[SiteRelation], is_value_sensitive: bool) -> None:
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
