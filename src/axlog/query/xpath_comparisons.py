"""Comparisons of XPath and XQuery to comparisons of a pattern, where their meaning is beyond doubt.

A comparison is existential: some node on the left and some on the right. What is compared how:

- As XPath 3.1 has it: what a node has is untyped. With a string, and with another node, it is a
  string, and its order is that of code points; with a number it is an xs:double.
- number(), xs:double(), xs:decimal(), xs:integer(), xs:date(), xs:dateTime(), xs:time() and
  xs:string() say of what type a side is. Both sides must have types that compare; a node on the
  other side takes the type. What cannot be cast (FORG0001 in the recommendation) passes nothing;
  as a double it is NaN, as number() says.
- Two paths by `=` and `!=` compare string values (a value join: a shared variable).
- `eq`, `ne`, `lt`, ... compare single values: they are taken where a side finds at most one node.
- string() and number() of a path that finds at most one node say what they say when there is none.
- count() is compared where the comparison only asks whether there is any.
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
from axlog.query.xpath_branches import Choice, Conjunction, Item
from axlog.query.xpath_paths import Built, Found, Hanging, Site, absent, either
from axlog.query.xpath_routes import Trail
from axlog.query.xpath_steps import DOCUMENT

_HOLDS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operators.eq, "!=": operators.ne, "<": operators.lt,
    "<=": operators.le, ">": operators.gt, ">=": operators.ge,
}  # fmt: skip
_TYPES = {"number": "xs:double", **{name: name for name in READ}}
_SINGLE = {"eq": "=", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}


class Side(Enum):
    """What stands on one side of a comparison."""

    CONSTANTS = "constants"
    NODES = "nodes"
    STRING = "string()"
    NUMBER = "number()"
    COUNT = "count()"
    VALUE = "a variable's value"


@dataclass(frozen=True, slots=True)
class Operand:
    side: Side
    at: int
    trails: tuple[Trail, ...] = ()
    values: tuple[str | float, ...] = ()
    variable: str = ""
    type: str | None = None  # what it is cast to
    is_alone: bool = False  # whether it is cast whole, so that there may be one node at most


@dataclass(frozen=True, slots=True)
class Operator:
    """`symbol` as patterns have it; `is_single` for `eq` and its like."""

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
        """The operator as it compares strings: by code point."""
        return typed(self.symbol, "xs:string")

    def mirrored(self) -> Operator:
        return Operator(mirrored(self.symbol), self.is_single, self.at)


class Comparing(Hanging):
    """Adds comparisons."""

    def compare(self, comparison: Binary, site: Site) -> Found:
        """What must hold for a comparison to be true."""
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
            return self._with_type(left, operator, right, site)
        if operator.is_single:
            self._check_single(left, operator, right, site)
        if any(side.side is Side.NODES and not side.trails for side in (left, right)):
            return None  # nothing compares with the empty sequence
        match left.side, right.side:
            case Side.NODES, Side.CONSTANTS:
                items = [self._with_constant(operator, right.at, v) for v in right.values]
                return self._with_any(left, items, site)
            case Side.NODES, Side.NODES:
                return self._join(left, operator, right, site)
            case Side.STRING | Side.NUMBER, Side.CONSTANTS if len(right.values) == 1:
                return self._with_function(left, operator, right, site)
            case Side.COUNT, Side.CONSTANTS if len(right.values) == 1:
                return self._with_count(left, operator, right, site)
            case Side.VALUE, Side.NODES:
                item = Comparison(operator.mirrored().of_strings, Variable(left.variable))
                return self.exists(right.trails, site, [item])
            case Side.VALUE, Side.CONSTANTS | Side.VALUE:
                return self._constrain(left, operator, right, site)
        raise self.unsupported(
            f"comparing {left.side.value} with {right.side.value}",
            operator.at,
            expected="a path on one side",
        )

    # the sides

    def _operand(self, expression: Expression) -> Operand:
        at = expression.at
        match expression:
            case Constant(value=value):
                return Operand(Side.CONSTANTS, at, values=(value,))
            case Items(items=items) if items and all(isinstance(i, Constant) for i in items):
                values = tuple(item.value for item in items if isinstance(item, Constant))
                return Operand(Side.CONSTANTS, at, values=values)
            case Path(start=Reference(name=name), steps=()) if name in self.variables.constants:
                return self._operand(self.variables.constants[name])
            case Path(start=Reference(name=name), steps=()) if name in self.variables.values:
                return Operand(Side.VALUE, at, variable=self.variables.values[name])
            case Path(start=start, steps=(*steps, Call(name=name, arguments=given)), at=at) if (
                name in _TYPES and _is_context(given)
            ):
                trails = self.spreading.trails(Path(start, tuple(steps), at))
                return Operand(Side.NODES, at, tuple(trails), type=_TYPES[name])
            case Path() | Items() | Binary(operator="|"):
                return Operand(Side.NODES, at, tuple(self.trails_of_values(expression)))
            case Call():
                return self._called(expression)
        raise self.unsupported(
            "a comparison of truth values", at, advice="the condition itself, or not(...) of it"
        )

    def _called(self, call: Call) -> Operand:
        inside: Expression = Path(Context(call.at), (), call.at)
        if call.arguments:
            (inside,) = self.arguments(call, 1)
        match call.name:
            case "data" | "distinct-values" if call.arguments:
                return Operand(Side.NODES, call.at, tuple(self.spreading.trails(inside)))
            case "number" if isinstance(inside, Constant):
                return self._cast(call, inside)
            case "string" | "number":
                trails = tuple(self.spreading.trails(inside))
                is_there = all(not trail.steps for trail in trails)
                side = Side.NUMBER
                if call.name == "string":
                    side = Side.NODES if is_there else Side.STRING
                return Operand(side, call.at, trails)
            case name if name in _TYPES and call.arguments:
                return self._cast(call, inside)
            case "count" if call.arguments:
                return Operand(Side.COUNT, call.at, tuple(self.spreading.trails(inside)))
            case "position" | "last":
                advice = "[1] on following-sibling::* or preceding-sibling::*"
                raise self.unsupported(f"{call.name}() here", call.at, advice=advice)
            case "doc" | "document" | "collection":
                return Operand(Side.NODES, call.at, tuple(self.spreading.trails(call)))
        raise self.unsupported(f"comparing {call.name}()", call.at, advice="the condition itself")

    def _cast(self, call: Call, inside: Expression) -> Operand:
        """`xs:date(...)` and its like, of a constant or of at most one node."""
        type_ = _TYPES[call.name]
        if not isinstance(inside, Constant):
            trails = tuple(self.spreading.trails(inside))
            return Operand(Side.NODES, call.at, trails, type=type_, is_alone=True)
        written = inside.value
        text = written if isinstance(written, str) else repr(written).removesuffix(".0")
        if READ[type_](text) is None:
            place = place_at(self.text, inside.at)
            raise QueryError("AX207", f"{text!r} is no {type_}", place=place)
        return Operand(Side.CONSTANTS, call.at, values=(text,), type=type_)

    def arguments(self, call: Call, wanted: int) -> tuple[Expression, ...]:
        """The arguments of a call, which must be this many."""
        if len(call.arguments) != wanted:
            what = f"{call.name}() with {len(call.arguments)} arguments"
            raise self.unsupported(what, call.at, expected=f"{wanted} of them")
        return call.arguments

    def trails_of_values(self, expression: Expression) -> list[Trail]:
        """The paths of an expression that only values are wanted of: `a/string()` is `a` then."""
        match expression:
            case Path(start=start, steps=(*steps, Call(name="string" | "data") as last), at=at):
                match last.arguments:
                    case () | (Path(start=Context(), steps=()),):
                        return self.spreading.trails(Path(start, tuple(steps), at))
        return self.spreading.trails(expression)

    # comparing

    def _with_constant(self, operator: Operator, at: int, value: str | float) -> Comparison:
        symbol = operator.of_strings if isinstance(value, str) else operator.symbol
        return Comparison(symbol, value)

    def _with_any(self, nodes: Operand, items: Sequence[Item], site: Site) -> Found:
        """Some node compares as one of the items says."""

        def finish(built: Built) -> None:
            if len(items) == 1:
                built.take(items)
            else:
                is_root = built.last is None and built.spot == DOCUMENT
                built.take([Choice([Conjunction(is_root, [item]) for item in items])])

        return self.hang(nodes.trails, site, finish)

    def _join(self, left: Operand, operator: Operator, right: Operand, site: Site) -> Found:
        return self._joined(left, operator.of_strings, right, site)

    def _joined(self, left: Operand, written: str, right: Operand, site: Site) -> Found:
        shared = Variable(self.fresh_variable())
        bound = Comparison("=", shared)
        compared = Comparison(mirrored(written), shared)
        first = self.exists(left.trails, site, [bound])
        second = self.exists(right.trails, site, [compared])
        return None if first is None or second is None else first + second

    # types

    def _is_typed(self, left: Operand, right: Operand) -> bool:
        """Whether a side is cast; number() beside a constant is a matter of its own."""
        sides = {left.side, right.side}
        if Side.NUMBER in sides and sides <= {Side.NUMBER, Side.NODES, Side.VALUE}:
            return True
        return left.type is not None or right.type is not None

    def _with_type(self, left: Operand, operator: Operator, right: Operand, site: Site) -> Found:
        """A comparison of which a side is cast to a type."""
        type_ = self._common_type(left, operator, right)
        written = typed(operator.symbol, type_)
        for operand in (left, right):
            is_node = operand.side in (Side.NODES, Side.NUMBER, Side.STRING)
            if is_node and (operand.is_alone or operator.is_single or operand.side != Side.NODES):
                self._need_one(operand, site)
        if any(side.side is Side.NODES and not side.trails for side in (left, right)):
            return None
        match left.side, right.side:
            case Side.NODES | Side.NUMBER, Side.CONSTANTS:
                if left.side is Side.NUMBER and operator.symbol == "!=":
                    raise self.unsupported("`!=` of number() with no finite number", operator.at)
                items = [_typed_constant(operator.symbol, type_, value) for value in right.values]
                return self._with_any(left, items, site)
            case Side.NODES | Side.NUMBER, Side.NODES | Side.NUMBER:
                if Side.NUMBER in (left.side, right.side) and operator.symbol == "!=":
                    raise self.unsupported(
                        "`!=` of number()", operator.at, advice="xs:double(), or not(... = ...)"
                    )
                return self._joined(left, written, right, site)
            case Side.VALUE, Side.NODES | Side.NUMBER:
                item = Comparison(mirrored(written), Variable(left.variable))
                return self.exists(right.trails, site, [item])
            case Side.VALUE, Side.VALUE:
                return self._constrain(left, operator, right, site, written)
            case Side.VALUE, Side.CONSTANTS if len(right.values) == 1:
                compared = _typed_constant(operator.symbol, type_, right.values[0])
                right = replace(right, values=(compared.operand,))  # type: ignore[arg-type]
                return self._constrain(left, operator, right, site, compared.operator)
        raise self.unsupported(f"comparing {left.side.value} with {right.side.value}", operator.at)

    def _common_type(self, left: Operand, operator: Operator, right: Operand) -> str:
        """The type in which two sides compare; refused where the recommendation has an error."""
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
        said = " with ".join(sorted(type_ or "an untyped value" for type_ in types))
        raise self.unsupported(
            f"comparing {said}", operator.at, advice="the same cast on both sides"
        )

    def _constrain(
        self,
        left: Operand,
        operator: Operator,
        right: Operand,
        site: Site,
        written: str | None = None,
    ) -> Found:
        """A comparison of a value that the whole query has."""
        if site.lifted is None or len(right.values) > 1:
            what = "a variable's value inside `or`, `not` or beside several constants"
            raise self.unsupported(what, operator.at)
        other: Variable | str | float = Variable(right.variable)
        if right.values:
            other = right.values[0]
        if written is None:
            written = operator.symbol if isinstance(other, float) else operator.of_strings
        self.variables.where.append(ValueConstraint(Variable(left.variable), written, other))
        return []

    # functions of one node

    def _with_function(
        self, left: Operand, operator: Operator, right: Operand, site: Site
    ) -> Found:
        """string() or number() of at most one node; without one they are "" or not a number."""
        (value,) = right.values
        if isinstance(value, str) != (left.side is Side.STRING):
            kind = "string" if isinstance(value, str) else "number"
            raise self.unsupported(f"comparing {left.side.value} with a {kind}", operator.at)
        item = self._with_constant(operator, right.at, value)
        self._need_one(left, site)
        nothing: str | float = "" if left.side is Side.STRING else nan
        if not operator.holds(nothing, value):
            return self.exists(left.trails, site, [item])

        def or_none(home: Site) -> Found:
            alone = home.alone
            some = self.exists(left.trails, alone, [item])
            none = absent(self.exists(left.trails, alone), alone)
            return either([found for found in (some, none) if found is not None], alone)

        return self.at_home(left.trails, site, or_none)

    def _with_count(self, left: Operand, operator: Operator, right: Operand, site: Site) -> Found:
        (value,) = right.values
        if isinstance(value, str):
            raise self.unsupported("comparing count() with a string", operator.at)
        around = {1, 2, max(1, floor(value)), max(1, ceil(value)), abs(ceil(value)) + 2}
        verdicts = {operator.holds(n, value) for n in around}
        if len(verdicts) > 1:
            raise self.unsupported(
                "counting", left.at, advice="count(...) > 0, count(...) = 0, exists(...)"
            )
        if_none, if_some = operator.holds(0, value), verdicts.pop()
        if if_none == if_some:
            return [] if if_some else None
        if if_some:
            return self.exists(left.trails, site)

        def none(home: Site) -> Found:
            return absent(self.exists(left.trails, home.alone), home)

        return self.at_home(left.trails, site, none)

    # single values

    def _check_single(self, left: Operand, operator: Operator, right: Operand, site: Site) -> None:
        if left.side is Side.NODES and any(isinstance(v, float) for v in right.values):
            raise self.unsupported(
                "comparing a node with a number by `eq` and its like", operator.at, advice="`=`"
            )
        if len(right.values) > 1:
            raise self.unsupported("`eq` and its like with several values", operator.at)
        for operand in (left, right):
            if operand.side is Side.NODES:
                self._need_one(operand, site)

    def _need_one(self, operand: Operand, site: Site) -> None:
        is_one = len(operand.trails) <= 1

        def check(home: Site) -> Found:
            nonlocal is_one
            for trail in operand.trails:
                is_one = is_one and all(r.is_single for r in self.routes_of(trail, home))
            return []

        if operand.trails:
            self.at_home(operand.trails, site, check)
        if not is_one:
            raise self.unsupported(
                "a single value of a path that can find several nodes",
                operand.at,
                expected="`.`, `@name`, a variable",
                advice="`=`, which is true if one of the nodes compares so",
            )


def _is_context(given: tuple[Expression, ...]) -> bool:
    """Whether the arguments of a step's call are the step's node."""
    match given:
        case () | (Path(start=Context(), steps=()),):
            return True
    return False


def _type_of(operand: Operand) -> str | None:
    """What a side is: a type, a number that is written, or None: untyped."""
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
