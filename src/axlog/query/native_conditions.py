"""Conditions in predicates of the native text: paths, comparisons, functions, calculations.

A condition on the value of one node is a comparison of that node: with a constant or a variable, or
by a formula (`[contains(description, "pump")]` is `[description[contains(., "pump")]]`). A
condition over several values (`[price * quantity > 100]`, `[contains(description, $w)]`) binds each
of them to a variable of its own; it holds if it does for some nodes at the ends of its paths. Equal
paths in one condition are one value.
`native_builder.py` adds it to the conditions of `where`.

Operands are not resolved before the rule around them needs branches, because a comparison may be
part of an expression (`if (a > 5) then b else c`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any, NoReturn

from lark import Token

from axlog.errors import QuerySyntaxError, UnsupportedError
from axlog.query.formula import HOLDS, OWN_VALUE, Formula
from axlog.query.native_scalars import ScalarBuilder, TimeLiteral, offset_of, unquoted
from axlog.query.native_text import expression_text
from axlog.query.pattern import (
    AnyNode,
    Axis,
    Branch,
    Collect,
    Comparison,
    Literal,
    Moment,
    Not,
    Number,
    Or,
    PatternNode,
    Variable,
)
from axlog.query.pattern import Constant as Compared
from axlog.query.positions import place_at
from axlog.query.scalar_types import scalar_type
from axlog.query.steps import AGGREGATES, Scalar
from axlog.query.syntax_tree import Binary, Call, Constant, Reference
from axlog.query.values import mirrored, typed

_OF_NODES = ("local-name", "name", "namespace-uri", "node-name", "root")
_PATH = "path~"


@dataclass(frozen=True, slots=True)
class TypedComparison(Binary):
    """A comparison that reads both sides as a type: `$x < "2024-05-01" as xs:date`."""

    type_: Token = field(default_factory=lambda: Token("TYPE", ""))


@dataclass(frozen=True)
class Step:
    """One step of a path: its node, and its first token."""

    node: PatternNode
    start: Token
    test: Token
    has_axis: bool


@dataclass(frozen=True)
class Path:
    """The steps of a path, each with the slash before it."""

    start: Token
    steps: list[tuple[str, Step]]
    slashed: bool  # whether it begins with `/`
    relative: bool  # whether it begins without a slash

    @property
    def last(self) -> PatternNode:
        return self.steps[-1][1].node

    def ending_in(self, node: PatternNode) -> Path:
        """The path with another last node."""
        slash, step = self.steps[-1]
        return replace(self, steps=[*self.steps[:-1], (slash, replace(step, node=node))])

    @property
    def looks_like_an_operand(self) -> bool:
        """Whether it is `$x` or a string alone."""
        step = self.steps[0][1]
        is_bare = self.relative and self.start is step.start and len(self.steps) == 1
        node = step.node
        is_plain = not (node.comparisons or node.branches or node.name or step.has_axis)
        return is_bare and is_plain and isinstance(node.test, Variable | Literal)


@dataclass(frozen=True)
class Operand:
    """An expression over paths. `Reference(".")` is the node's value, `path~n` that of a path."""

    scalar: Scalar
    paths: dict[str, Path] = field(default_factory=dict)

    @property
    def at(self) -> int:
        return self.scalar.at


@dataclass(frozen=True)
class Condition:
    """A comparison of two operands, with the type of both sides if there is one."""

    left: Any
    operator: str
    right: Any
    type_: Token | None
    at: int


@dataclass(frozen=True)
class Extra:
    """A condition over several values, each of which the pattern binds to one of the variables."""

    condition: Scalar
    variables: frozenset[str]


@dataclass
class Conditions:
    """A conjunction that is being built; the enclosing rule decides the node of its comparisons.

    `slashed` and `relative` are the paths that begin with `/` and without a slash. The enclosing
    rule decides which of the two is wrong. (`//c` is allowed everywhere.)
    """

    items: list[Branch | Comparison] = field(default_factory=list)
    slashed: list[Token] = field(default_factory=list)
    relative: list[Token] = field(default_factory=list)
    extras: list[Extra] = field(default_factory=list)
    path: Path | None = None  # if it is one path and nothing else
    parts: tuple[str, list[Any]] | None = None  # `and` or `or`, and what it joins

    def branches(self) -> tuple[Branch, ...]:
        return tuple(
            PatternNode(Axis.SELF, AnyNode(), comparisons=(item,))
            if isinstance(item, Comparison)
            else item
            for item in self.items
        )

    def take(self, other: Conditions) -> None:
        self.items += other.items
        self.slashed += other.slashed
        self.relative += other.relative
        self.extras += other.extras


