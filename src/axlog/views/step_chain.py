"""The chain of operators that steps are kept by: between the rows of a pattern and those of a view.

    rows of the pattern -> Filter, Map, Group, Top, Distinct -> rows of the view

`StepChain.apply` passes a signed bag of pattern rows through the operators and returns the signed
bag of the view's rows. A value that an expression cannot compute for a row is None, and counted
(`problems`); with `on_value_error="reject"` it raises instead. An order without a limit drops no
row, so it needs no operator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from functools import lru_cache
from operator import itemgetter
from typing import Any, Literal, NamedTuple, TypeAlias

from axlog.errors import ValueProblem
from axlog.evaluate.joins import Bag, Row, picker
from axlog.evaluate.native_values import number, text
from axlog.evaluate.scalars import compile_scalar
from axlog.evaluate.sort_keys import exact_key, exact_row_key, order_key
from axlog.query.columns import Columns
from axlog.query.steps import (
    Aggregate,
    Cell,
    Compute,
    Distinct,
    Filter,
    Group,
    Order,
    Scalar,
    Step,
    columns_after,
)
from axlog.query.syntax_tree import Reference
from axlog.views.operators import aggregates as kinds
from axlog.views.operators.distinct import Distinct as DistinctOperator
from axlog.views.operators.feed import Feed
from axlog.views.operators.filter import Filter as FilterOperator
from axlog.views.operators.group import Group as GroupOperator
from axlog.views.operators.map import Map
from axlog.views.operators.operator import Operator, Snapshot, Source
from axlog.views.operators.order import Descending
from axlog.views.operators.top import Top

OnValueError: TypeAlias = Literal["null", "reject"]
Compute_: TypeAlias = Callable[[Row], Any]
_CACHED = 40  # characters, as in `query/values.py`
_NO_PASS = frozenset({False, None})


class StepChain:
    """The operators of a query's steps, with their state."""

    def __init__(
        self,
        steps: Sequence[Step],
        columns: Columns,
        text: str = "",
        on_value_error: OnValueError = "null",
        find: Callable[[tuple[str, ...], Row], Bag] | None = None,
    ) -> None:
        """`columns`: of the pattern's rows; `find`: looks up such rows, for lineage."""
        self.problems = 0
        self._text = text
        self.rejects = on_value_error == "reject"
        self._checked: list[Compute_] = []  # what a group computes of its rows
        self.operators: list[Operator] = []
        source: Source = Feed(columns, find or _nothing)
        types = dict(zip(columns, columns.types, strict=True))
        for step in steps:
            times = [name for name, type_ in types.items() if type_ == "time"]
            made = self._operators(step, source, times)
            for operator in made:
                self.operators.append(operator)
                source = operator
            types = columns_after((step,), iter(types.items()))
        self.schema = source.schema

    # Deltas ---------------------------------------------------------------------------------------

    def apply(self, delta: Bag) -> Bag:
        """Pass the delta of the pattern's rows; return the delta of the view's rows.

        If a value is rejected, it raises and changes nothing.
        """
        if self.rejects:
            return self._apply_whole(delta)
        for operator in self.operators:
            if not delta:
                return delta
            delta = operator.apply(0, delta)
        return delta

    def _apply_whole(self, delta: Bag) -> Bag:
        applied: list[tuple[Operator, Bag]] = []
        try:
            for operator in self.operators:
                if isinstance(operator, GroupOperator):  # it must not fail halfway
                    for row in delta:
                        for read in self._checked:
                            read(row)
                given, delta = delta, operator.apply(0, delta)
                applied.append((operator, given))
        except ValueProblem:
            for operator, given in reversed(applied):
                operator.apply(0, negated(given))
            raise
        return delta

    def first(self) -> Bag:
        """The rows without any input: one, for aggregates without keys."""
        delta: Bag = {}
        for operator in self.operators:
            if isinstance(operator, GroupOperator) and not operator.keys:
                delta = operator.lookup((), ())
            elif delta:
                delta = operator.apply(0, delta)
        return delta

    def group_path(self) -> GroupPath | None:
        """The same for one row, without bags; None if other operators than one group have state."""
        groups = [each for each in self.operators if isinstance(each, GroupOperator)]
        if self.rejects or len(groups) != 1:
            return None
        at = self.operators.index(groups[0])
        before, after = _function(self.operators[:at]), _function(self.operators[at + 1 :])
        if before is None or after is None:
            return None
        return GroupPath(before, groups[0].put, after)

    # State ----------------------------------------------------------------------------------------

    def snapshot(self) -> tuple[Snapshot, ...]:
        """The state of the operators that have some."""
        return tuple(each.snapshot() for each in self.operators if each.has_state)

    def restore(self, saved: Sequence[Snapshot]) -> None:
        """Replace the state of the operators."""
        kept = [each for each in self.operators if each.has_state]
        for operator, each in zip(kept, saved, strict=True):
            operator.restore(each)

    def lineage(self, row: Row) -> list[Row]:
        """The rows of the pattern behind a row of the view."""
        rows = [row]
        for operator in reversed(self.operators):
            rows = [below for each in rows for _, below in operator.lineage(each)]
        return list(dict.fromkeys(rows))

    def lines(self) -> Iterator[str]:
        """The operators as `explain` prints them."""
        for operator in self.operators:
            cost = operator.cost(0)
            key = operator.partition_key
            by = "not split" if key is None else f"split by {', '.join(key)}"
            rows = operator.size().rows if operator.has_state else 0
            yield (
                f"{operator.name} ({', '.join(operator.schema)}): {rows} rows, {by};"
                f" per row {cost.probes} look-ups, {cost.scans} scans"
            )

    # Operators ------------------------------------------------------------------------------------

    def _operators(self, step: Step, below: Source, times: Sequence[str]) -> list[Operator]:
        match step:
            case Filter(condition=condition):
                holds = self._scalar(condition, below.schema, times)
                return [FilterOperator(below, lambda row: holds(row) not in _NO_PASS)]
            case Compute(cells=cells):
                return [self._map(cells, below, times)]
            case Group():
                return self._group(step, below)
            case Distinct():
                schema = below.schema
                places = tuple(range(len(schema)))
                return [DistinctOperator(schema, [schema], [places], [{}], dict)]
            case Order(limit=None):
                return []
            case Order(limit=limit):
                order = sort_order(step, below.schema)
                return [Top(below, order, 0, limit, tie=exact_row_key)]

    def _map(self, cells: Sequence[Cell], below: Source, times: Sequence[str]) -> Operator:
        given = below.schema
        names = [cell.name for cell in cells]
        copied = [
            cell.name for cell in cells
            if isinstance(cell.expression, Reference) and cell.expression.name == cell.name
        ]  # fmt: skip
        if all(_is_copy(cell, times) for cell in cells):
            positions = [given.index(cell.expression.name) for cell in cells]  # type: ignore[union-attr]
            return Map(below, names, picker(positions), copied)
        functions = [
            self._scalar(cell.expression, given, () if cell.type == "time" else times)
            for cell in cells
        ]
        return Map(below, names, lambda row: tuple([each(row) for each in functions]), copied)

    def _scalar(self, expression: Scalar, columns: Sequence[str], times: Sequence[str]) -> Compute_:
        function = compile_scalar(expression, columns, text=self._text, times=times)
        if isinstance(expression, Reference) and expression.name not in times:
            return function
        return self._guarded(function)

    def _guarded(self, function: Compute_) -> Compute_:
        """A function whose errors give None, or are raised to the update."""
        if self.rejects:
            return function

        def value(row: Row) -> Any:
            try:
                return function(row)
            except ValueProblem:
                self.problems += 1
                return None

        return value

    def _group(self, step: Group, below: Source) -> list[Operator]:
        made = [(each.name, self._aggregate(each, below.schema)) for each in step.aggregates]
        group = GroupOperator(below, step.keys, made, always=not step.keys)
        chosen = [len(step.keys) + at for at, each in enumerate(step.aggregates) if each.by]
        if not chosen:
            return [group]
        picked = frozenset(chosen)

        def shown(row: tuple[Any, ...]) -> Row:
            cells = enumerate(row)
            return tuple([value[1] if at in picked and value else value for at, value in cells])

        return [group, Map(group, group.schema, shown, step.keys)]

    def _checked_addend(self, read: Compute_) -> Compute_:
        addend = self._guarded(_addend(read))
        self._checked.append(addend)
        return addend

    def _aggregate(self, step: Aggregate, columns: Sequence[str]) -> kinds.Aggregate:
        if step.argument is None:
            return kinds.Count()
        read = _reader(columns.index(step.argument))
        if step.by is not None:
            both = _pair(read, _reader(columns.index(step.by)))
            kind = kinds.Max if step.function == "latest" else kinds.Min
            return kind(both, _choice_key)
        match step.function:
            case "count":
                return kinds.CountDistinct(read) if step.is_distinct else kinds.Count(read)
            case "sum":
                return kinds.Sum(self._checked_addend(read))
            case "avg":
                return kinds.Average(self._checked_addend(read))
            case "min":
                return kinds.Min(_number_first(read), _extreme_key)
            case "max":
                return kinds.Max(_number_first(read), _extreme_key)
            case "collect":
                return kinds.Collect(read, read, _extreme_key)
        return kinds.StringJoin(_texts(read), step.separator, read, _extreme_key)


