"""The compiler of comparisons: XPath and XQuery comparisons to those of a pattern.

A comparison is existential: it holds for some node on the left and some node on the right. A
comparison whose meaning patterns cannot express exactly is refused.

- As in XPath 3.1, the value of a node is untyped. Compared with a string or with another node, it
  is a string, ordered by code point; compared with a number, it is an xs:double.
- number(), xs:double(), xs:decimal(), xs:integer(), xs:date(), xs:dateTime(), xs:time() and
  xs:string() give a side its type. The types of both sides must be comparable; a node on the other
  side takes the type. A value that cannot be cast (FORG0001 in the recommendation) passes no
  comparison; as a double it is NaN, as number() defines.
- `=` and `!=` between two paths compare string values: a value join by a shared variable.
- `eq`, `ne`, `lt`, ... compare single values, so each side must find at most one node.
- string() and number() of a path that finds no node are "" and NaN; the path must find at most one.
- count() is accepted where the comparison only depends on whether there is any node.
"""

from __future__ import annotations

import operator as operators
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from math import ceil, floor, isfinite, nan
from typing import Any

from axlog.errors import QueryError
from axlog.query.pattern import Comparison, ValueConstraint, Variable
from axlog.query.positions import place_at
from axlog.query.syntax_tree import (
    Binary,
    Call,
    Constant,
    Context,
    Expression,
    Path,
    Reference,
)
from axlog.query.syntax_tree import (
    Sequence as Items,
)
from axlog.query.values import READ, double_of, mirrored, typed
from axlog.query.xpath_branches import Condition, Conditions, ConjunctionBuilder, OrBuilder
from axlog.query.xpath_paths import BuiltRoute, Location, PathCompiler, any_of, none_of
from axlog.query.xpath_routes import Trail
from axlog.query.xpath_steps import DOCUMENT

_HOLDS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operators.eq, "!=": operators.ne, "<": operators.lt,
    "<=": operators.le, ">": operators.gt, ">=": operators.ge,
}  # fmt: skip
_TYPES = {"number": "xs:double", **{name: name for name in READ}}
_SINGLE = {"eq": "=", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}


class Side(Enum):
    """The kind of expression on one side of a comparison."""

    CONSTANTS = "constants"
    NODES = "nodes"
    STRING = "string()"
    NUMBER = "number()"
    COUNT = "count()"
    VALUE = "a variable's value"


@dataclass(frozen=True, slots=True)
class Operand:
    """One side of a comparison.

    `type` is the type that it is cast to. `is_alone`: the operand is cast as a whole, so its paths
    may find at most one node.
    """

    side: Side
    at: int
    trails: tuple[Trail, ...] = ()
    values: tuple[str | float, ...] = ()
    variable: str = ""
    type: str | None = None
    is_alone: bool = False


@dataclass(frozen=True, slots=True)
class Operator:
    """A comparison operator: its symbol in patterns; `is_single` for `eq`, `ne`, `lt`, ..."""

    symbol: str
    is_single: bool
    at: int

    @property
    def is_order(self) -> bool:
        return self.symbol not in ("=", "!=")

    def holds(self, left: str | float, right: str | float) -> bool:
        return _HOLDS[self.symbol](left, right)

    @property
    def of_strings(self) -> str:
        """The operator for strings, which compares by code point."""
        return typed(self.symbol, "xs:string")

    def mirrored(self) -> Operator:
        return Operator(mirrored(self.symbol), self.is_single, self.at)


