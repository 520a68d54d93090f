"""The rows of a query with steps, by definition: recomputed from the valuations of its pattern.

An aggregate ranges over the distinct tuples of nodes that the pattern binds (docs/meaning.md). So
the pattern is matched as it was written, without the `or`s around branches that bind nothing, and
valuations with the same bound nodes are one row of the first step. The steps are then computed one
after the other, on lists.

This module is the reference for tests: it shares the scalar functions with the operators, and
nothing else.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from decimal import Context, Decimal
from functools import cmp_to_key
from typing import Any, TypeAlias

from axlog.document.tree import Tree
from axlog.errors import ValueProblem
from axlog.evaluate.definition import Valuation, row_of, valuations
from axlog.evaluate.native_values import clock_amount, number, text
from axlog.evaluate.scalars import compile_scalar
from axlog.evaluate.sort_keys import exact_key, order_key
from axlog.query.aggregate_patterns import ANCHOR, START, binds, counted_once
from axlog.query.normalize import bound_names, bound_variables, normalise
from axlog.query.pattern import Branch, Kind, Or, Pattern, PatternNode, branches_of
from axlog.query.query import Query
from axlog.query.steps import (
    Absent,
    Aggregate,
    Cell,
    Chosen,
    Clock,
    Compute,
    Distinct,
    Filter,
    Group,
    Order,
    Positions,
    Scalar,
    Step,
    clock_of,
    collected_after,
    has_groups,
    positions_of,
)
from axlog.query.values import compare_numbers

Values: TypeAlias = tuple[Any, ...]
_EXACT = Context(prec=5000)
Rows: TypeAlias = "Counter[Values]"
"""Rows with counts."""


def rows_by_definition(tree: Tree, query: Query) -> Rows:
    """The rows of a query with their counts, as its columns show them.

    Hidden columns are left out. Rows that then look alike are counted together.
    """
    shown = len(query.row_key.columns)
    found: Rows = Counter()
    for row, count in kept_by_definition(tree, query):
        found[row[:shown]] += count
    return found


def ordered_by_definition(tree: Tree, query: Query) -> list[Values]:
    """The rows of a query with an order, in that order."""
    return [row[: len(query.row_key.columns)] for row, _ in kept_by_definition(tree, query)]


Match: TypeAlias = Callable[[Tree, Pattern], Iterable[Valuation]]
"""The valuations of a pattern; a caller with many queries can keep them."""


def kept_by_definition(
    tree: Tree, query: Query, match: Match = valuations
) -> list[tuple[Values, int]]:
    """The rows of a query with hidden columns, at the clock of the tree.

    A query about the clock is matched as it was written, `now` included.
    """
    key = query.row_key
    pattern, clock = key.pattern, clock_of(key.steps)
    if clock is not None:
        names = {node.name for node in clock.written.nodes()}  # others were made for maintainers
        outputs = (o for o in pattern.outputs if o.kind is Kind.VARIABLE or o.of in names)
        pattern = replace(clock.written, outputs=tuple(outputs))
        if any(isinstance(step, Distinct) for step in key.steps):
            pattern = counted_once(pattern)
    rows = base_rows(tree, pattern, key.steps, match)
    return apply_steps(rows, pattern, key.steps, tree.clock)


def base_rows(
    tree: Tree, pattern: Pattern, steps: Sequence[Step], match: Match = valuations
) -> list[tuple[Values, int]]:
    """The rows that the first step gets, with counts."""
    is_there = position_test(tree, steps)
    if not has_groups(tuple(steps)):
        counted: Rows = Counter(
            row_of(tree, pattern, each)[1] for each in match(tree, pattern) if is_there(each)
        )
        return list(counted.items())
    written = replace(pattern, branches=_written(pattern.branches))
    bound = _bound_nodes(written)
    branches = normalise(written).branches
    variables = sorted(bound_variables(branches))
    names = sorted(name for name in bound_names(branches) if not name.startswith((ANCHOR, START)))
    distinct: set[tuple[Any, Values]] = set()  # with collected values, which may differ
    for valuation in filter(is_there, match(tree, written)):
        # What only one alternative of an `or` binds tells no two tuples apart.
        identity = (
            tuple(valuation.nodes.get(number) for number in bound),
            tuple(valuation.bindings[variable] for variable in variables),
            tuple(valuation.names[name] for name in names),
        )
        distinct.add((identity, row_of(tree, written, valuation)[1]))
    return list(Counter(row for _, row in distinct).items())


def position_test(tree: Tree, steps: Sequence[Step]) -> Callable[[Valuation], bool]:
    """Whether the nodes of a valuation are at the positions that the query names."""
    step = positions_of(tuple(steps))
    return (lambda valuation: True) if step is None else _position_test(tree, step)


def _position_test(tree: Tree, step: Positions) -> Callable[[Valuation], bool]:
    chosen = [(_name(each.column), _chosen_nodes(tree, each)) for each in step.chosen]
    absent = [(_name(each.column), _blocked_nodes(tree, each)) for each in step.absent]
    return lambda valuation: (
        all(valuation.names[name] in nodes for name, nodes in chosen)
        and not any(valuation.names[name] in nodes for name, nodes in absent)
    )


def _name(column: str) -> str:
    return column.removesuffix(".id")


def _blocked_nodes(tree: Tree, absent: Absent) -> set[int]:
    """The nodes at which the inside of a `not` holds."""
    holds = _position_test(tree, absent.positions)
    stands = absent.pattern.outputs[0].of
    return {each.names[stands] for each in valuations(tree, absent.pattern) if holds(each)}


def _chosen_nodes(tree: Tree, chosen: Chosen) -> set[int]:
    """The nodes at some positions among the siblings of one parent."""
    (output,) = chosen.pattern.outputs
    found = {each.names[output.of] for each in valuations(tree, chosen.pattern)}
    siblings: dict[int, list[int]] = {}
    for node in sorted(found, key=tree.id):
        siblings.setdefault(tree.parent(node), []).append(node)
    for each in siblings.values():
        for start, stop in chosen.slices:
            each[:] = each[start:stop]
    return {node for each in siblings.values() for node in each}


def _written(branches: Iterable[Branch]) -> tuple[Branch, ...]:
    """Branches without the ors of one alternative, which only say that a branch counts once."""
    found: list[Branch] = []
    for branch in branches:
        if isinstance(branch, Or) and len(branch.alternatives) == 1:
            found += _written(branch.alternatives[0])
        elif isinstance(branch, PatternNode):
            found.append(replace(branch, branches=_written(branch.branches)))
        else:
            found.append(branch)
    return tuple(found)


def _bound_nodes(pattern: Pattern) -> list[int]:
    """The preorder numbers of the nodes that bind, outside `or`."""
    found: list[int] = []
    number = 0

    def visit(branch: Branch, is_outside: bool) -> None:
        nonlocal number
        if isinstance(branch, PatternNode):
            if is_outside and binds(branch):
                found.append(number)
            number += 1
        for below in branches_of(branch):
            visit(below, is_outside and isinstance(branch, PatternNode))

    for branch in pattern.branches:
        visit(branch, True)
    return found


# Steps --------------------------------------------------------------------------------------------


def apply_steps(
    rows: list[tuple[Values, int]], pattern: Pattern, steps: Sequence[Step], clock: int = 0
) -> list[tuple[Values, int]]:
    """The rows after some steps, from those of the pattern; `clock` is for tests of values."""
    columns = list(pattern.columns)
    times = {columns[at] for at in pattern.columns.times}
    lists = pattern.columns.collected
    for step in steps:
        match step:
            case Filter(condition=condition):
                holds = _scalar(condition, columns, times, lists)
                rows = [(row, count) for row, count in rows if holds(row) is True]
            case Clock():  # `now` in constraints is a matter of the pattern
                rows = _at_clock(rows, step, columns, times, clock)
            case Positions():  # the rows of the pattern are at their positions
                rows, columns = _without(step.dropped, rows, columns)
            case Compute(cells=cells):
                rows = _merged(_computed(rows, cells, columns, times, lists))
                columns = [cell.name for cell in cells]
                times = {cell.name for cell in cells if cell.type == "time"}
            case Group(keys=keys, aggregates=aggregates):
                rows = _grouped(rows, keys, aggregates, columns)
                times &= set(keys)
                columns = [*keys, *(each.name for each in aggregates)]
                times |= {each.name for each in aggregates if each.type == "time"}
            case Order():
                rows = _ordered(rows, step, columns)
            case Distinct():
                rows, columns = _without(step.dropped, rows, columns)
                rows = [(row, 1) for row in dict.fromkeys(row for row, _ in rows)]
        lists = collected_after(step, lists)
    return rows


def _without(
    dropped: Sequence[str], rows: list[tuple[Values, int]], columns: list[str]
) -> tuple[list[tuple[Values, int]], list[str]]:
    """Rows and columns without those that no further step reads."""
    shown = [at for at, name in enumerate(columns) if name not in dropped]
    kept = [(tuple([row[at] for at in shown]), count) for row, count in rows]
    return kept, [columns[at] for at in shown]


def _at_clock(
    rows: list[tuple[Values, int]],
    step: Clock,
    columns: Sequence[str],
    times: Iterable[str],
    clock: int,
) -> list[tuple[Values, int]]:
    """The rows for which the comparisons of the clock with values hold."""
    for test in step.tests:
        if test.value is None:
            continue
        value = _scalar(test.value, columns, times)
        is_duration = not test.factor + sum(each for each, _ in test.terms)
        kept = []
        for row, count in rows:
            amount = clock_amount(value(row), is_duration)
            left = test.factor * clock
            left += sum(each * row[columns.index(column)] for each, column in test.terms)
            if amount is not None and compare_numbers(
                left - test.bound,
                test.operator,
                amount,  # type: ignore[arg-type]
            ):
                kept.append((row, count))
        rows = kept
    return rows


def _scalar(
    expression: Scalar, columns: Sequence[str], times: Iterable[str], lists: Collection[str] = ()
) -> Callable[[Values], Any]:
    compute = compile_scalar(expression, columns, times=set(times), lists=lists)

    def value(row: Values) -> Any:
        try:
            return compute(row)
        except ValueProblem:
            return None

    return value


def _computed(
    rows: list[tuple[Values, int]],
    cells: Sequence[Cell],
    columns: Sequence[str],
    times: set[str],
    lists: Collection[str],
) -> list[tuple[Values, int]]:
    functions = [
        _scalar(cell.expression, columns, () if cell.type == "time" else times, lists)
        for cell in cells
    ]
    return [(tuple(compute(row) for compute in functions), count) for row, count in rows]


def _merged(rows: list[tuple[Values, int]]) -> list[tuple[Values, int]]:
    merged: Rows = Counter()
    for row, count in rows:
        merged[row] += count
    return list(merged.items())


def _grouped(
    rows: list[tuple[Values, int]],
    keys: Sequence[str],
    aggregates: Sequence[Aggregate],
    columns: Sequence[str],
) -> list[tuple[Values, int]]:
    positions = [columns.index(key) for key in keys]
    groups: dict[Values, list[Values]] = {} if keys else {(): []}
    for row, count in rows:
        groups.setdefault(tuple(row[at] for at in positions), []).extend([row] * count)
    return [
        ((*key, *(_aggregate(each, members, columns) for each in aggregates)), 1)
        for key, members in groups.items()
    ]


def _aggregate(aggregate: Aggregate, members: list[Values], columns: Sequence[str]) -> Any:
    function = aggregate.function
    if aggregate.argument is None:
        return len(members)
    at = columns.index(aggregate.argument)
    if aggregate.by is not None:
        return _chosen(function, members, at, columns.index(aggregate.by))
    values = [row[at] for row in members if row[at] is not None]
    if function == "count":
        return len(set(values)) if aggregate.is_distinct else len(values)
    if function in ("sum", "avg"):
        return _total(function, values)
    if function in ("min", "max"):
        numbers = sorted(map(as_number, values), key=_place)
        return (numbers[0] if function == "min" else numbers[-1]) if numbers else None
    ordered = sorted(values, key=_place)
    if function == "collect":
        return tuple(ordered)
    several = (each if type(each) is tuple else (each,) for each in ordered)
    return aggregate.separator.join(text(item) for items in several for item in items)


def _chosen(function: str, members: list[Values], at: int, by: int) -> Any:
    known = [row for row in members if row[by] is not None and row[at] is not None]
    if not known:
        return None
    choose = max if function == "latest" else min
    return choose(known, key=lambda row: (order_key(row[by]), _place(row[at])))[at]


def _total(function: str, values: list[Any]) -> Any:
    numbers = []
    for value in values:
        try:
            numbers.append(number(value))
        except ValueProblem:
            continue
    total = Decimal(0)
    for each in numbers:
        total = _EXACT.add(total, each)
    if function == "sum":
        return total
    if not numbers:
        return None
    digits = max(34, total.adjusted() + 1 + 18)  # exact where the quotient ends within so many
    rounded = Context(prec=digits, Emax=_EXACT.Emax, Emin=_EXACT.Emin)
    return rounded.divide(total, Decimal(len(numbers)))


def _place(value: Any) -> tuple[Any, ...]:
    return order_key(value), exact_key(value)


def as_number(value: Any) -> Any:
    """A text that is a number as that number; other values as they are."""
    try:
        return number(value) if isinstance(value, str) else value
    except ValueProblem:
        return value


def _ordered(
    rows: list[tuple[Values, int]], order: Order, columns: Sequence[str]
) -> list[tuple[Values, int]]:
    def compare(one: tuple[Values, int], other: tuple[Values, int]) -> int:
        for key in order.keys:
            at = columns.index(key.column)
            left, right = order_key(one[0][at]), order_key(other[0][at])
            if left != right:
                return -1 if (left < right) != key.is_descending else 1
        ties = [[exact_key(value) for value in each] for each in (one[0], other[0])]
        return -1 if ties[0] < ties[1] else 1

    found = sorted(rows, key=cmp_to_key(compare))
    return found if order.limit is None else found[: order.limit]
