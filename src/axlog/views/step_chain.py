"""The chain of operators that steps are kept by: between the rows of a pattern and those of a view.

    rows of the pattern -> Filter, ClockFilter, Map, Group, Top, Distinct -> rows of the view

`StepChain.apply` passes a signed bag of pattern rows through the operators and returns the signed
bag of the view's rows. A value that an expression cannot compute for a row is None, and counted
(`problems`); with `on_value_error="reject"` it raises instead. An order without a limit drops no
row, so it needs no operator.

A `not` about the clock or with positions is an anti join. The rows that block come from patterns of
their own (`sides`), each through a chain of its own. The inputs of a chain are the rows of its
pattern, then those of its sides, each followed by the sides inside it (`steps.side_patterns`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal, NamedTuple, TypeAlias

from axlog.errors import ValueProblem
from axlog.evaluate.joins import Bag, Row, add_all, picker
from axlog.evaluate.scalars import compile_scalar
from axlog.evaluate.sort_keys import exact_row_key, order_key
from axlog.query.columns import Columns
from axlog.query.row_key import RowKey
from axlog.query.steps import (
    Aggregate,
    Cell,
    Clock,
    Compute,
    Distinct,
    Filter,
    Group,
    Order,
    Positions,
    Scalar,
    Step,
    Unless,
    collected_after,
    columns_after,
)
from axlog.query.syntax_tree import Reference
from axlog.views.operators import aggregates as kinds
from axlog.views.operators.anti_join import RIGHT, AntiJoin
from axlog.views.operators.clock_filter import ClockFilter
from axlog.views.operators.distinct import Distinct as DistinctOperator
from axlog.views.operators.feed import Feed, Stored
from axlog.views.operators.filter import Filter as FilterOperator
from axlog.views.operators.group import Group as GroupOperator
from axlog.views.operators.map import Map
from axlog.views.operators.operator import Operator, Snapshot, Source
from axlog.views.operators.order import Descending
from axlog.views.operators.sets import difference, intersection
from axlog.views.operators.top import Top
from axlog.views.step_positions import chosen_operators
from axlog.views.step_values import (
    Compute_,
    addend,
    choice_key,
    extreme_key,
    number_first,
    pair,
    reader,
    row_spans,
    texts,
)

OnValueError: TypeAlias = Literal["null", "reject"]
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
        clock: int = 0,
    ) -> None:
        """`columns`: of the pattern's rows; `find`: looks up such rows, for lineage."""
        self.problems = 0
        self._steps = tuple(steps)
        self._clock = clock
        self.sides: list[Side] = []
        self._text = text
        self.rejects = on_value_error == "reject"
        self._checked: list[Compute_] = []  # what a group computes of its rows
        self.operators: list[Operator] = []
        source: Source = Feed(columns, find or _nothing)
        types = dict(zip(columns, columns.types, strict=True))
        self._lists = columns.collected
        for step in steps:
            times = [name for name, type_ in types.items() if type_ == "time"]
            made = self._operators(step, source, times)
            for operator in made:
                self.operators.append(operator)
                source = operator
            types = columns_after((step,), iter(types.items()))
            self._lists = collected_after(step, self._lists)
        self.schema = source.schema

    # Deltas ---------------------------------------------------------------------------------------

    def apply(self, delta: Bag, others: Sequence[Bag] = ()) -> Bag:
        """Pass the delta of the pattern's rows; return the delta of the view's rows.

        `others`: the deltas of the patterns that block rows. If a value is rejected, it raises and
        changes nothing.
        """
        if self.rejects:
            return self._apply_whole(delta, others)
        if not others:
            return self._pass(delta)
        found: Bag = {}
        for side, moved in self._sides_moved(others):
            add_all(found, self._pass(moved, side.at, RIGHT))
        add_all(found, self._pass(delta))
        return found

    def _sides_moved(self, others: Sequence[Bag]) -> Iterator[tuple[Side, Bag]]:
        """The sides with their deltas. They come first: rows then meet the rows that block them."""
        at = 0
        for side in self.sides if others else ():
            end = at + 1 + side.chain.width
            yield side, side.chain.apply(others[at], others[at + 1 : end])
            at = end

    def _pass(self, delta: Bag, at: int = 0, port: int = 0) -> Bag:
        """Pass a delta through the operators from one of them on."""
        for operator in self.operators[at:]:
            if not delta:
                return delta
            delta, port = operator.apply(port, delta), 0
        return delta

    @property
    def width(self) -> int:
        """The number of patterns that block rows."""
        return sum(1 + side.chain.width for side in self.sides)

    # Time -----------------------------------------------------------------------------------------

    @property
    def clock(self) -> int:
        """The clock that the rows are those of."""
        return self._clock

    @clock.setter
    def clock(self, clock: int) -> None:
        """Set the clock of a chain without rows."""
        self._clock = clock
        for each in self._all_filters():
            each.clock = clock

    def _all_filters(self) -> Iterator[ClockFilter]:
        yield from (each for each in self.operators if isinstance(each, ClockFilter))
        for side in self.sides:
            yield from side.chain._all_filters()

    def next_moment(self) -> int | None:
        """The first moment after the clock at which time alone may change rows; None: never."""
        moments = (each.next_moment() for each in self._all_filters())
        return min((each for each in moments if each is not None), default=None)

    def advance(self, clock: int) -> Iterator[tuple[int, Bag]]:
        """The deltas of the view's rows that the passing of time causes, in order of time."""
        while (moment := self.next_moment()) is not None and moment <= clock:
            delta = self._advance_to(moment)
            if delta:
                yield moment, delta
        self._advance_to(clock)

    def _advance_to(self, clock: int) -> Bag:
        """The delta of one moment, before which time changes nothing."""
        found: Bag = {}
        for side in self.sides:
            add_all(found, self._pass(side.chain._advance_to(clock), side.at, RIGHT))
        for at, operator in enumerate(self.operators):
            for _, delta in operator.advance(clock):
                add_all(found, self._pass(delta, at + 1))
        self._clock = max(clock, self._clock)
        return found

    def _apply_whole(self, delta: Bag, others: Sequence[Bag]) -> Bag:
        applied: list[tuple[Operator, int, Bag]] = []
        found: Bag = {}
        try:
            for side, moved in self._sides_moved(others):
                add_all(found, self._pass_checked(moved, side.at, RIGHT, applied))
            add_all(found, self._pass_checked(delta, 0, 0, applied))
        except ValueProblem:
            for operator, port, given in reversed(applied):
                operator.apply(port, negated(given))
            for _ in self._sides_moved([negated(each) for each in others]):
                pass
            raise
        return found

    def _pass_checked(
        self, delta: Bag, at: int, port: int, applied: list[tuple[Operator, int, Bag]]
    ) -> Bag:
        """Pass a delta from an operator on, and note what operators with state got."""
        for operator in self.operators[at:]:
            if isinstance(operator, GroupOperator):  # it must not fail halfway
                for row in delta:
                    for read in self._checked:
                        read(row)
            given, delta = delta, operator.apply(port, delta)
            if not port or isinstance(operator, AntiJoin):  # a semi join keeps its right side apart
                applied.append((operator, port, given))
            port = 0
        return delta

    def expect_insertions(self) -> None:
        """Prepare for input that only grows: drop rows that cannot be shown any more.

        A chain that rejects values keeps all rows: it takes back what it has applied.
        """
        for operator in () if self.rejects or self.sides else self.operators:
            if not operator.expect_insertions():
                return

    def first(self) -> Bag:
        """The rows without any input: one, for aggregates without keys."""
        delta: Bag = {}
        for operator in self.operators:
            if isinstance(operator, GroupOperator) and not operator.keys:
                delta = operator.lookup((), ())
            elif delta:
                delta = operator.apply(0, delta)
        return delta

    def group_path(self, key: RowKey) -> GroupPath | None:
        """The same for one row, without bags; None if other operators than one group have state.

        `key`: of the view's rows, one for each group.
        """
        groups = [each for each in self.operators if isinstance(each, GroupOperator)]
        if self.rejects or len(groups) != 1 or key.hides:
            return None
        at = self.operators.index(groups[0])
        before, after = self.operators[:at], self.operators[at + 1 :]
        if len(key.positions) != len(groups[0].keys) or not all(map(_is_plain, before + after)):
            return None
        return GroupPath(_function(before), groups[0], _function(after))

    def steps_to_group(self) -> tuple[Step, ...] | None:
        """The steps up to the first group, if they have no other state; None: there are none."""
        at = next((n for n, step in enumerate(self._steps) if isinstance(step, Group)), None)
        groups = [n for n, each in enumerate(self.operators) if isinstance(each, GroupOperator)]
        if at is None or not groups or self.rejects or self.sides or any(self._all_filters()):
            return None
        return self._steps[: at + 1] if all(map(_is_plain, self.operators[: groups[0]])) else None

    def after_group(self, delta: Bag) -> Bag:
        """Pass a delta of the first group's rows through the operators behind it."""
        at = next(n for n, each in enumerate(self.operators) if isinstance(each, GroupOperator))
        return self._pass(delta, at + 1)

    def replace_group(self, replace_: Callable[[GroupOperator], GroupOperator]) -> None:
        """Replace the first group by another with the same state."""
        for at, operator in enumerate(self.operators):
            if isinstance(operator, GroupOperator):
                self.operators[at] = replace_(operator)
                return

    # State ----------------------------------------------------------------------------------------

    def snapshot(self) -> tuple[Snapshot, ...]:
        """The state of the operators that have some."""
        return tuple(each.snapshot() for each in self._with_state())

    def restore(self, saved: Sequence[Snapshot]) -> None:
        """Replace the state of the operators."""
        for operator, each in zip(self._with_state(), saved, strict=True):
            operator.restore(each)
        self._clock = next((each.clock for each in self._all_filters()), self._clock)

    def _with_state(self) -> Iterator[Operator]:
        yield from (each for each in self.operators if each.has_state)
        for side in self.sides:
            yield from side.chain._with_state()

    def lineage(self, row: Row) -> list[Row]:
        """The rows of the pattern behind a row of the view."""
        rows = [row]
        for operator in reversed(self.operators):
            rows = [below for each in rows for port, below in operator.lineage(each) if not port]
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
        for side in self.sides:
            yield from (f"unless: {line}" for line in side.chain.lines())

    # Operators ------------------------------------------------------------------------------------

    def _operators(self, step: Step, below: Source, times: Sequence[str]) -> list[Operator]:
        match step:
            case Filter(condition=condition):
                holds = self._scalar(condition, below.schema, times)
                return [FilterOperator(below, lambda row: holds(row) not in _NO_PASS)]
            case Compute(cells=cells):
                return [self._map(cells, below, times)]
            case Clock():
                return self._by_clock(step, below, times)
            case Positions():
                return self._by_positions(step, below)
            case Group():
                return self._group(step, below)
            case Distinct(dropped=dropped):
                made = _without(dropped, below)
                schema = made[-1].schema if made else below.schema
                places = tuple(range(len(schema)))
                return [*made, DistinctOperator(schema, [schema], [places], [{}], dict)]
            case Order(limit=None):
                return []
            case Order(limit=limit):
                order = sort_order(step, below.schema)
                return [Top(below, order, 0, limit, tie=exact_row_key)]

    def _by_clock(self, step: Clock, below: Source, times: Sequence[str]) -> list[Operator]:
        """The clock filter of the tests, an anti join for each `not`, and a projection."""
        made: list[Operator] = []
        if step.tests:
            scalar = partial(self._scalar, columns=below.schema, times=times)
            spans = row_spans(step.tests, below.schema, scalar)
            made.append(ClockFilter(below, spans, self._clock))
        if step.unless:
            schema = made[-1].schema if made else below.schema
            made.append(Stored(schema, {}, [each.columns for each in step.unless]))
        for each in step.unless:
            made.append(difference(made[-1], each.columns))
            self.sides.append(Side(len(self.operators) + len(made) - 1, self._side(each)))
        return [*made, *_without(step.dropped, made[-1] if made else below)]

    def _by_positions(self, step: Positions, below: Source) -> list[Operator]:
        """A semi join for each position, an anti join for each `not` with some, a projection."""
        made: list[Operator] = [Stored(below.schema, {}, [(name,) for name in step.columns])]
        for each in step.chosen:
            joined = intersection(made[-1], (each.column,))
            made.append(joined)
            chain = StepChain((), each.pattern.columns)
            chain.operators = chosen_operators(each, joined)
            self.sides.append(Side(len(self.operators) + len(made) - 1, chain))
        for absent in step.absent:
            made.append(difference(made[-1], (absent.column,)))
            pattern = absent.pattern
            shown = Compute((Cell(absent.column, Reference(pattern.columns[0], 0), "id"),))
            chain = StepChain((absent.positions, shown), pattern.columns, self._text)
            self.sides.append(Side(len(self.operators) + len(made) - 1, chain))
        return [*made, *_without(step.dropped, made[-1])]

    def _side(self, unless: Unless) -> StepChain:
        """The chain of the rows that block."""
        cells = [Cell(name, Reference(name, 0), "any") for name in unless.columns]
        pattern = unless.pattern
        types = dict(zip(pattern.columns, pattern.columns.types, strict=True))
        cells = [replace(cell, type=types[cell.name]) for cell in cells]
        steps = (unless.clock, Compute(tuple(cells)))
        return StepChain(steps, pattern.columns, self._text, clock=self._clock)

    def _map(self, cells: Sequence[Cell], below: Source, times: Sequence[str]) -> Operator:
        given = below.schema
        names = [cell.name for cell in cells]
        copied = [
            cell.name for cell in cells
            if isinstance(cell.expression, Reference) and cell.expression.name == cell.name
        ]  # fmt: skip
        if all(_is_copy(cell, times) for cell in cells):
            positions = [given.index(cell.expression.name) for cell in cells]  # type: ignore[union-attr]
            renames = positions == list(range(len(given)))
            return Map(below, names, picker(positions), copied, renames=renames)
        functions = [
            self._scalar(cell.expression, given, () if cell.type == "time" else times)
            for cell in cells
        ]
        return Map(below, names, lambda row: tuple([each(row) for each in functions]), copied)

    def _scalar(self, expression: Scalar, columns: Sequence[str], times: Sequence[str]) -> Compute_:
        function = compile_scalar(
            expression, columns, text=self._text, times=times, lists=self._lists
        )
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
        checked = self._guarded(addend(read))
        self._checked.append(checked)
        return checked

    def _aggregate(self, step: Aggregate, columns: Sequence[str]) -> kinds.Aggregate:
        if step.argument is None:
            return kinds.Count()
        read = reader(columns.index(step.argument))
        if step.by is not None:
            both = pair(read, reader(columns.index(step.by)))
            kind = kinds.Max if step.function == "latest" else kinds.Min
            return kind(both, choice_key)
        match step.function:
            case "count":
                return kinds.CountDistinct(read) if step.is_distinct else kinds.Count(read)
            case "sum":
                at = None if self.rejects else columns.index(step.argument)
                return kinds.Sum(self._checked_addend(read), at)
            case "avg":
                return kinds.Average(self._checked_addend(read))
            case "min":
                return kinds.Min(number_first(read), extreme_key)
            case "max":
                return kinds.Max(number_first(read), extreme_key)
            case "collect":
                return kinds.Collect(read, read, extreme_key)
        return kinds.StringJoin(texts(read, step.separator), step.separator, read, extreme_key)


