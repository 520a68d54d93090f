"""The steps of a query in the native text: `where` conditions, outputs, `having`, `order by`.

Without aggregates:

    Filter* (where), Clock (`now`), Compute (outputs, sort keys), Order

With aggregates, grouped by the outputs that have none:

    Filter* (where), Clock (`now`), Compute (keys, arguments), Group, Filter (having),
    Compute (outputs, sort keys), Order

A query whose outputs are plain variables and nodes, without conditions on values and without order,
has no steps. The outputs of the pattern are then those of the query.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from axlog.errors import QueryError, QuerySyntaxError
from axlog.query.aggregate_patterns import counted_once, counted_pattern
from axlog.query.clock_steps import split_clock
from axlog.query.clock_terms import NOW, names_now
from axlog.query.columns import ColumnType
from axlog.query.native_clock import WhereParts, clock_test, refuse_clock
from axlog.query.native_scalars import AggregateCall
from axlog.query.native_text import placeless
from axlog.query.pattern import Kind, Output, Pattern
from axlog.query.positions import place_at
from axlog.query.scalar_types import aggregate_type, scalar_type
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
    SortKey,
    Step,
    is_hidden,
)
from axlog.query.syntax_tree import Binary, Call, Constant, Reference, references


@dataclass(frozen=True, slots=True)
class Asked:
    """One output as written: its expression, and its name if it has one."""

    expression: Scalar
    alias: str | None = None


@dataclass(frozen=True, slots=True)
class QueryParts:
    """The parts of a text after its paths."""

    text: str
    where: WhereParts
    outputs: Sequence[Asked]
    having: Scalar | None
    order: Sequence[tuple[Scalar, bool]]  # each with whether it is descending
    limit: int | None
    positions: Positions | None = None
    collected: frozenset[str] = frozenset()  # the names of paths that conditions collect

    @property
    def has_groups(self) -> bool:
        """Whether an output, `having` or `order by` has an aggregate."""
        asked = [output.expression for output in self.outputs]
        asked += [] if self.having is None else [self.having]
        asked += [expression for expression, _ in self.order]
        return any(has_aggregates(expression) for expression in asked)


@dataclass(slots=True)
class Built:
    """The pattern and the steps of a query, and the offsets of the pattern's outputs."""

    pattern: Pattern
    steps: tuple[Step, ...]
    offsets: list[int]


def built_query(pattern: Pattern, parts: QueryParts) -> Built:
    """The pattern of the paths and constraints, with outputs, and the steps after it."""
    return _Builder(pattern, parts).built()


