"""Law 11 for the operators over rows: filter, map, group, top, latest, left join, range join.

A case is an operator with random parameters, and a sequence of deltas of its inputs. The reference
computes the output from all input rows, from the definition. Checked after every delta:

    delta        apply(port, delta) = output afterwards - output before
    one row      a group's `put` and `merge` of partial aggregates give the same delta
    look-up      lookup(columns, key) = the output rows with these values
    lineage      the input rows behind a row exist, and alone they yield it
    snapshot     a new operator, restored from a snapshot, has the same output and deltas
    partition    split by its partition key, the parts yield the whole output
    size         the rows counted are those of the state
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from random import Random
from zlib import crc32

from axlog.evaluate.joins import Bag, Row, add, add_all
from axlog.views.operators import ordered_index, range_join, top
from axlog.views.operators.feed import Stored
from axlog.views.operators.group import Group
from axlog.views.operators.operator import Operator
from lab.laws.relational_cases import SUBJECTS, Subject, make_row

PARTS = 3


@dataclass(frozen=True, slots=True)
class RelationalCase:
    """An operator by name, the seed of its parameters, and deltas of its inputs."""

    name: str
    parameters: int
    block: int  # entries of a block of ordered indexes
    updates: tuple[tuple[tuple[int, Row, int], ...], ...]  # input, row and count, by update

    def subject(self) -> Subject:
        return SUBJECTS[self.name](Random(self.parameters))


def make_relational_case(random: Random) -> RelationalCase:
    """A random case."""
    name = random.choice(sorted(SUBJECTS))
    parameters = random.getrandbits(32)
    subject = SUBJECTS[name](Random(parameters))
    there: list[Bag] = [{} for _ in subject.schemas]
    updates = tuple(_update(random, subject, there, n) for n in range(random.randint(1, 7)))
    return RelationalCase(name, parameters, random.choice((2, 3, 8, 512)), updates)


def _grows(subject: Subject, number: int) -> bool:
    """Whether the input only grows from an update on, or before it."""
    return subject.grows_from is not None and number >= subject.grows_from


def _update(
    random: Random, subject: Subject, there: list[Bag], at: int
) -> tuple[tuple[int, Row, int], ...]:
    """Insertions, and deletions of rows that are there; one entry for each row of an input."""
    found: list[tuple[int, Row, int]] = []
    size = random.choice((1, 1, 2, 4, 9))
    for number in random.sample(range(len(there)), random.randint(1, len(there))):
        delta: Bag = {}
        for _ in range(size):
            if there[number] and not _grows(subject, at) and random.random() < 0.45:
                row = random.choice(list(there[number]))
                if row not in delta:
                    add(delta, row, -random.randint(1, there[number][row]))
            else:
                row = make_row(random, subject.schemas[number])
                if delta.get(row, 0) >= 0:
                    add(delta, row, random.choice((1, 1, 2)))
        add_all(there[number], delta)
        found += [(number, row, count) for row, count in delta.items()]
    return tuple(found)


def smaller_relational(case: RelationalCase) -> Iterator[RelationalCase]:
    """The case without its last update, or with a smaller last update."""
    *rest, last = case.updates
    if rest:
        yield replace(case, updates=tuple(rest))
    for at in range(len(last)):
        if len(last) > 1:
            yield replace(case, updates=(*rest, last[:at] + last[at + 1 :]))


class _Plan:
    """The operator of a case over stored inputs."""

    def __init__(self, subject: Subject) -> None:
        self.inputs = [Stored(schema, {}) for schema in subject.schemas]
        self.operator = subject.build(self.inputs)

    def update(self, deltas: Sequence[tuple[int, Bag]]) -> Bag:
        total: Bag = {}
        for port, delta in deltas:
            add_all(total, self.operator.apply(port, self.inputs[port].apply(0, delta)))
        return total


def check_relational(case: RelationalCase) -> None:
    """Check the law for one case."""
    usual = ordered_index.BLOCK, range_join.NEAR, top.SPARE
    ordered_index.BLOCK, range_join.NEAR, top.SPARE = case.block, case.block - 2, case.block - 2
    try:
        _check(case)
    finally:
        ordered_index.BLOCK, range_join.NEAR, top.SPARE = usual


def _check(case: RelationalCase) -> None:
    subject = case.subject()
    plan, inputs = _Plan(subject), [Stored(schema, {}) for schema in subject.schemas]
    split = [_Plan(subject) for _ in range(PARTS)]
    beginning = subject.output([{} for _ in inputs])
    assert plan.operator.lookup((), ()) == beginning, "the output of no input"
    before = beginning
    for number, update in enumerate(case.updates):
        deltas = _deltas(update)
        if _grows(subject, number):
            for each in (plan, *split):
                each.operator.expect_insertions()
        restored = _restored(subject, plan)
        others = _others(subject, plan, deltas, number)
        moved = plan.update(deltas)
        for port, delta in deltas:
            inputs[port].apply(0, delta)
        bags = [each.kept.rows() for each in inputs]
        after = subject.output(bags)
        wanted = _difference(after, before)
        assert moved == wanted, f"delta {moved}, wanted {wanted}"
        assert restored.update(deltas) == wanted, "a restored operator has another delta"
        for what, other in others:
            assert other == wanted, f"{what}: {other}, wanted {wanted}"
        _check_lookups(plan.operator, after)
        _check_lineage(subject, plan.operator, bags, after)
        rows = sum(len(list(table)) for table in plan.operator.state())
        assert plan.operator.size().rows == rows, "size does not count the rows"
        _check_partition(subject, split, deltas, wanted)
        before = after


def _deltas(update: Sequence[tuple[int, Row, int]]) -> list[tuple[int, Bag]]:
    deltas: dict[int, Bag] = {}
    for number, row, signed in update:
        add(deltas.setdefault(number, {}), row, signed)
    return list(deltas.items())


def _difference(after: Bag, before: Bag) -> Bag:
    result = dict(after)
    add_all(result, before, -1)
    return result


def _restored(subject: Subject, plan: _Plan) -> _Plan:
    """The same plan, from snapshots."""
    made = _Plan(subject)
    for one, other in zip(made.inputs, plan.inputs, strict=True):
        one.restore(other.snapshot())
    made.operator.restore(plan.operator.snapshot())
    assert made.operator.lookup((), ()) == plan.operator.lookup((), ()), "restored output"
    return made


def _others(
    subject: Subject, plan: _Plan, deltas: Sequence[tuple[int, Bag]], number: int
) -> list[tuple[str, Bag]]:
    """The same delta by the other ways that a group has."""
    if not isinstance(plan.operator, Group):
        return []
    ((_, delta),) = deltas
    single, merged = _restored(subject, plan).operator, _restored(subject, plan).operator
    assert isinstance(single, Group)
    assert isinstance(merged, Group)
    by_row: Bag = {}
    for row, count in delta.items():
        one, other = single.put(row, count)
        if one is not other:
            if one is not None:
                add(by_row, one, -1)
            if other is not None:
                add(by_row, other, 1)
    found = [("by row", by_row)]
    if not _grows(subject, number):  # parts may take away what other parts bring
        parts = [{row: count for at, (row, count) in enumerate(delta.items()) if at % 2 == side}
                 for side in (0, 1)]  # fmt: skip
        by_part: Bag = {}
        for part in parts:
            add_all(by_part, merged.merge(plan.operator.partial(part)))
        found.append(("by part", by_part))
        whole = _restored(subject, plan).operator
        assert isinstance(whole, Group)
        found.append(("partial", whole.merge(plan.operator.partial(delta))))
    return found


def _check_lookups(operator: Operator, output: Bag) -> None:
    assert operator.lookup((), ()) == output, "the output"
    schema = operator.schema
    for row in list(output)[:3]:
        for columns in (schema[:1], schema[1:], schema, schema[::-1][:2]):
            places = [schema.index(column) for column in columns]
            key = tuple(row[at] for at in places)
            wanted = {
                each: count
                for each, count in output.items()
                if tuple(each[at] for at in places) == key
            }
            assert operator.lookup(columns, key) == wanted, f"look-up of {columns} {key}"


def _check_lineage(subject: Subject, operator: Operator, bags: list[Bag], output: Bag) -> None:
    for row in list(output)[:3]:
        behind: list[Bag] = [{} for _ in bags]
        for port, each in operator.lineage(row):
            assert each in bags[port], f"lineage names a row that does not exist: {each}"
            behind[port][each] = bags[port][each]
        if subject.is_local:
            assert row in subject.output(behind), f"the lineage of {row} does not yield it"
        else:
            assert any(behind), f"{row} has no lineage"


def _check_partition(
    subject: Subject, split: list[_Plan], deltas: list[tuple[int, Bag]], wanted: Bag
) -> None:
    """Split the inputs by the partition key: the outputs of the parts add up to the whole."""
    key = split[0].operator.partition_key
    if key is None:
        return
    for schema in subject.schemas:
        assert all(column in schema for column in key), f"an input lacks the key {key}"
    total: Bag = {}
    for number, plan in enumerate(split):
        mine = [(port, {row: count for row, count in delta.items()
                        if _part(subject.schemas[port], key, row) == number})
                for port, delta in deltas]  # fmt: skip
        add_all(total, plan.update([(port, delta) for port, delta in mine if delta]))
    assert total == wanted, f"partitioned by {key}: {total}, wanted {wanted}"


def _part(schema: Sequence[str], key: Sequence[str], row: Row) -> int:
    """The part of a row; equal cells of any type have equal hashes."""
    cells = [row[schema.index(column)] for column in key]
    return sum(crc32(c.encode()) if isinstance(c, str) else hash(c) for c in cells) % PARTS
