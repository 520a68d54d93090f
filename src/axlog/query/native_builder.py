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

from lark import Token, Transformer_NonRecursive

from axlog.document.times import SECOND, UNITS
from axlog.errors import Place, QueryError, QuerySyntaxError, UnsupportedError
from axlog.query.native_constraints import Sum, added, constant_of, time_constraint
from axlog.query.pattern import (
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
    Kind,
    Literal,
    Moment,
    Name,
    Not,
    Number,
    Or,
    Output,
    Pattern,
    PatternNode,
    Test,
    ValueConstraint,
    Variable,
    Wildcard,
)
from axlog.query.positions import Places, place_at
from axlog.query.time_literals import exact_number, microseconds_of_date
from axlog.query.values import mirrored, typed

_UNSUPPORTED_AXES = ("following", "preceding", "namespace")
_ATTRIBUTE_TESTS = ("NAME", "EXPANDED_NAME", "STAR", "PREFIX_STAR")
_KINDS = tuple(kind.value for kind in Kind if kind is not Kind.VARIABLE)


@dataclass
class _Conditions:
    """A conjunction that is being built; the enclosing rule decides the node of its comparisons.

    `slashed` and `relative` are the paths that begin with `/` and without a slash. The enclosing
    rule decides which of the two is wrong. (`//c` is allowed everywhere.)
    """

    items: list[Branch | Comparison] = field(default_factory=list)
    slashed: list[Token] = field(default_factory=list)
    relative: list[Token] = field(default_factory=list)

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