class _Builder:
    def __init__(self, pattern: Pattern, parts: QueryParts) -> None:
        self.pattern = pattern
        self.parts = parts
        self.base: dict[str, int] = {}  # the columns of the pattern that are read, with offsets
        self.types: dict[str, ColumnType] = {}
        self.names: list[str] = []  # of the outputs
        self.aggregates: dict[object, Aggregate] = {}
        self.arguments: list[Cell] = []

    def built(self) -> Built:
        parts = self.parts
        self._refuse_clock()
        self.names = self._output_names()
        if self._is_plain():
            outputs = [_output(asked.expression, asked.alias) for asked in parts.outputs]
            offsets = [asked.expression.at for asked in parts.outputs]
            return Built(replace(self.pattern, outputs=tuple(outputs)), (), offsets)
        steps: list[Step] = []
        collected = self.pattern.collected_names()
        for written in parts.where.conditions:
            condition = _of_sequences(written, collected) if collected else written
            self._refuse_aggregates(condition, "where")
            steps.append(Filter(self._over_base(condition)))
        clock, positions = self._clock(), self._positions()
        steps += [step for step in (clock, positions) if step is not None]
        before = len(steps)
        steps += self._groups() if parts.has_groups else self._rows()
        order = self.order
        base = sorted(self.base, key=lambda name: self.base[name])
        pattern = replace(self.pattern, outputs=tuple(_base_output(name) for name in base))
        if order.keys or order.limit is not None:
            steps.append(order)
        dropping = [step for step in (clock, positions) if step is not None and step.dropped]
        if parts.has_groups and dropping:
            pattern = counted_once(pattern)
            steps.insert(before, Distinct(self._only_tested(steps[before:])))
        elif parts.has_groups:
            pattern, more = counted_pattern(pattern)
            if more and (tested := self._only_tested(steps[before:])):
                steps.insert(before, Distinct(tested))
            else:
                steps = [*more, *steps]
        offsets = [self.base[name] for name in base]
        return Built(pattern, tuple(steps), offsets + [0] * (len(pattern.outputs) - len(base)))

    def _only_tested(self, steps: Sequence[Step]) -> tuple[str, ...]:
        """The collected columns that only conditions read: nodes that they test do not count."""
        shown = {
            name
            for step in steps
            if isinstance(step, Compute)
            for cell in step.cells
            for name in references(cell.expression)
        }
        collected = self.parts.collected
        return tuple(
            name for name in self.base if name.partition(".")[0] in collected and name not in shown
        )

    # the clock

    def _clock(self) -> Clock | None:
        """The step that looks at the clock; the pattern loses its constraints on the clock."""
        parts = self.parts
        if parts.where.clock_at is None:
            return None
        tests = []
        for each in parts.where.compared:
            self._refuse_aggregates(each.right, "where")
            tests.append(clock_test(each, self._over_base(each.right), parts.text))
        found = split_clock(self.pattern, tuple(tests), place_at(parts.text, parts.where.clock_at))
        self.pattern = found.pattern
        for output in found.outputs:
            if output.column not in self.base:
                self.base[output.column] = len(parts.text)
                self.types[output.column] = Pattern((), (), (output,)).columns.types[0]
        return found.clock

    def _positions(self) -> Positions | None:
        """The step that looks at positions; the pattern shows the ids of the nodes."""
        found = self.parts.positions
        for column in () if found is None else found.columns:
            self.base.setdefault(column, len(self.parts.text))
            self.types[column] = "id"
        return found

    def _refuse_clock(self) -> None:
        if names_now(self.pattern.branches):
            return
        parts = self.parts
        asked = [*parts.where.conditions, *(each.right for each in parts.where.compared)]
        asked += [output.expression for output in parts.outputs]
        if NOW not in [output.alias for output in parts.outputs]:
            asked += [] if parts.having is None else [parts.having]
            asked += [expression for expression, _ in parts.order]
        refuse_clock(asked, parts.text)

    def _is_plain(self) -> bool:
        parts = self.parts
        has_more = parts.where.conditions or parts.order or parts.limit is not None
        has_more = has_more or parts.where.clock_at is not None or parts.positions is not None
        if parts.having is not None and not parts.has_groups:
            raise self._error(
                "having needs an aggregate",
                parts.having.at,
                advice="write the condition in `where`",
            )
        if (parts.order or parts.limit is not None) and not parts.outputs:
            at = parts.order[0][0].at if parts.order else len(parts.text)
            raise self._error("a query without outputs has no order", at, expected="return $x")
        return not has_more and all(_is_column(asked.expression) for asked in parts.outputs)

    # names

    def _output_names(self) -> list[str]:
        names: list[str] = []
        for asked in self.parts.outputs:
            name = asked.alias if asked.alias is not None else self._default_name(asked.expression)
            if is_hidden(name):
                raise self._error(f"the name {name} contains `~`", asked.expression.at)
            if name in names:
                raise QueryError(
                    "AX202",
                    f"two outputs are called {name}",
                    place=place_at(self.parts.text, asked.expression.at),
                    advice="give one of them another name with `as`",
                )
            names.append(name)
        return names

    def _default_name(self, expression: Scalar) -> str:
        if isinstance(expression, Reference) and not expression.name.startswith("#"):
            return expression.name
        if isinstance(expression, Call) and not expression.name.startswith(("unary", "if")):
            return expression.name
        if isinstance(expression, Reference):
            raise self._error(
                f"{expression.name[1:]} is a node",
                expression.at,
                expected=f"${expression.name[1:]}, {expression.name[1:]}.id or another property",
            )
        raise self._error(
            "this output has no name", expression.at, advice="write `as NAME` after it"
        )

    # rows without groups

    def _rows(self) -> Iterator[Step]:
        cells = []
        for name, asked in zip(self.names, self.parts.outputs, strict=True):
            expression = self._over_base(asked.expression)
            cells.append(Cell(name, expression, self._type(expression)))
        by_name = {cell.name: cell for cell in cells}
        order = self._order_cells(lambda expression: self._over_outputs(expression, by_name))
        yield Compute((*cells, *order))

    def _over_outputs(self, expression: Scalar, cells: dict[str, Cell]) -> Scalar:
        """A sort key as a function of what the rows show, over the columns of the pattern."""

        def column(reference: Reference) -> Scalar:
            name = reference.name.removeprefix("#")
            for cell in cells.values():
                shown = isinstance(cell.expression, Reference) and cell.expression.name == name
                if (reference.name[0] == "#" and cell.name == name) or (
                    reference.name[0] != "#" and shown
                ):
                    return cell.expression
            raise self._not_shown(reference)

        return _rewritten(expression, column)

    def _not_shown(self, reference: Reference) -> QueryError:
        word = _written(reference)
        return QueryError(
            "AX203",
            f"{word} is not an output",
            place=place_at(self.parts.text, reference.at),
            expected="one of " + ", ".join(self.names),
            advice=f"add {word} to the outputs",
        )

    # groups

    def _groups(self) -> Iterator[Step]:
        keys: list[Cell] = []
        shown: list[tuple[str, Scalar]] = []
        for name, asked in zip(self.names, self.parts.outputs, strict=True):
            if has_aggregates(asked.expression):
                shown.append((name, asked.expression))
                continue
            expression = self._over_base(asked.expression)
            keys.append(Cell(name, expression, self._type(expression)))
            shown.append((name, Reference(f"#{name}", asked.expression.at)))
        by_name = {cell.name: cell for cell in keys}
        written = dict(shown)

        def grouped(expression: Scalar) -> Scalar:
            return self._over_groups(expression, by_name, written)

        having = None if self.parts.having is None else grouped(self.parts.having)
        outputs = [(name, grouped(expression)) for name, expression in shown]
        order = self._order_cells(grouped)
        types = {cell.name: cell.type for cell in keys}
        types |= {each.name: each.type for each in self.aggregates.values()}
        yield Compute((*keys, *self.arguments))
        yield Group(tuple(by_name), tuple(self.aggregates.values()))
        if having is not None:
            yield Filter(having)
        cells = [Cell(name, each, scalar_type(each, types)) for name, each in outputs]
        yield Compute((*cells, *(replace(c, type=scalar_type(c.expression, types)) for c in order)))

    def _over_groups(
        self, expression: Scalar, keys: dict[str, Cell], outputs: dict[str, Scalar]
    ) -> Scalar:
        """An expression over the keys and the aggregates of a group."""

        def column(reference: Reference) -> Scalar:
            name = reference.name.removeprefix("#")
            if reference.name[0] == "#":
                if name in keys:
                    return Reference(name, reference.at)
                if name in outputs:
                    return self._over_groups(outputs[name], keys, {})
                raise self._not_shown(reference)
            for cell in keys.values():
                if isinstance(cell.expression, Reference) and cell.expression.name == name:
                    return Reference(cell.name, reference.at)
            raise QueryError(
                "AX203",
                f"{_written(reference)} is not an output that the rows are grouped by",
                place=place_at(self.parts.text, reference.at),
                advice=f"add it to the outputs, or write an aggregate: max({_written(reference)})",
            )

        return _rewritten(expression, column, self._aggregate)

    def _aggregate(self, call: AggregateCall) -> Scalar:
        """The column of an aggregate; equal ones share it."""
        for inside in (*call.arguments, *(() if call.by is None else (call.by,))):
            self._refuse_aggregates(inside, f"{call.name}()")
        argument = call.arguments[0] if call.arguments else None
        separator = call.arguments[1] if len(call.arguments) > 1 else None
        text = separator.value if isinstance(separator, Constant) else ""
        over = None if argument is None else self._over_base(argument)
        by = None if call.by is None else self._over_base(call.by)
        identity = (call.name, call.is_distinct, placeless(over), placeless(by), text)
        if identity not in self.aggregates:
            type_ = "any" if over is None else self._type(over)
            self.aggregates[identity] = Aggregate(
                f"aggregate~{len(self.aggregates) + 1}", call.name,
                self._argument(over), call.is_distinct, self._argument(by), str(text),
                aggregate_type(call.name, type_),
            )  # fmt: skip
        return Reference(self.aggregates[identity].name, call.at)

    def _argument(self, expression: Scalar | None) -> str | None:
        """The column of an argument."""
        if expression is None:
            return None
        known = placeless(expression)
        for cell in self.arguments:
            if placeless(cell.expression) == known:
                return cell.name
        name = f"argument~{len(self.arguments) + 1}"
        self.arguments.append(Cell(name, expression, self._type(expression)))
        return name

    # order

    def _order_cells(self, over: Callable[[Scalar], Scalar]) -> list[Cell]:
        cells = []
        keys = []
        for number, (expression, is_descending) in enumerate(self.parts.order, 1):
            found = over(expression)
            cells.append(Cell(f"order~{number}", found, self._type(found)))
            keys.append(SortKey(f"order~{number}", is_descending))
        self.order = Order(tuple(keys), self.parts.limit)
        return cells

    # columns of the pattern

    def _over_base(self, expression: Scalar) -> Scalar:
        """An expression over the columns of the pattern, which are noted."""

        def column(reference: Reference) -> Scalar:
            name = reference.name
            if name.startswith("#"):
                raise self._error(
                    f"{name[1:]} is a node", reference.at,
                    expected=f"{name[1:]}.time, {name[1:]}.val or another property",
                )  # fmt: skip
            if name not in self.base:
                self.base[name] = reference.at
                self.types[name] = Pattern((), (), (_base_output(name),)).columns.types[0]
            return reference

        return _rewritten(expression, column)

    def _type(self, expression: Scalar) -> ColumnType:
        return scalar_type(expression, self.types)

    # errors

    def _refuse_aggregates(self, expression: Scalar, where: str) -> None:
        for each in walk(expression):
            if isinstance(each, AggregateCall):
                raise self._error(
                    f"an aggregate inside {where}",
                    each.at,
                    advice="conditions on aggregates are written after the outputs: having ...",
                )

    def _error(
        self, message: str, at: int, expected: str | None = None, advice: str | None = None
    ) -> QuerySyntaxError:
        place = place_at(self.parts.text, at)
        return QuerySyntaxError("AX201", message, place=place, expected=expected, advice=advice)


