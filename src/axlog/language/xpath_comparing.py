"""Comparisons of XPath and XQuery to comparisons of a pattern, where their meaning is beyond doubt.

A comparison is existential: some node on the left and some on the right. What is compared how:

- With a string, `=` and `!=` compare string values; with a number, values are read as numbers by
  XPath 1.0's rules (what is no number is unequal to all).
- The order of strings: XPath 1.0 makes numbers of both sides, later versions compare code points.
  So in XPath `price < "5"` is refused; XQuery, which has one meaning for it, and `lt` compare code
  points.
- Two paths by `=` and `!=` compare string values (a value join: a shared variable); their order is
  code points in XQuery, and refused in XPath.
- `eq`, `ne`, `lt`, ... compare single values: they are taken where a side finds at most one node.
- string() and number() of a path that finds at most one node say what they say when there is none.
- count() is compared where the comparison only asks whether there is any.
"""

from __future__ import annotations

import operator as operators
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from math import ceil, floor, nan
from typing import Any

from axlog.language.pattern import Comparison, ValueConstraint, Variable
from axlog.language.xpath_growing import Choice, Conjunction, Item
from axlog.language.xpath_hanging import Built, Found, Hanging, Site, absent, either
from axlog.language.xpath_routes import Trail
from axlog.language.xpath_steps import DOCUMENT
from axlog.language.xpath_tree import (
    Binary,
    Call,
    Constant,
    Context,
    Expression,
    Path,
    Reference,
)
from axlog.language.xpath_tree import (
    Sequence as Items,
)

MIRRORED = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_HOLDS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operators.eq, "!=": operators.ne, "<": operators.lt,
    "<=": operators.le, ">": operators.gt, ">=": operators.ge,
}  # fmt: skip
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

    def mirrored(self) -> Operator:
        return Operator(MIRRORED[self.symbol], self.is_single, self.at)


class Comparing(Hanging):
    """Adds comparisons."""

    def compare(self, comparison: Binary, site: Site) -> Found:
        """What must hold for a comparison to be true."""
        written = comparison.operator
        operator = Operator(_SINGLE.get(written, written), written in _SINGLE, comparison.at)
        left, right = self._operand(comparison.left), self._operand(comparison.right)
        if left.side is Side.CONSTANTS or right.side is Side.VALUE:
            left, operator, right = right, operator.mirrored(), left
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
                self._check_values_order(operator)
                item = Comparison(operator.mirrored().symbol, Variable(left.variable))
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
            case "string" | "number":
                trails = tuple(self.spreading.trails(inside))
                is_there = all(not trail.steps for trail in trails)
                side = Side.NUMBER
                if call.name == "string":
                    side = Side.NODES if is_there else Side.STRING
                return Operand(side, call.at, trails)
            case "count" if call.arguments:
                return Operand(Side.COUNT, call.at, tuple(self.spreading.trails(inside)))
            case "position" | "last":
                advice = "[1] on following-sibling::* or preceding-sibling::*"
                raise self.unsupported(f"{call.name}() here", call.at, advice=advice)
            case "doc" | "document" | "collection":
                return Operand(Side.NODES, call.at, tuple(self.spreading.trails(call)))
        raise self.unsupported(f"comparing {call.name}()", call.at, advice="the condition itself")

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
        is_clear = operator.is_single or self.is_xquery
        if isinstance(value, str) and operator.is_order and not is_clear:
            raise self.unsupported(
                "the order of strings, which XPath's versions define differently,",
                operator.at,
                advice=_number_advice(value),
            )
        return Comparison(operator.symbol, value)

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
        self._check_values_order(operator)
        shared = Variable(self.fresh_variable())
        bound = Comparison("=", shared)
        compared = Comparison(operator.mirrored().symbol, shared)
        first = self.exists(left.trails, site, [bound])
        second = self.exists(right.trails, site, [compared])
        return None if first is None or second is None else first + second

    def _check_values_order(self, operator: Operator) -> None:
        if operator.is_order and not operator.is_single and not self.is_xquery:
            raise self.unsupported(
                "the order of two paths",
                operator.at,
                expected="`=` or `!=` between paths",
                advice="a comparison with a number",
            )

    def _constrain(self, left: Operand, operator: Operator, right: Operand, site: Site) -> Found:
        """A comparison of a value that the whole query has."""
        if site.lifted is None or len(right.values) > 1:
            what = "a variable's value inside `or`, `not` or beside several constants"
            raise self.unsupported(what, operator.at)
        other: Variable | str | float = Variable(right.variable)
        if right.values:
            other = right.values[0]
        self.variables.where.append(
            ValueConstraint(Variable(left.variable), operator.symbol, other)
        )
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


def _number_advice(value: str) -> str:
    try:
        float(value)
    except ValueError:
        return '. lt "...", which compares strings by code point'
    return f"the number without quotes: {value}"