class ConditionBuilder(ScalarBuilder):
    """The rules of conditions; `native_builder.PatternBuilder` adds those of paths and queries."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._collects: list[Token] = []
        self._paths = 0
        self._values = 0

    # connectives

    def conjunction(self, children: list[Any]) -> Conditions:
        whole = Conditions(parts=("and", children))
        for child in children:
            whole.take(self.conditions(child))
        if len(children) == 1:
            whole.path = self.conditions(children[0]).path
        return whole

    def alternatives(self, children: list[Any]) -> Conditions:
        whole = Conditions(parts=("or", children))
        each = [self.conditions(child) for child in children]
        for child in each:
            whole.take(child)
        whole.items = [Or(tuple(child.branches() for child in each))]
        return whole

    def negation(self, children: list[Any]) -> Conditions:
        inside = self.conditions(children[0])
        return replace(inside, items=[Not(inside.branches())], path=None, parts=None)

    def collection(self, children: list[Any]) -> Conditions:
        token: Token = children[0]
        inside = self.conditions(children[1])
        self._collects.append(token)
        if len(inside.items) != 1 or not isinstance(inside.items[0], PatternNode):
            self._refuse(token, "collect(...) takes a path", expected="a path")
        return replace(inside, items=[Collect(inside.items[0])], path=None, parts=None)

    # operands

    def condition(self, children: list[Any]) -> Any:
        left, operator, right, type_ = children
        if operator is None:
            return left
        return Condition(left, str(operator), right, type_, self._at(left))

    def own_value(self, children: list[Token]) -> Operand:
        return Operand(Reference(OWN_VALUE, offset_of(children[0])))

    def calculation(self, children: list[Any]) -> Operand:
        one, operator, other = children
        left, right = self._operand(one), self._operand(other)
        scalar = self.calculated([left.scalar, operator, right.scalar])
        return Operand(scalar, left.paths | right.paths)

    def signed_operand(self, children: list[Any]) -> Operand:
        sign, inside = children
        operand = self._operand(inside)
        return Operand(self.sign([sign, operand.scalar]), operand.paths)

    def choice(self, children: list[Any]) -> Operand:
        token, *inside = children
        return self._call(inside, lambda scalars: self.conditional([token, *scalars]))

    def operands(self, children: list[Any]) -> list[Any]:
        return children

    def function(self, children: list[Any]) -> Any:
        token, given = children
        name, arguments = str(token), given or []
        if name in ("exists", "empty") and len(arguments) == 1:
            found = self.conditions(arguments[0])
            return found if name == "exists" else self.negation([found])
        if name in AGGREGATES or name in _OF_NODES:
            is_aggregate = name in AGGREGATES
            raise UnsupportedError(
                "AX211",
                f"{name}() in a predicate is not supported",
                place=self._place(token),
                expected="a function of values, such as contains, substring, round",
                advice="bind the values with $x and write the aggregate in `return`, or use XQuery"
                if is_aggregate
                else "a name in any namespace is *:n, any name of one is p:*",
            )
        made = lambda scalars: self.call([token, None, tuple(scalars), None])  # noqa: E731
        return self._call(arguments, made)

    def _call(self, inside: list[Any], made: Callable[[list[Scalar]], Scalar]) -> Operand:
        each = [self._operand(child) for child in inside]
        paths = {name: path for operand in each for name, path in operand.paths.items()}
        return Operand(made([operand.scalar for operand in each]), paths)

    def _operand(self, given: Any) -> Operand:
        """A part of a condition as an expression."""
        match given:
            case Operand():
                return given
            case Path() if given.looks_like_an_operand:
                return Operand(self._plain(given))
            case Path():
                self._paths += 1
                name = f"{_PATH}{self._paths}"
                return Operand(Reference(name, offset_of(given.start)), {name: given})
            case Condition(left=left, operator=operator, right=right, type_=type_, at=at):
                if type_ is not None:
                    self._refuse(type_, "this comparison has no type", advice="xs:date(...) < ...")
                one, other = self._operand(left), self._operand(right)
                compared = Binary(operator, one.scalar, other.scalar, at)  # type: ignore[arg-type]
                return Operand(compared, one.paths | other.paths)
            case Conditions(parts=(word, parts)):
                each = [self._operand(part) for part in parts]
                paths = {name: path for one in each for name, path in one.paths.items()}
                join = self.both if word == "and" else self.disjunction
                return Operand(join([operand.scalar for operand in each]), paths)
            case Conditions(path=Path() as path):
                return self._operand(path)
            case Conditions():
                raise UnsupportedError(
                    "AX211",
                    "`not` and `collect` inside an expression are not supported",
                    expected="a condition beside it: [not(a)][contains(b, 'x')]",
                )
        return Operand(given)

    def _plain(self, path: Path) -> Scalar:
        """`$x` or a string as an expression."""
        test = path.last.test
        at = offset_of(path.start)
        if isinstance(test, Variable):
            return Reference(test.name, at)
        return Constant(unquoted(path.start), at)

    def _at(self, given: Any) -> int:
        if isinstance(given, Path):
            return offset_of(given.start)
        if isinstance(given, Conditions):
            return min([offset_of(token) for token in (*given.slashed, *given.relative)] or [0])
        at: int = given.at
        return at

    # resolution

    def conditions(self, given: Any) -> Conditions:
        """A part of a predicate as branches and comparisons."""
        if isinstance(given, Conditions):
            return given
        if isinstance(given, Path):
            return _of_path(given)
        if isinstance(given, Condition):
            found = self._compared(given)
            if found is not None:
                return found
            return self._resolved(self._both_sides(given))
        operand = self._operand(given)
        if scalar_type(operand.scalar, {}) != "truth":
            self._refuse_at(
                operand.at, "this is a value, not a condition", expected="a comparison: a + 1 > b"
            )
        return self._resolved(operand)

    def _both_sides(self, given: Condition) -> Operand:
        one, other = self._operand(given.left), self._operand(given.right)
        scalar: Binary = Binary(given.operator, one.scalar, other.scalar, given.at)  # type: ignore[arg-type]
        if given.type_ is not None:
            if not all(isinstance(each, Path) for each in (given.left, given.right)):
                self._refuse(
                    given.type_, "this comparison has no type", advice="xs:date(...) < ..."
                )
            scalar = TypedComparison(scalar.operator, scalar.left, scalar.right, given.at,
                                     given.type_)  # fmt: skip
        return Operand(scalar, one.paths | other.paths)

    def _compared(self, given: Condition) -> Conditions | None:
        """A path or the node itself, compared with a constant or a variable; None: otherwise."""
        left, operator, right = given.left, given.operator, given.right
        if isinstance(left, Path) and left.looks_like_an_operand:
            self._refuse(
                left.start,
                f"this would compare a child node, not {left.start} itself",
                advice=f"{left.start}[. {operator} ...] if a child node is meant; "
                f"variables are compared at the end: where $x {operator} ...",
            )
        constant = self._constant(right)
        if constant is None and self._constant(left) is not None:
            left, operator, constant = right, mirrored(operator), self._constant(left)
        if constant is None:
            return None
        if isinstance(left, Path) and not left.looks_like_an_operand:
            compared = self._comparison(operator, constant, given.type_)
            last = left.last
            return _of_path(left.ending_in(
                replace(last, comparisons=(*last.comparisons, compared))
            ))  # fmt: skip
        if isinstance(left, Operand) and left.scalar == Reference(OWN_VALUE, left.at):
            compared = self._comparison(operator, constant, given.type_)
            return Conditions([compared], relative=[Token("DOT", ".", left.at)])
        return None

    def _constant(self, given: Any) -> Compared | Variable | None:
        """An operand as a constant or a variable of the pattern; None if it is neither."""
        if isinstance(given, Path) and given.looks_like_an_operand:
            test = given.last.test
            return test if isinstance(test, Variable) else unquoted(given.start)
        scalar = given.scalar if isinstance(given, Operand) else given
        match scalar:
            case TimeLiteral(microseconds=exact, written=str() as written):
                return Moment(int(exact), written)
            case Constant(exact=Decimal() as number):
                return Number(number)
        return None

    def _comparison(
        self, operator: str, operand: Compared | Variable, type_: Token | None
    ) -> Comparison:
        """A comparison; with `as` and a type, both sides are read as XPath does."""
        if type_ is None:
            return Comparison(str(operator), operand)
        if isinstance(operand, Number) and type_ == "xs:double":
            return Comparison(str(operator), float(operand.value))
        if isinstance(operand, Number):
            operand = str(operand)
        if isinstance(operand, Moment):
            self._refuse(type_, "a date has no other type", advice="write the date as a string")
        return Comparison(typed(str(operator), str(type_)), operand)

    def _resolved(self, operand: Operand) -> Conditions:
        """A condition on values: a formula of one node, or one over several."""
        operand = _merged(operand)
        read = list(dict.fromkeys(_read(operand.scalar)))
        sources = [name for name in read if name == OWN_VALUE or name in operand.paths]
        if not sources:
            self._refuse_at(
                operand.at,
                "the condition reads no value of the document",
                advice="conditions on variables alone are written at the end: where ...",
            )
        if len(read) == 1:
            return self._formula(operand, operand.paths.get(sources[0]))
        return self._over_several(operand, sources)

    def _formula(self, operand: Operand, path: Path | None) -> Conditions:
        scalar = _renamed(operand.scalar, dict.fromkeys(operand.paths, OWN_VALUE))
        formula = Formula(expression_text(scalar), scalar, self._text)
        compared = Comparison(HOLDS, formula)
        if path is None:
            return Conditions([compared], relative=[Token("DOT", ".", operand.at)])
        last = path.last
        found = _of_path(path.ending_in(replace(last, comparisons=(*last.comparisons, compared))))
        return replace(found, path=None)

    def _over_several(self, operand: Operand, sources: list[str]) -> Conditions:
        found = Conditions()
        names: dict[str, str] = {}
        for source in sources:
            names[source] = self._fresh()
            bound = Comparison("=", Variable(names[source]))
            path = operand.paths.get(source)
            if path is None:
                found.items.append(bound)
                continue
            last = path.last
            found.take(
                _of_path(path.ending_in(replace(last, comparisons=(*last.comparisons, bound))))
            )
        variables = frozenset(names.values())
        found.extras.append(Extra(_renamed(operand.scalar, names), variables))
        return found

    def _fresh(self) -> str:
        """The name of a variable that the text does not use."""
        while True:
            self._values += 1
            name = f"value{self._values}"
            if f"${name}" not in self._text:
                return name

    def _refuse_at(
        self, at: int, message: str, expected: str | None = None, advice: str | None = None
    ) -> NoReturn:
        raise QuerySyntaxError(
            "AX201", message, place=place_at(self._text, at), expected=expected, advice=advice
        )


def chain(steps: Iterable[tuple[str, Step]]) -> PatternNode:
    """The steps of a path as nodes, each the last branch of the one before."""
    below: tuple[Branch, ...] = ()
    for slash, step in reversed(list(steps)):
        node = replace(step.node, branches=step.node.branches + below)
        if slash == "//" and step.has_axis:
            node = PatternNode(Axis.DESCENDANT_OR_SELF, AnyNode(), branches=(node,))
        elif slash == "//":
            node = replace(node, axis=Axis.DESCENDANT)
        below = (node,)
    return node


def _of_path(path: Path) -> Conditions:
    return Conditions(
        [chain(path.steps)],
        slashed=[path.start] if path.slashed else [],
        relative=[path.start] if path.relative else [],
        path=path,
    )


def _merged(operand: Operand) -> Operand:
    """The expression with equal paths as one value."""
    first: dict[PatternNode, str] = {}
    names = {
        name: first.setdefault(chain(path.steps), name) for name, path in operand.paths.items()
    }
    if len(first) == len(names):
        return operand
    paths = {name: operand.paths[name] for name in first.values()}
    return Operand(_renamed(operand.scalar, names), paths)


def _read(expression: Scalar) -> Iterable[str]:
    """The names of the references of an expression, in the order of writing."""
    match expression:
        case Reference(name=name):
            yield name
        case Call(arguments=arguments):
            for each in arguments:
                yield from _read(each)
        case Binary(left=left, right=right):
            yield from _read(left)
            yield from _read(right)


def _renamed(expression: Scalar, names: dict[str, str]) -> Scalar:
    """An expression with other names of some references."""
    match expression:
        case Reference(name=name, at=at):
            return Reference(names.get(name, name), at)
        case TimeLiteral():
            return expression
        case Call(arguments=arguments):
            inside = tuple(_renamed(each, names) for each in arguments)
            return replace(expression, arguments=inside)  # type: ignore[arg-type]
        case Binary(left=left, right=right):
            one, other = _renamed(left, names), _renamed(right, names)
            return replace(expression, left=one, right=other)  # type: ignore[arg-type]
    return expression