def has_aggregates(expression: Scalar) -> bool:
    """Whether an aggregate occurs in an expression."""
    return any(isinstance(each, AggregateCall) for each in walk(expression))


def walk(expression: Scalar) -> Iterator[Scalar]:
    """The expression and those inside it."""
    waiting = [expression]
    while waiting:
        found = waiting.pop()
        yield found
        waiting += _parts(found)


def _parts(expression: Scalar) -> Iterable[Scalar]:
    match expression:
        case AggregateCall(arguments=arguments, by=by):
            return arguments if by is None else (*arguments, by)
        case Call(arguments=arguments):
            return arguments
        case Binary(left=left, right=right):
            return (left, right)
    return ()


_OF_NODES: dict[str, str] = {
    **dict.fromkeys(("local-name", "name", "namespace-uri"), "label"),
    **dict.fromkeys(("is", "<<", ">>"), "id"),
    "deep-equal": "cont",
}
"""Functions and operators of nodes, with the property of a node that decides them."""


def _property(argument: Scalar, kind: str | None) -> Scalar:
    """A property of a node; other arguments as they are."""
    if kind is not None and isinstance(argument, Reference) and argument.name.startswith("#"):
        return replace(argument, name=f"{argument.name[1:]}.{kind}")
    return argument


def _of_sequences(expression: Scalar, collected: frozenset[str]) -> Scalar:
    """An expression with aggregates of collected nodes as functions of their sequences."""
    match expression:
        case AggregateCall(name=name, arguments=arguments, at=at, is_distinct=False, by=None) if (
            arguments and _is_collected(arguments[0], collected)
        ):
            return Call(name, arguments, at)
        case AggregateCall():
            return expression
        case Call(arguments=arguments):
            inside = tuple(_of_sequences(each, collected) for each in arguments)
            return replace(expression, arguments=inside)  # type: ignore[arg-type]
        case Binary(left=left, right=right):
            one, other = (_of_sequences(each, collected) for each in (left, right))
            return replace(expression, left=one, right=other)  # type: ignore[arg-type]
    return expression