class GroupPath(NamedTuple):
    """A chain with one group, for one row at a time."""

    before: Callable[[Row], Row | None]
    """The row that the group gets; None: it is dropped."""
    put: Callable[[Row, int], tuple[Row | None, Row | None]]
    """Adds a row to its group; the row of the group before and after it."""
    after: Callable[[Row], Row | None]
    """The row that the view shows of a group; None: none."""


def _function(operators: Sequence[Operator]) -> Callable[[Row], Row | None] | None:
    """Maps and filters as one function; None if there are other operators."""
    parts: list[tuple[bool, Callable[[Row], Any]]] = []
    for operator in operators:
        if isinstance(operator, Map):
            parts.append((False, operator.function))
        elif isinstance(operator, FilterOperator):
            parts.append((True, operator.passes))
        else:
            return None
    if len(parts) == 1 and not parts[0][0]:
        return parts[0][1]

    def apply(row: Row) -> Row | None:
        for is_filter, function in parts:
            if not is_filter:
                row = function(row)
            elif not function(row):
                return None
        return row

    return apply


def negated(delta: Bag) -> Bag:
    """The delta that takes another one back."""
    return {row: -count for row, count in delta.items()}


def sort_order(step: Order, columns: Sequence[str]) -> Callable[[Row], tuple[Any, ...]]:
    """The sort key of rows with these columns."""
    parts = [(columns.index(key.column), key.is_descending) for key in step.keys]

    def order(row: Row) -> tuple[Any, ...]:
        return tuple(
            [
                Descending(order_key(row[at])) if is_descending else order_key(row[at])
                for at, is_descending in parts
            ]
        )

    return order