class PatternBuilder(Transformer_NonRecursive[Token, Any]):
    """For one text: `transform(tree)` gives the pattern, `places()` the offsets of its names."""

    def __init__(self, text: str, namespaces: Mapping[str, str]) -> None:
        super().__init__()
        self._text = text
        self._namespaces = namespaces
        self._names: list[Token] = []
        self._variables: list[Token] = []
        self._where: list[Token] = []
        self._outputs: list[Token] = []
        self._collects: list[Token] = []

    def places(self) -> Places:
        """The offsets of names, variables, constraints and outputs, in the order of writing."""
        return Places(
            self._text,
            names=_by_word(self._names),
            variables=_by_word(self._variables),
            where=_offsets(self._where),
            outputs=_offsets(self._outputs),
            collects=_offsets(self._collects),
        )

    def _place(self, token: Token) -> Place:
        return place_at(self._text, _offset(token))

    def _refuse(
        self, token: Token, message: str, expected: str | None = None, advice: str | None = None
    ) -> NoReturn:
        raise QuerySyntaxError(
            "AX201", message, place=self._place(token), expected=expected, advice=advice
        )

    # the query

    def start(self, children: list[Any]) -> Pattern:
        branches, where, outputs = children
        return Pattern(branches, where or (), outputs or ())

    def roots(self, children: list[_Conditions]) -> tuple[Branch, ...]:
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
        return whole

    def alternatives(self, children: list[_Conditions]) -> _Conditions:
        whole = _Conditions()
        for child in children:
            whole.take(child)
        whole.items = [Or(tuple(child.branches() for child in children))]
        return whole

    def negation(self, children: list[_Conditions]) -> _Conditions:
        (inside,) = children
        return replace(inside, items=[Not(inside.branches())])

    def collection(self, children: list[Any]) -> _Conditions:
        token: Token = children[0]
        inside: _Conditions = children[1]
        self._collects.append(token)
        (node,) = inside.items
        if not isinstance(node, PatternNode):
            self._refuse(token, "collect(...) takes a path", expected="a path")
        return replace(inside, items=[Collect(node)])

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
        )

    def own_value(self, children: list[Any]) -> _Conditions:
        dot, operator, operand, type_ = children
        return _Conditions([self._comparison(operator, operand, type_)], relative=[dot])

    def _comparison(
        self, operator: Token, operand: Constant | Variable, type_: Token | None
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
                return Literal(_unquoted(token))
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
                return AnyInstruction(_unquoted(target) if target else None)
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
        return _unquoted(children[0])

    def number(self, children: list[Any]) -> Number:
        sign, digits = children
        exact_number(digits, self._place(digits))  # not too long
        return Number(Decimal(f"{sign or ''}{digits}"))

    def moment(self, children: list[Token]) -> Moment:
        (token,) = children
        written = _unquoted(token)
        return Moment(microseconds_of_date(written, self._place(token)), written)

    # constraints

    def where(self, children: list[Constraint]) -> tuple[Constraint, ...]:
        return tuple(children)

    def constraint(self, children: list[Any]) -> Constraint:
        left, operator, right, type_ = children
        start = left.start if isinstance(left, Sum) else left
        self._where.append(start)
        if _is_variable(left) or _is_variable(right):
            if not _is_variable(left):
                left, operator, right = right, mirrored(operator), left
            compared = self._comparison(operator, self._right(right), type_)
            return ValueConstraint(Variable(left[1:]), compared.operator, compared.operand)
        if type_ is not None:
            self._refuse(type_, "times have no type", expected="a variable on one side")
        if not isinstance(left, Sum) or not isinstance(right, Sum):
            wrong = right if isinstance(left, Sum) else left
            self._refuse(wrong, "a time is not a string", advice='date "2024-05-01" for a date')
        constraint = time_constraint(left, str(operator), right)
        if constraint is None:
            self._refuse(start, "the constraint names no node, or its names cancel out")
        return constraint

    def _right(self, side: Sum | Token) -> Constant | Variable:
        if isinstance(side, Token):
            return Variable(side[1:]) if _is_variable(side) else _unquoted(side)
        constant = constant_of(side)
        if constant is None:
            self._refuse(
                side.start,
                "a variable has a value, not a time",
                expected="a variable, a number, a string or a date",
            )
        return constant

    def side(self, children: list[Any]) -> Sum | Token:
        side: Sum | Token = children[0]
        return side

    def sum(self, children: list[Any]) -> Sum:
        pairs = zip(children[::2], children[1::2], strict=True)
        terms: list[Sum] = [term.negated() if sign == "-" else term for sign, term in pairs]
        start = children[0] or terms[0].start
        return replace(terms[0], start=start) if len(terms) == 1 else added(start, terms)

    def scaled_time(self, children: list[Token]) -> Sum:
        number, _, name = children
        return Sum(number, {str(name): exact_number(number, self._place(number))})

    def time(self, children: list[Token]) -> Sum:
        (name,) = children
        return Sum(name, {str(name): exact_number("1")})

    def seconds(self, children: list[Token]) -> Sum:
        (number,) = children
        exact = exact_number(number, self._place(number))
        return Sum(number, microseconds=exact * SECOND, plain=Number(Decimal(number)))

    def duration(self, children: list[Token]) -> Sum:
        (token,) = children
        digits = token.rstrip("".join(UNITS))
        exact = exact_number(digits, self._place(token))
        return Sum(token, microseconds=exact * UNITS[token[len(digits) :]])

    def date(self, children: list[Token]) -> Sum:
        moment = self.moment(children)
        exact = exact_number(str(moment.microseconds))
        return Sum(children[0], microseconds=exact, plain=moment)

    # outputs

    def returns(self, children: list[Output]) -> tuple[Output, ...]:
        return tuple(children)

    def output(self, children: list[Any]) -> Output:
        first, *middle, alias = children
        self._outputs.append(first)
        if not middle:
            return Output(Kind.VARIABLE, first[1:], alias)
        (kind,) = middle
        if kind[1:] not in _KINDS:
            known = ", ".join(f"`.{name}`" for name in _KINDS)
            self._refuse(kind, f"a node has no {kind[1:]}", expected=f"one of {known}")
        return Output(Kind(kind[1:]), str(first), alias)

    def alias(self, children: list[Token]) -> str:
        (token,) = children
        return _unquoted(token) if token.type == "STRING" else str(token)


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
    return isinstance(side, Token) and side.type == "VARIABLE"


def _unquoted(token: str) -> str:
    quote = token[0]
    return token[1:-1].replace(quote * 2, quote)


def _offset(token: Token) -> int:
    return token.start_pos or 0


def _offsets(tokens: Iterable[Token]) -> list[int]:
    return sorted(_offset(token) for token in tokens)


def _by_word(tokens: Iterable[Token]) -> dict[str, list[int]]:
    places: dict[str, list[int]] = {}
    for token in sorted(tokens, key=_offset):
        places.setdefault(token[1:], []).append(_offset(token))
    return places