def _is_collected(argument: Scalar, collected: frozenset[str]) -> bool:
    if isinstance(argument, Call):
        return any(_is_collected(each, collected) for each in argument.arguments)
    return isinstance(argument, Reference) and argument.name.partition(".")[0] in collected


def _rewritten(
    expression: Scalar,
    column: Callable[[Reference], Scalar],
    aggregate: Callable[[AggregateCall], Scalar] | None = None,
) -> Scalar:
    """An expression with its columns, and perhaps its aggregates, replaced."""
    match expression:
        case Reference():
            return column(expression)
        case AggregateCall() if aggregate is not None:
            return aggregate(expression)
        case Call(name=name, arguments=arguments, at=at):
            kind = _OF_NODES.get(name)
            arguments = tuple(_property(each, kind) for each in arguments)  # type: ignore[misc]
            inside = tuple(_rewritten(each, column, aggregate) for each in arguments)
            return Call(name, inside, at)  # type: ignore[arg-type]
        case Binary(operator=operator, left=left, right=right, at=at):
            kind = _OF_NODES.get(operator)
            one, other = (
                _rewritten(_property(each, kind), column, aggregate) for each in (left, right)
            )
            return Binary(operator, one, other, at)  # type: ignore[arg-type]
    return expression


def _written(reference: Reference) -> str:
    name = reference.name
    return name[1:] if name[0] == "#" else name if "." in name else f"${name}"


def _is_column(expression: Scalar) -> bool:
    return isinstance(expression, Reference) and not expression.name.startswith("#")


def _base_output(name: str) -> Output:
    of, dot, kind = name.partition(".")
    return Output(Kind(kind), of) if dot else Output(Kind.VARIABLE, name)


def _output(expression: Scalar, alias: str | None) -> Output:
    assert isinstance(expression, Reference), "plain outputs only"
    return replace(_base_output(expression.name), alias=alias)
