"""The builder of patterns from parse trees of the native text, bottom-up and without recursion.

It has one method for each rule of `native.lark`. It keeps the offsets of names, variables,
constraints and outputs for `normalize.check`, which validates the result. The builder itself
refuses only errors in the text: an unknown axis, an undeclared prefix, a path with a wrong start.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any, NoReturn

from lark import Token

from axlog.errors import QueryError, QuerySyntaxError, UnsupportedError
from axlog.query.aggregate_patterns import binds
from axlog.query.clock_terms import names_now
from axlog.query.native_clock import WhereParts
from axlog.query.native_constraints import constant_of, sum_of, time_constraint
from axlog.query.native_scalars import ScalarBuilder, offset_of, unquoted
from axlog.query.native_steps import Asked, QueryParts, built_query
from axlog.query.normalize import check
from axlog.query.pattern import (
    OPERATORS,
    AnyComment,
    AnyInstruction,
    AnyNode,
    AnyText,
    Axis,
    Branch,
    Collect,
    Comparison,
    Constant,
    Constraint,
    Literal,
    Moment,
    Name,
    Not,
    Number,
    Or,
    Pattern,
    PatternNode,
    Test,
    ValueConstraint,
    Variable,
    Wildcard,
)
from axlog.query.positions import Places, place_at
from axlog.query.steps import Scalar, Step
from axlog.query.syntax_tree import Binary, Reference, operands
from axlog.query.syntax_tree import Constant as Written
from axlog.query.time_literals import exact_number, microseconds_of_date
from axlog.query.values import mirrored, typed

_UNSUPPORTED_AXES = ("following", "preceding", "namespace")
_ATTRIBUTE_TESTS = ("NAME", "EXPANDED_NAME", "STAR", "PREFIX_STAR")


@dataclass
class _Conditions:
    """A conjunction that is being built; the enclosing rule decides the node of its comparisons.

    `slashed` and `relative` are the paths that begin with `/` and without a slash. The enclosing
    rule decides which of the two is wrong. (`//c` is allowed everywhere.)
    """

    items: list[Branch | Comparison] = field(default_factory=list)
    slashed: list[Token] = field(default_factory=list)
    relative: list[Token] = field(default_factory=list)
    path: _Path | None = None  # if it is one path and nothing else

    def branches(self) -> tuple[Branch, ...]:
        return tuple(
            PatternNode(Axis.SELF, AnyNode(), comparisons=(item,))
            if isinstance(item, Comparison)
            else item
            for item in self.items
        )

    def take(self, other: _Conditions) -> None:
        self.items += other.items
        self.slashed += other.slashed
        self.relative += other.relative


@dataclass(frozen=True, slots=True)
class TypedComparison(Binary):
    """A comparison that reads both sides as a type: `$x < "2024-05-01" as xs:date`."""

    type_: Token = field(default_factory=lambda: Token("TYPE", ""))


@dataclass
class _Step:
    node: PatternNode
    start: Token
    has_axis: bool


@dataclass
class _Path:
    start: Token
    steps: list[tuple[str, _Step]]  # the slash before a step, the step
    slashed: bool
    relative: bool

    @property
    def looks_like_an_operand(self) -> bool:
        step = self.steps[0][1]
        is_bare = self.relative and self.start is step.start and len(self.steps) == 1
        return is_bare and isinstance(step.node.test, Variable | Literal) and not step.has_axis


class PatternBuilder(ScalarBuilder):
    """For one text: `transform(tree)` gives pattern and steps, `places()` the offsets of names."""

    def __init__(self, text: str, namespaces: Mapping[str, str]) -> None:
        super().__init__(text)
        self._namespaces = namespaces
        self._names: list[Token] = []
        self._variables: list[Token] = []
        self._where: list[int] = []
        self._outputs: list[int] = []
        self._roots: list[tuple[int, _Path]] = []
        self._collects: list[Token] = []

    def places(self) -> Places:
        """The offsets of names, variables, constraints and outputs, in the order of writing."""
        return Places(
            self._text,
            names=_by_word(self._names),
            variables=_by_word(self._variables),
            where=sorted(self._where),
            outputs=self._outputs,
            collects=_offsets(self._collects),
        )

    # the query

    def start(self, children: list[Any]) -> tuple[Pattern, tuple[Step, ...]]:
        branches, where, outputs, having, order, limit = children
        parted = WhereParts.of(where or (), not names_now(branches), self._constraint)
        parts = QueryParts(self._text, parted, outputs or (), having, order or (), limit)
        if parts.has_groups:
            branches = self._with_ends(branches)
        pattern = Pattern(branches, tuple(parted.constraints))
        self._where = parted.offsets
        if parted.clock_at is not None:
            check(pattern, self.places())  # now: its constraints on the clock leave the pattern
        built = built_query(pattern, parts)
        self._outputs = built.offsets
        return built.pattern, built.steps

    def _with_ends(self, branches: tuple[Branch, ...]) -> tuple[Branch, ...]:
        """The paths of the query with a name for the node at the end of each.

        An aggregate counts the nodes that a path ends at, also if nothing is bound to them.
        """
        found = list(branches)
        for number, (at, path) in enumerate(self._roots, 1):
            last = path.steps[-1][1]
            if not binds(last.node):
                last.node = replace(last.node, name=f"end~{number}")
                found[at] = _chain(path.steps)
        return tuple(found)

    def roots(self, children: list[_Conditions]) -> tuple[Branch, ...]:
        at = 0
        for child in children:
            if child.path is not None:
                self._roots.append((at, child.path))
            at += len(child.items)
        conditions = self.conjunction(children)
        for token in conditions.relative[:1]:
            self._refuse(
                token,
                "a path of the query starts at the document",
                expected="`/` or `//`",
                advice="write /a for the root element, //a for any element",
            )
        return conditions.branches()

    # conditions

    def conjunction(self, children: list[_Conditions]) -> _Conditions:
        whole, *others = children
        for other in others:
            whole.take(other)
            whole.path = None
        return whole

    def alternatives(self, children: list[_Conditions]) -> _Conditions:
        whole = _Conditions()
        for child in children:
            whole.take(child)
        whole.items = [Or(tuple(child.branches() for child in children))]
        return whole

    def negation(self, children: list[_Conditions]) -> _Conditions:
        (inside,) = children
        return replace(inside, items=[Not(inside.branches())], path=None)

    def collection(self, children: list[Any]) -> _Conditions:
        token: Token = children[0]
        inside: _Conditions = children[1]
        self._collects.append(token)
        (node,) = inside.items
        if not isinstance(node, PatternNode):
            self._refuse(token, "collect(...) takes a path", expected="a path")
        return replace(inside, items=[Collect(node)], path=None)

    def condition(self, children: list[Any]) -> _Conditions:
        path, operator, operand, type_ = children
        if operator is not None:
            if path.looks_like_an_operand:
                self._refuse(
                    path.start,
                    f"this would compare a child node, not {path.start} itself",
                    advice=f"{path.start}[. {operator} ...] if a child node is meant; "
                    f"variables are compared at the end: where $x {operator} ...",
                )
            last = path.steps[-1][1]
            compared = (*last.node.comparisons, self._comparison(operator, operand, type_))
            last.node = replace(last.node, comparisons=compared)
        return _Conditions(
            [_chain(path.steps)],
            slashed=[path.start] if path.slashed else [],
            relative=[path.start] if path.relative else [],
            path=path,
        )

    def own_value(self, children: list[Any]) -> _Conditions:
        dot, operator, operand, type_ = children
        return _Conditions([self._comparison(operator, operand, type_)], relative=[dot])

    def _comparison(
        self, operator: str, operand: Constant | Variable, type_: Token | None
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

    # paths

    def relative_path(self, children: list[Any]) -> _Path:
        return _Path(children[0].start, _pairs(["/", *children]), slashed=False, relative=True)

    def slashed_path(self, children: list[Any]) -> _Path:
        start = children[0]
        return _Path(start, _pairs(children), slashed=start == "/", relative=False)

    def dotted_path(self, children: list[Any]) -> _Path:
        dot, *rest = children
        return _Path(dot, _pairs(rest), slashed=False, relative=True)

    def slash(self, children: list[Token]) -> Token:
        return children[0]

    def step(self, children: list[Any]) -> _Step:
        axis_token, test_token, name, *predicates = children
        axis = Axis.CHILD if axis_token is None else self._axis(axis_token)
        if name is not None:
            self._names.append(name)
        node = PatternNode(
            axis,
            self._test(test_token, axis),
            name=None if name is None else name[1:],
            comparisons=tuple(item for own, _ in predicates for item in own),
            branches=tuple(item for _, branches in predicates for item in branches),
        )
        return _Step(node, axis_token or test_token, has_axis=axis_token is not None)

    def predicate(self, children: list[_Conditions]) -> tuple[list[Comparison], list[Branch]]:
        (conditions,) = children
        for token in conditions.slashed[:1]:
            self._refuse(
                token,
                "inside [...] a path starts at the node of the predicate",
                expected="a path without a leading `/`",
                advice="write b for a child, //b for a descendant",
            )
        own = [item for item in conditions.items if isinstance(item, Comparison)]
        return own, [item for item in conditions.items if not isinstance(item, Comparison)]

    def _axis(self, token: Token) -> Axis:
        name = "attribute" if token == "@" else token[:-2].strip()
        known = [axis.value for axis in Axis]
        if name in _UNSUPPORTED_AXES:
            raise UnsupportedError(
                "AX211", f"the axis {name} is not supported", place=self._place(token)
            )
        if name not in known:
            self._refuse(token, f"there is no axis {name}", expected="one of " + ", ".join(known))
        return Axis(name)

    # tests

    def test(self, children: list[Token]) -> Token:
        return children[0]

    def _test(self, token: Token, axis: Axis) -> Test:
        if axis is Axis.ATTRIBUTE and token.type not in _ATTRIBUTE_TESTS:
            self._refuse(
                token,
                "an attribute is selected by its name",
                expected="a name or `*`",
                advice='write @name/"v" or @name = "v": the value is a text below the attribute',
            )
        match token.type:
            case "STAR":
                return Wildcard()
            case "STRING":
                return Literal(unquoted(token))
            case "VARIABLE":
                return self._variable(token)
            case "TEXT_TEST":
                return AnyText()
            case "NODE_TEST":
                return AnyNode()
            case "COMMENT_TEST":
                return AnyComment()
            case "INSTRUCTION_TEST":
                target = token[token.index("(") + 1 : -1].strip()
                return AnyInstruction(unquoted(target) if target else None)
            case "NAME":
                return Name(self._expanded(token, axis))
            case "EXPANDED_NAME":
                uri, _, local = token[2:].rpartition("}")
                return Name(f"{{{uri}}}{local}" if uri else local)
            case "DOTS":
                self._refuse(token, "`..` is not part of this language", advice="parent::node()")
        raise UnsupportedError(
            "AX211",
            f"{token} is not supported",
            place=self._place(token),
            expected="a whole name or `*`",
        )

    def _expanded(self, token: Token, axis: Axis) -> str:
        prefix, colon, local = str(token).rpartition(":")
        if not colon and axis is Axis.ATTRIBUTE:  # the default namespace is for elements
            return local
        uri = self._namespaces.get(prefix)
        if uri is None and colon:
            raise QueryError(
                "AX206",
                f"the prefix {prefix} is not declared",
                place=self._place(token),
                expected="one of " + ", ".join(sorted(p for p in self._namespaces if p)),
                advice="declare it in the namespaces given with the query, or write Q{uri}name",
            )
        return f"{{{uri}}}{local}" if uri else local

    def _variable(self, token: Token) -> Variable:
        self._variables.append(token)
        return Variable(token[1:])

    # operands

    def operand(self, children: list[Any]) -> Constant | Variable:
        (value,) = children
        constant: Constant = value
        return self._variable(value) if isinstance(value, Token) else constant

    def string(self, children: list[Token]) -> str:
        return unquoted(children[0])

    def number(self, children: list[Any]) -> Number:
        sign, digits = children
        exact_number(digits, self._place(digits))  # not too long
        return Number(Decimal(f"{sign or ''}{digits}"))

    def moment(self, children: list[Token]) -> Moment:
        (token,) = children
        written = unquoted(token)
        return Moment(microseconds_of_date(written, self._place(token)), written)

    # constraints

    def where(self, children: list[Scalar]) -> tuple[Scalar, ...]:
        return tuple(part for child in children for part in operands(child, "and"))  # type: ignore[arg-type]

    def constraint(self, children: list[Any]) -> Scalar:
        left, operator, right, type_ = children
        if operator is None:
            whole: Scalar = left
            return whole
        compared = Binary(str(operator), left, right, left.at)
        if type_ is None:
            return compared
        return TypedComparison(str(operator), left, right, left.at, type_)

    def _constraint(self, conjunct: Scalar) -> Constraint | None:
        """A condition as a constraint of the pattern; None if it is a step after it."""
        if not isinstance(conjunct, Binary) or conjunct.operator not in OPERATORS:
            return None
        operator, left, right = conjunct.operator, conjunct.left, conjunct.right
        type_ = conjunct.type_ if isinstance(conjunct, TypedComparison) else None
        if not _is_variable(left) and _is_variable(right):
            operator, left, right = mirrored(operator), right, left
        if _is_variable(left):
            return self._value_constraint(operator, left, right, type_)
        one, other = sum_of(left), sum_of(right)
        if type_ is not None:
            self._refuse(type_, "times have no type", expected="a variable on one side")
        if one is None or other is None:
            wrong = right if other is None else left
            if _is_text(wrong) and (one or other or _is_text(left)):
                self._refuse_at(
                    wrong.at, "a time is not a string", advice='date "2024-05-01" for a date'
                )
            return None
        constraint = time_constraint(one, operator, other)
        if constraint is None:
            self._refuse_at(conjunct.at, "the constraint names no node, or its names cancel out")
        return constraint

    def _value_constraint(
        self, operator: str, left: Any, right: Any, type_: Token | None
    ) -> Constraint | None:
        operand: Constant | Variable | None = None
        if _is_variable(right):
            operand = Variable(right.name)
        elif _is_text(right):
            operand = right.value
        elif (side := sum_of(right)) is not None:
            operand = constant_of(side)
            if operand is None:
                self._refuse_at(
                    side.at,
                    "a variable has a value, not a time",
                    expected="a variable, a number, a string or a date",
                )
        if operand is None:
            if type_ is not None:
                self._refuse(type_, "this comparison has no type", advice="xs:date($x) < ...")
            return None
        compared = self._comparison(operator, operand, type_)
        return ValueConstraint(Variable(left.name), compared.operator, compared.operand)

    def _refuse_at(
        self, at: int, message: str, expected: str | None = None, advice: str | None = None
    ) -> NoReturn:
        raise QuerySyntaxError(
            "AX201", message, place=place_at(self._text, at), expected=expected, advice=advice
        )

    # outputs

    def returns(self, children: list[Asked]) -> tuple[Asked, ...]:
        return tuple(children)

    def output(self, children: list[Any]) -> Asked:
        expression, alias = children
        return Asked(expression, alias)

    def having(self, children: list[Scalar]) -> Scalar:
        return children[0]

    def order(self, children: list[tuple[Scalar, bool]]) -> tuple[tuple[Scalar, bool], ...]:
        return tuple(children)

    def sort_key(self, children: list[Any]) -> tuple[Scalar, bool]:
        expression, direction = children
        return expression, direction == "descending"

    def limit(self, children: list[Token]) -> int:
        (token,) = children
        if not token.isdecimal() or len(token) > 9:
            self._refuse(token, "a limit is a whole number", expected="limit 10")
        return int(token)

    def alias(self, children: list[Token]) -> str:
        (token,) = children
        return unquoted(token) if token.type == "STRING" else str(token)


def _pairs(parts: Sequence[Any]) -> list[tuple[str, _Step]]:
    return list(zip((str(slash) for slash in parts[::2]), parts[1::2], strict=True))


def _chain(steps: Iterable[tuple[str, _Step]]) -> PatternNode:
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


def _is_variable(side: object) -> bool:
    return isinstance(side, Reference) and not side.name.startswith("#") and "." not in side.name


def _is_text(side: object) -> bool:
    return isinstance(side, Written) and isinstance(side.value, str)


def _offsets(tokens: Iterable[Token]) -> list[int]:
    return sorted(offset_of(token) for token in tokens)


def _by_word(tokens: Iterable[Token]) -> dict[str, list[int]]:
    places: dict[str, list[int]] = {}
    for token in sorted(tokens, key=offset_of):
        places.setdefault(token[1:], []).append(offset_of(token))
    return places
