"""Law 11: the delta of an operator is the difference of its outputs, for random deltas.

A case is a relation over small values, with edges, an `or`, a `not` and tests, and a sequence of
deltas of its inputs. The reference joins all rows by nested loops, from the definitions. Checked
after every delta, for each operator of the relation and for the whole chain:

    delta        apply(port, delta) = output afterwards - output before
    look-up      lookup(columns, key) = the output rows with these values
    lineage      the input rows behind a row exist, and alone they yield it
    snapshot     a new operator, restored from a snapshot, has the same output and deltas
    partition    split by its partition key, the parts yield the whole output
    size         the rows counted are those of the tables
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from random import Random

from axlog.evaluate.gathered import Gathered
from axlog.evaluate.joins import MOST_ROWS, Bag, Row, add, add_all
from axlog.evaluate.work import Meters
from axlog.query.compile import Absence, Choice, Column, Edge, Relation, Test
from axlog.query.pattern import Axis, ValueConstraint, Variable
from axlog.views.counting.sites import SiteRelation
from axlog.views.operators.join import Join, JoinRules
from axlog.views.operators.operator import Operator

COLUMNS = ("$a", "$b", "$c", "$d")
VALUES = ("1", "2", "3")
_OPERATORS = ("=", "!=", "<", "<=", ">", ">=")

Binding = dict[Column, str | int]
Compared = tuple[Column, str, Column]


@dataclass(frozen=True, slots=True)
class OperatorsCase:
    """A relation, given by the columns of its inputs, and deltas of these inputs."""

    own: tuple[tuple[Column, str], ...]  # columns of the node itself, with their values
    edges: tuple[tuple[Column, ...], ...]
    alternatives: tuple[tuple[Column, ...], ...]  # of one `or`; empty: none
    body: tuple[Column, ...] | None  # of one `not`
    body_tests: tuple[Compared, ...]
    tests: tuple[Compared, ...]
    columns: tuple[Column, ...]  # of the output
    updates: tuple[tuple[tuple[int, Row, int], ...], ...]  # input, row and count, by update


def make_operators_case(random: Random) -> OperatorsCase:
    """A random case."""
    edges = [_some_columns(random, COLUMNS, 2) for _ in range(random.choice((1, 2, 2, 3)))]
    own = tuple((c, random.choice(VALUES)) for c in COLUMNS if random.random() < 0.1)
    bound = sorted({c for edge in edges for c in edge} | {c for c, _ in own})
    alternatives: tuple[tuple[Column, ...], ...] = ()
    if random.random() < 0.4:
        one = _some_columns(random, COLUMNS, 2)
        other = one if random.random() < 0.5 else _some_columns(random, bound, 2)
        common = [c for c in one if c in other]
        # An alternative may mention only columns that the join binds.
        usable = set(bound) | set(common)
        alternatives = tuple(tuple(c for c in each if c in usable) for each in (one, other))
        bound = sorted(usable)
    body: tuple[Column, ...] | None = None
    body_tests: tuple[Compared, ...] = ()
    if random.random() < 0.5:
        body = _some_columns(random, COLUMNS, 2)
        both = sorted({*bound, *body})
        if both and random.random() < 0.4:
            body_tests = (_compared(random, both),)
    tests = (
        tuple(_compared(random, bound) for _ in range(random.choice((0, 0, 1, 2)))) if bound else ()
    )
    columns = tuple(sorted(random.sample(bound, random.randint(0, len(bound)))))
    inputs = [*edges, *alternatives, *([] if body is None else [body])]
    there: list[Bag] = [{} for _ in inputs]
    updates = tuple(_update(random, inputs, there) for _ in range(random.randint(1, 5)))
    return OperatorsCase(own, tuple(edges), alternatives, body, body_tests, tests, columns, updates)


def _some_columns(random: Random, of: Sequence[Column], most: int) -> tuple[Column, ...]:
    return tuple(sorted(random.sample(list(of), min(len(of), random.randint(0, most)))))


def _compared(random: Random, columns: Sequence[Column]) -> Compared:
    return random.choice(columns), random.choice(_OPERATORS), random.choice(columns)


def _update(
    random: Random, inputs: Sequence[tuple[Column, ...]], there: list[Bag]
) -> tuple[tuple[int, Row, int], ...]:
    """Insertions, and deletions of rows that are there; one entry for each row of an input."""
    found: list[tuple[int, Row, int]] = []
    for number in sorted(random.sample(range(len(inputs)), random.randint(1, len(inputs)))):
        delta: Bag = {}
        for _ in range(random.randint(1, 3)):
            if there[number] and random.random() < 0.4:
                row = random.choice(list(there[number]))
                if row not in delta:
                    add(delta, row, -random.randint(1, there[number][row]))
            else:
                row = tuple(random.choice(VALUES) for _ in inputs[number])
                if delta.get(row, 0) >= 0:
                    add(delta, row, random.choice((1, 1, 2)))
        add_all(there[number], delta)
        found += [(number, row, count) for row, count in delta.items()]
    return tuple(found)


def smaller_operators(case: OperatorsCase) -> Iterator[OperatorsCase]:
    """The case without one update, or without one test."""
    for at in reversed(range(len(case.updates))):
        if at == len(case.updates) - 1:
            yield replace(case, updates=case.updates[:at])
    for at in range(len(case.tests)):
        yield replace(case, tests=case.tests[:at] + case.tests[at + 1 :])
    if case.body_tests:
        yield replace(case, body_tests=())


# The reference ------------------------------------------------------------------------------------


class Reference:
    """The outputs by their definitions, from the rows of all inputs."""

    def __init__(self, case: OperatorsCase) -> None:
        self.case = case
        count = len(case.edges) + len(case.alternatives) + (case.body is not None)
        self.inputs: list[Bag] = [{} for _ in range(count)]

    def joined(self) -> list[tuple[Binding, int]]:
        """The bindings of edges, `or` and own columns that pass the tests, with counts."""
        case, edges = self.case, len(self.case.edges)
        parts = [
            [(dict(zip(columns, row, strict=True)), count) for row, count in bag.items()]
            for columns, bag in zip(case.edges, self.inputs, strict=False)
        ]
        if case.alternatives:
            parts.append([(one, 1) for one in self._chosen(edges)])
        found: list[tuple[Binding, int]] = []
        for each in product(*parts):
            binding: Binding | None = {**dict(case.own)}
            total = 1
            for part, count in each:
                binding = _together(binding, part)
                total *= count
                if binding is None:
                    break
            if binding is not None and all(_holds(test, binding) for test in case.tests):
                found.append((binding, total))
        return found

    def _chosen(self, first: int) -> list[Binding]:
        """The distinct bindings of the columns that all alternatives have."""
        alternatives = self.case.alternatives
        common = [c for c in alternatives[0] if all(c in each for each in alternatives)]
        seen: dict[Row, Binding] = {}
        for columns, bag in zip(alternatives, self.inputs[first:], strict=False):
            for row in bag:
                values = dict(zip(columns, row, strict=True))
                one: Binding = {column: values[column] for column in common}
                seen[tuple(one.values())] = one
        return list(seen.values())

    def passes(self, binding: Binding) -> bool:
        """Whether an alternative agrees with a joined binding, and the body does not block it."""
        case, at = self.case, len(self.case.edges)
        if case.alternatives:
            rights = zip(case.alternatives, self.inputs[at:], strict=False)
            if not any(tuple(binding[c] for c in columns) in bag for columns, bag in rights):
                return False
        if case.body is None:
            return True
        for row in self.inputs[-1]:
            both = _together(binding, dict(zip(case.body, row, strict=True)))
            if both is not None and all(_holds(test, both) for test in case.body_tests):
                return False
        return True

    def rows(self) -> Bag:
        """The output of the chain."""
        found: Bag = {}
        for binding, count in self.joined():
            if self.passes(binding):
                add(found, tuple(binding[column] for column in self.case.columns), count)
        return found

    def join_rows(self, schema: Sequence[Column]) -> Bag:
        """The output of the join alone."""
        found: Bag = {}
        for binding, count in self.joined():
            add(found, tuple(binding[column] for column in schema), count)
        return found


def _together(one: Binding | None, other: Binding) -> Binding | None:
    if one is None or any(one.get(column, value) != value for column, value in other.items()):
        return None
    return {**one, **other}


def _holds(test: Compared, binding: Binding) -> bool:
    left, operator, right = int(binding[test[0]]), test[1], int(binding[test[2]])
    return {
        "=": left == right, "!=": left != right, "<": left < right, "<=": left <= right,
        ">": left > right, ">=": left >= right,
    }[operator]  # fmt: skip


# The check ----------------------------------------------------------------------------------------


class _Chain:
    """The operators of a case, and the bags that an update brings to them."""

    def __init__(self, case: OperatorsCase) -> None:
        self.leaves = [
            _leaf(f"p{n}", columns)
            for n, columns in enumerate(
                [*case.edges, *case.alternatives, *([] if case.body is None else [case.body])]
            )
        ]
        edges = [Edge(Axis.CHILD, leaf) for leaf in self.leaves[: len(case.edges)]]
        choices: tuple[Choice, ...] = ()
        if case.alternatives:
            at = len(case.edges)
            inside = tuple(
                _over(f"or{n}", leaf)
                for n, leaf in enumerate(self.leaves[at : at + len(case.alternatives)])
            )
            common = tuple(
                c for c in inside[0].columns if all(c in each.columns for each in inside)
            )
            is_correlated = any(each.columns != common for each in inside)
            choices = (Choice(inside, common, is_correlated),)
        absences: tuple[Absence, ...] = ()
        if case.body is not None:
            body = _over("not1", self.leaves[-1])
            absences = (Absence(body, tuple(map(_test, case.body_tests))),)
        own = tuple((column, "label") for column, _ in case.own)
        bound = tuple(
            sorted({c for e in case.edges for c in e} | {c for c, _ in case.own}
                   | {c for choice in choices for c in choice.columns})
        )  # fmt: skip
        self.relation = Relation(
            "q", None, own, tuple(edges), choices, absences, tuple(map(_test, case.tests)),
            case.columns, bound,
        )  # fmt: skip
        rules = JoinRules(dict, MOST_ROWS, Meters(), {})
        values = tuple(value for _, value in case.own)
        self.state = SiteRelation(self.relation, rules, values, Gathered(), {})

    def update(self, deltas: Sequence[Bag]) -> Bag:
        below = Gathered({leaf: bag for leaf, bag in zip(self.leaves, deltas, strict=True) if bag})
        return self.state.update(below, {})


def _leaf(name: str, columns: tuple[Column, ...]) -> Relation:
    return Relation(name, None, columns=columns, bound=columns)


def _over(name: str, leaf: Relation) -> Relation:
    edges = (Edge(Axis.CHILD, leaf),)
    return Relation(name, None, edges=edges, columns=leaf.columns, bound=leaf.columns)


def _test(compared: Compared) -> Test:
    left, operator, right = compared
    constraint = ValueConstraint(Variable(left[1:]), operator, Variable(right[1:]))
    return Test(constraint, (left, right))


def check_operators(case: OperatorsCase) -> None:
    """Check the law for one case."""
    chain, reference = _Chain(case), Reference(case)
    before = reference.rows()
    for update in case.updates:
        deltas = _deltas(update, len(reference.inputs))
        restored = _Chain(case)
        for operator, saved in zip(
            restored.state.operators(), [o.snapshot() for o in chain.state.operators()], strict=True
        ):
            operator.restore(saved)
        moved = chain.update(deltas)
        for bag, delta in zip(reference.inputs, deltas, strict=True):
            add_all(bag, delta)
        after = reference.rows()
        wanted: Bag = dict(after)
        add_all(wanted, before, -1)
        assert moved == wanted, f"delta {moved}, wanted {wanted}"
        assert restored.update(deltas) == wanted, "a restored chain has another delta"
        if not chain.state.rule.is_passing:
            assert chain.state.rows() == after, "the tables do not yield the output"
            _check_join(chain.state.join, reference)
            _check_last(chain, reference)
        for operator in chain.state.operators():
            rows = sum(len(table.rows()) for table in operator.tables())
            assert operator.size().rows == rows, "size does not count the rows"
        before = after
    _check_partition(case)


def _deltas(update: Sequence[tuple[int, Row, int]], count: int) -> list[Bag]:
    deltas: list[Bag] = [{} for _ in range(count)]
    for number, row, signed in update:
        add(deltas[number], row, signed)
    return deltas


def _check_join(join: Join, reference: Reference) -> None:
    output = reference.join_rows(join.schema)
    assert join.lookup((), ()) == output, "the join's output"
    _check_lookup(join, output)
    inputs = [reference.inputs[n] for n in range(len(reference.case.edges))]
    for row in list(output)[:3]:
        behind = join.lineage(row)
        alone = Reference(reference.case)
        for port, each in behind:
            if port < len(inputs):
                assert each in inputs[port], f"lineage names a row that does not exist: {each}"
                alone.inputs[port][each] = 1
        alone.inputs[len(inputs) :] = reference.inputs[len(inputs) :]
        assert row in alone.join_rows(join.schema), f"the lineage of {row} does not yield it"


def _check_last(chain: _Chain, reference: Reference) -> None:
    """The look-ups of the last guard, and of the `or`."""
    state = chain.state
    if state.guards:
        last = state.guards[-1]
        output: Bag = {}
        for binding, count in reference.joined():
            if reference.passes(binding):
                add(output, tuple(binding[column] for column in last.schema), count)
        assert last.lookup((), ()) == output, "the guards' output"
        _check_lookup(last, output)
        for row in list(output)[:3]:
            assert last.lineage(row)[0] == (0, row)
    for choice in state.choices:
        _check_lookup(choice, choice.rows())
        for row in choice.rows():
            assert choice.lineage(row), "a row without an input row"


def _check_lookup(operator: Operator, output: Bag) -> None:
    for row in list(output)[:3]:
        for size in (1, len(operator.schema)):
            columns = operator.schema[:size]
            key = row[:size]
            wanted = {each: count for each, count in output.items() if each[:size] == key}
            assert operator.lookup(tuple(columns), key) == wanted, f"look-up of {key}"


def _check_partition(case: OperatorsCase) -> None:
    """Split the inputs of the chain by its partition key: the outputs add up to the whole."""
    state = _Chain(case).state
    key = (state.guards[-1] if state.guards else state.join).partition_key
    inputs = [*case.edges, *case.alternatives, *([] if case.body is None else [case.body])]
    if key is None:
        return
    assert all(c in columns for columns in inputs for c in key), f"an input lacks the key {key}"
    split = [_Chain(case) for _ in VALUES]
    whole = _Chain(case)
    for update in case.updates:
        deltas = _deltas(update, len(inputs))
        total: Bag = {}
        for number, chain in enumerate(split):
            mine = [
                {row: count for row, count in delta.items() if _part(columns, key, row) == number}
                for columns, delta in zip(inputs, deltas, strict=True)
            ]
            add_all(total, chain.update(mine))
        assert total == whole.update(deltas), f"partitioned by {key}"


def _part(columns: tuple[Column, ...], key: tuple[Column, ...], row: Row) -> int:
    return sum(int(row[columns.index(column)]) for column in key) % len(VALUES)