def _nothing(columns: tuple[str, ...], key: Row) -> Bag:
    return {}


def _is_copy(cell: Cell, times: Sequence[str]) -> bool:
    if not isinstance(cell.expression, Reference):
        return False
    return cell.type == "time" or cell.expression.name not in times


def _reader(at: int) -> Compute_:
    return itemgetter(at)


def _pair(value: Compute_, by: Compute_) -> Compute_:
    """The value by which a row is chosen, and the value that it shows; None without one of them."""

    def both(row: Row) -> tuple[Any, Any] | None:
        found, place = value(row), by(row)
        return None if found is None or place is None else (place, found)

    return both


def _choice_key(pair: tuple[Any, Any]) -> tuple[Any, ...]:
    place, found = pair
    return order_key(place), order_key(found), exact_key(found), exact_key(place)


def _extreme_key(value: Any) -> tuple[Any, ...]:
    return order_key(value), exact_key(value)


def _addend(read: Compute_) -> Compute_:
    """The value of a row as a number, to be added."""

    def value(row: Row) -> Any:
        found = read(row)
        if type(found) is str and len(found) <= _CACHED:
            return _number_of_text(found)
        return found if found is None or type(found) is Decimal else number(found)

    return value


@lru_cache(maxsize=65536)
def _number_of_text(text: str) -> Decimal:
    return number(text)


def _number_first(read: Compute_) -> Compute_:
    """The value of a row, as a number if it is one."""

    def value(row: Row) -> Any:
        found = read(row)
        if isinstance(found, str):
            key = order_key(found)[1]
            return key if type(key) is Decimal else found
        return found

    return value


def _texts(read: Compute_) -> Compute_:
    def value(row: Row) -> Any:
        found = read(row)
        return None if found is None else text(found)

    return value