class ComparisonCompiler:
    """Compiles the comparisons of one query text."""

    def __init__(self, paths: PathCompiler) -> None:
        self._paths = paths
        self._variables = self._paths.variables
        self._expander = self._paths.expander

    def compare(self, comparison: Binary, location: Location) -> Conditions:
        """The conditions under which a comparison is true."""
        written = comparison.operator
        operator = Operator(_SINGLE.get(written, written), written in _SINGLE, comparison.at)
        left, right = self._operand(comparison.left), self._operand(comparison.right)
        if left.side is Side.CONSTANTS or right.side is Side.VALUE:
            left, operator, right = right, operator.mirrored(), left
        if left.side is Side.NUMBER and right.type == "xs:double" and right.values:
            double = double_of(str(right.values[0]))
            if isfinite(double):
                right = replace(right, values=(double,), type=None)
        if self._is_typed(left, right):
            return self._with_type(left, operator, right, location)
        if operator.is_single:
            self._check_single(left, operator, right, location)
        if any(side.side is Side.NODES and not side.trails for side in (left, right)):
            return None  # nothing compares with the empty sequence
        match left.side, right.side:
            case Side.NODES, Side.CONSTANTS:
                items = [self._with_constant(operator, right.at, v) for v in right.values]
                return self._with_any(left, items, location)
            case Side.NODES, Side.NODES:
                return self._join(left, operator, right, location)
            case Side.STRING | Side.NUMBER, Side.CONSTANTS if len(right.values) == 1:
                return self._with_function(left, operator, right, location)
            case Side.COUNT, Side.CONSTANTS if len(right.values) == 1:
                return self._with_count(left, operator, right, location)
            case Side.VALUE, Side.NODES:
                item = Comparison(operator.mirrored().of_strings, Variable(left.variable))
                return self._paths.exists(right.trails, location, [item])
            case Side.VALUE, Side.CONSTANTS | Side.VALUE:
                return self._constrain(left, operator, right, location)
        raise self._paths.unsupported(
            f"comparing {left.side.value} with {right.side.value}",
            operator.at,
            expected="a path on one side",
        )

    # operands

    def _operand(self, expression: Expression) -> Operand:
        at = expression.at
        match expression:
            case Constant(value=value):
                return Operand(Side.CONSTANTS, at, values=(value,))
            case Items(items=items) if items and all(isinstance(i, Constant) for i in items):
                values = tuple(item.value for item in items if isinstance(item, Constant))
                return Operand(Side.CONSTANTS, at, values=values)
            case Path(start=Reference(name=name), steps=()) if name in self._variables.constants:
                return self._operand(self._variables.constants[name])
            case Path(start=Reference(name=name), steps=()) if name in self._variables.values:
                return Operand(Side.VALUE, at, variable=self._variables.values[name])
            case Path(start=start, steps=(*steps, Call(name=name, arguments=given)), at=at) if (
                name in _TYPES and _is_context(given)
            ):
                trails = self._expander.trails(Path(start, tuple(steps), at))
                return Operand(Side.NODES, at, tuple(trails), type=_TYPES[name])
            case Path() | Items() | Binary(operator="|"):
                return Operand(Side.NODES, at, tuple(self._expander.value_trails(expression)))
            case Call():
                return self._called(expression)
        raise self._paths.unsupported(
            "a comparison of Boolean values", at, advice="the condition itself, or not(...) of it"
        )

    def _called(self, call: Call) -> Operand:
        inside: Expression = Path(Context(call.at), (), call.at)
        if call.arguments:
            (inside,) = self._paths.arguments(call, 1)
        match call.name:
            case "data" | "distinct-values" if call.arguments:
                return Operand(Side.NODES, call.at, tuple(self._expander.trails(inside)))
            case "number" if isinstance(inside, Constant):
                return self._cast(call, inside)
            case "string" | "number":
                trails = tuple(self._expander.trails(inside))
                is_there = all(not trail.steps for trail in trails)
                side = Side.NUMBER
                if call.name == "string":
                    side = Side.NODES if is_there else Side.STRING
                return Operand(side, call.at, trails)
            case name if name in _TYPES and call.arguments:
                return self._cast(call, inside)
            case "count" if call.arguments:
                return Operand(Side.COUNT, call.at, tuple(self._expander.trails(inside)))
            case "position" | "last":
                advice = "[1] on following-sibling::* or preceding-sibling::*"
                raise self._paths.unsupported(f"{call.name}() here", call.at, advice=advice)
            case "doc" | "document" | "collection":
                return Operand(Side.NODES, call.at, tuple(self._expander.trails(call)))
        raise self._paths.unsupported(
            f"comparing {call.name}()", call.at, advice="the condition itself"
        )

    def _cast(self, call: Call, inside: Expression) -> Operand:
        """A cast such as `xs:date(...)`, of a constant or of at most one node."""
        type_ = _TYPES[call.name]
        if not isinstance(inside, Constant):
            trails = tuple(self._expander.trails(inside))
            return Operand(Side.NODES, call.at, trails, type=type_, is_alone=True)
        written = inside.value
        text = written if isinstance(written, str) else repr(written).removesuffix(".0")
        if READ[type_](text) is None:
            place = place_at(self._paths.text, inside.at)
            raise QueryError("AX207", f"{text!r} is not a valid {type_}", place=place)
        return Operand(Side.CONSTANTS, call.at, values=(text,), type=type_)

    # untyped values

    def _with_constant(self, operator: Operator, at: int, value: str | float) -> Comparison:
        symbol = operator.of_strings if isinstance(value, str) else operator.symbol
        return Comparison(symbol, value)

    def _with_any(
        self, nodes: Operand, items: Sequence[Condition], location: Location
    ) -> Conditions:
        """Some node meets one of the comparisons."""

        def finish(built: BuiltRoute) -> None:
            if len(items) == 1:
                built.add(items)
            else:
                is_root = built.last is None and built.spot == DOCUMENT
                built.add([OrBuilder([ConjunctionBuilder(is_root, [item]) for item in items])])

        return self._paths.attach(nodes.trails, location, finish)

    def _join(
        self, left: Operand, operator: Operator, right: Operand, location: Location
    ) -> Conditions:
        return self._joined(left, operator.of_strings, right, location)

    def _joined(
        self, left: Operand, written: str, right: Operand, location: Location
    ) -> Conditions:
        shared = Variable(self._paths.names.new_variable())
        bound = Comparison("=", shared)
        compared = Comparison(mirrored(written), shared)
        first = self._paths.exists(left.trails, location, [bound])
        second = self._paths.exists(right.trails, location, [compared])
        return None if first is None or second is None else first + second

    # types

    def _is_typed(self, left: Operand, right: Operand) -> bool:
        """Whether a side is cast; `_with_function` handles number() against a constant."""
        sides = {left.side, right.side}
        if Side.NUMBER in sides and sides <= {Side.NUMBER, Side.NODES, Side.VALUE}:
            return True
        return left.type is not None or right.type is not None

    def _with_type(
        self, left: Operand, operator: Operator, right: Operand, location: Location
    ) -> Conditions:
        """A comparison with a side that is cast to a type."""
        type_ = self._common_type(left, operator, right)
        written = typed(operator.symbol, type_)
        for operand in (left, right):
            is_node = operand.side in (Side.NODES, Side.NUMBER, Side.STRING)
            if is_node and (operand.is_alone or operator.is_single or operand.side != Side.NODES):
                self._need_one(operand, location)
        if any(side.side is Side.NODES and not side.trails for side in (left, right)):
            return None
        match left.side, right.side:
            case Side.NODES | Side.NUMBER, Side.CONSTANTS:
                if left.side is Side.NUMBER and operator.symbol == "!=":
                    construct = "`!=` of number() with a value that is not a finite number"
                    raise self._paths.unsupported(construct, operator.at)
                items = [_typed_constant(operator.symbol, type_, value) for value in right.values]
                return self._with_any(left, items, location)
            case Side.NODES | Side.NUMBER, Side.NODES | Side.NUMBER:
                if Side.NUMBER in (left.side, right.side) and operator.symbol == "!=":
                    raise self._paths.unsupported(
                        "`!=` of number()", operator.at, advice="xs:double(), or not(... = ...)"
                    )
                return self._joined(left, written, right, location)
            case Side.VALUE, Side.NODES | Side.NUMBER:
                item = Comparison(mirrored(written), Variable(left.variable))
                return self._paths.exists(right.trails, location, [item])
            case Side.VALUE, Side.VALUE:
                return self._constrain(left, operator, right, location, written)
            case Side.VALUE, Side.CONSTANTS if len(right.values) == 1:
                compared = _typed_constant(operator.symbol, type_, right.values[0])
                right = replace(right, values=(compared.operand,))  # type: ignore[arg-type]
                return self._constrain(left, operator, right, location, compared.operator)
        raise self._paths.unsupported(
            f"comparing {left.side.value} with {right.side.value}", operator.at
        )

    def _common_type(self, left: Operand, operator: Operator, right: Operand) -> str:
        """The type in which two sides are compared; a type error of XPath is refused."""
        types = {_type_of(left), _type_of(right)}
        if None in types and operator.is_single:
            types = {type_ or "xs:string" for type_ in types}  # untyped: a string to `eq`
        named = types - {None, "a number"}
        if len(named) == 1:
            (only,) = named
            assert only is not None
            is_untyped, has_number = None in types, "a number" in types
            if only == "xs:double" or not (is_untyped or has_number):
                return only
            if has_number and only in ("xs:decimal", "xs:integer"):
                whole = all(double_of(str(v)).is_integer() for o in (left, right) for v in o.values)
                return only if only == "xs:decimal" or whole else self._mixed(types, operator)
            if is_untyped and only not in ("xs:decimal", "xs:integer"):
                return only
        if types == {"xs:double", "a number"}:
            return "xs:double"
        return self._mixed(types, operator)

    def _mixed(self, types: set[str | None], operator: Operator) -> str:
        pair = " with ".join(sorted(type_ or "an untyped value" for type_ in types))
        raise self._paths.unsupported(
            f"comparing {pair}", operator.at, advice="the same cast on both sides"
        )

    def _constrain(
        self,
        left: Operand,
        operator: Operator,
        right: Operand,
        location: Location,
        written: str | None = None,
    ) -> Conditions:
        """A comparison of a variable's value, which becomes a constraint of the whole query."""
        if location.lift_to is None or len(right.values) > 1:
            what = "a variable's value inside `or`, `not` or beside several constants"
            raise self._paths.unsupported(what, operator.at)
        other: Variable | str | float = Variable(right.variable)
        if right.values:
            other = right.values[0]
        if written is None:
            written = operator.symbol if isinstance(other, float) else operator.of_strings
        self._variables.where.append(ValueConstraint(Variable(left.variable), written, other))
        return []

    # functions of one node

    def _with_function(
        self, left: Operand, operator: Operator, right: Operand, location: Location
    ) -> Conditions:
        """string() or number() of at most one node; without a node they are "" or NaN."""
        (value,) = right.values
        if isinstance(value, str) != (left.side is Side.STRING):
            kind = "string" if isinstance(value, str) else "number"
            raise self._paths.unsupported(f"comparing {left.side.value} with a {kind}", operator.at)
        item = self._with_constant(operator, right.at, value)
        self._need_one(left, location)
        nothing: str | float = "" if left.side is Side.STRING else nan
        if not operator.holds(nothing, value):
            return self._paths.exists(left.trails, location, [item])

        def or_none(start: Location) -> Conditions:
            isolated = start.isolated
            some = self._paths.exists(left.trails, isolated, [item])
            none = none_of(self._paths.exists(left.trails, isolated), isolated)
            return any_of([found for found in (some, none) if found is not None], isolated)

        return self._paths.at_start(left.trails, location, or_none)

    def _with_count(
        self, left: Operand, operator: Operator, right: Operand, location: Location
    ) -> Conditions:
        (value,) = right.values
        if isinstance(value, str):
            raise self._paths.unsupported("comparing count() with a string", operator.at)
        around = {1, 2, max(1, floor(value)), max(1, ceil(value)), abs(ceil(value)) + 2}
        verdicts = {operator.holds(n, value) for n in around}
        if len(verdicts) > 1:
            raise self._paths.unsupported(
                "counting", left.at, advice="count(...) > 0, count(...) = 0, exists(...)"
            )
        if_none, if_some = operator.holds(0, value), verdicts.pop()
        if if_none == if_some:
            return [] if if_some else None
        if if_some:
            return self._paths.exists(left.trails, location)

        def none(start: Location) -> Conditions:
            return none_of(self._paths.exists(left.trails, start.isolated), start)

        return self._paths.at_start(left.trails, location, none)

    # single values

    def _check_single(
        self, left: Operand, operator: Operator, right: Operand, location: Location
    ) -> None:
        if left.side is Side.NODES and any(isinstance(v, float) for v in right.values):
            raise self._paths.unsupported(
                "comparing a node with a number by `eq`, `lt`, ...", operator.at, advice="`=`"
            )
        if len(right.values) > 1:
            raise self._paths.unsupported("`eq`, `lt`, ... with several values", operator.at)
        for operand in (left, right):
            if operand.side is Side.NODES:
                self._need_one(operand, location)

    def _need_one(self, operand: Operand, location: Location) -> None:
        is_one = len(operand.trails) <= 1

        def check(start: Location) -> Conditions:
            nonlocal is_one
            for trail in operand.trails:
                is_one = is_one and all(r.is_single for r in self._paths.routes_of(trail, start))
            return []

        if operand.trails:
            self._paths.at_start(operand.trails, location, check)
        if not is_one:
            raise self._paths.unsupported(
                "a single value of a path that can find several nodes",
                operand.at,
                expected="`.`, `@name`, a variable",
                advice="`=`, which is true if it holds for one of the nodes",
            )


def _is_context(given: tuple[Expression, ...]) -> bool:
    """Whether a call takes the step's node as its argument."""
    match given:
        case () | (Path(start=Context(), steps=()),):
            return True
    return False


def _type_of(operand: Operand) -> str | None:
    """The type of a side, "a number" for a numeric literal, or None if it is untyped."""
    if operand.type is not None:
        return operand.type
    match operand.side:
        case Side.NUMBER | Side.COUNT:
            return "xs:double"
        case Side.STRING:
            return "xs:string"
        case Side.CONSTANTS if all(isinstance(value, float) for value in operand.values):
            return "a number"
        case Side.CONSTANTS:
            return "xs:string"
    return None


def _typed_constant(symbol: str, type_: str, value: str | float) -> Comparison:
    if type_ == "xs:double":
        double = double_of(value) if isinstance(value, str) else value
        if isfinite(double):
            return Comparison(symbol, double)
    text = value if isinstance(value, str) else repr(value).removesuffix(".0")
    return Comparison(typed(symbol, type_), text)