class Side(NamedTuple):
    """The chain of rows that block rows, and the place of the anti join among the operators."""

    at: int
    chain: StepChain


class GroupPath(NamedTuple):
    """A chain with one group, for one row at a time."""

    before: Callable[[Row], Row | None] | None
    """The row that the group gets, None if it is dropped; None: the row as it is."""
    group: GroupOperator
    """Its `put` adds a row; returns the row of the group before and after it."""
    after: Callable[[Row], Row | None] | None
    """The row that the view shows of a group, None if it shows none; None: that of the group."""


def _is_plain(operator: Operator) -> bool:
    return isinstance(operator, Map | FilterOperator)


def _function(operators: Sequence[Operator]) -> Callable[[Row], Row | None] | None:
    """Maps and filters as one function; None if there are none."""
    parts: list[tuple[bool, Callable[[Row], Any]]] = []
    for operator in operators:
        if isinstance(operator, Map):
            if not operator.renames:
                parts.append((False, operator.function))
        elif isinstance(operator, FilterOperator):
            parts.append((True, operator.passes))
    if not parts:
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


def _without(dropped: Sequence[str], below: Source) -> list[Operator]:
    """The projection that drops columns, if there are some."""
    if not dropped:
        return []
    shown = [column for column in below.schema if column not in dropped]
    positions = [below.schema.index(column) for column in shown]
    return [Map(below, shown, picker(positions), shown)]


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
