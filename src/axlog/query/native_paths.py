"""Parts of predicates in the native text, before the rule around them decides what they are."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from lark import Token

from axlog.query.native_scalars import TimeLiteral, offset_of
from axlog.query.pattern import (
    AnyNode,
    Axis,
    Branch,
    Comparison,
    Literal,
    PatternNode,
    Variable,
)
from axlog.query.steps import Scalar
from axlog.query.syntax_tree import Binary, Call, Reference

OF_POSITIONS = ("last", "position")
VALUE, WHOLE, NODE = "path~", "all~", "node~"
"""How references begin: to a value of a path, to all its nodes, to one of its nodes."""


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
    """An expression over paths. `Reference(".")` is the node's value, `path~n` that of a path.

    `all~n.kind` is a property of all nodes of a path, `node~n.id` one of its nodes; a path None is
    the node of the predicate itself.
    """

    scalar: Scalar
    paths: dict[str, Path | None] = field(default_factory=dict)

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
    """A condition over several values, each of which the pattern binds to one of the variables.

    The names of nodes begin with `#`. Collected paths are there for every node, and not listed.
    `operand` is the condition as written, and `bound` has what binds its values.
    """

    condition: Scalar
    variables: frozenset[str]
    operand: Operand | None = None
    bound: tuple[tuple[str, Branch | Comparison], ...] = ()


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


def of_path(path: Path) -> Conditions:
    return Conditions(
        [chain(path.steps)],
        slashed=[path.start] if path.slashed else [],
        relative=[path.start] if path.relative else [],
        path=path,
    )


def merged(operand: Operand) -> Operand:
    """The expression with equal paths as one value."""
    first: dict[tuple[str, PatternNode | None], str] = {}
    names = {
        name: first.setdefault(
            (name.partition("~")[0], None if path is None else chain(path.steps)), name
        )
        for name, path in operand.paths.items()
        if not name.startswith(NODE)
    }
    if len(first) == len(names):
        return operand
    paths = {name: path for name, path in operand.paths.items() if names.get(name, name) == name}
    return Operand(renamed(operand.scalar, names), paths)


def read_names(expression: Scalar) -> Iterable[str]:
    """The names of the references of an expression, in the order of writing."""
    match expression:
        case Reference(name=name):
            yield name
        case Call(arguments=arguments):
            for each in arguments:
                yield from read_names(each)
        case Binary(left=left, right=right):
            yield from read_names(left)
            yield from read_names(right)


def source_of(name: str) -> str:
    """The name of a reference without a property: `all~1` of `all~1.val`."""
    return name.partition(".")[0] if name.startswith((WHOLE, NODE)) else name


def calls_of(expression: Scalar) -> Iterable[Call]:
    """The calls in an expression."""
    match expression:
        case Call(arguments=arguments):
            yield expression
            for each in arguments:
                yield from calls_of(each)
        case Binary(left=left, right=right):
            yield from calls_of(left)
            yield from calls_of(right)


def calls_positions(expression: Scalar) -> bool:
    return any(each.name in OF_POSITIONS for each in calls_of(expression))


def is_sequence(argument: Any) -> bool:
    """Whether an argument is a path, or computed from all nodes of a path."""
    if isinstance(argument, Operand):
        return any(name.startswith(WHOLE) for name in argument.paths)
    return isinstance(argument, Path) and not argument.looks_like_an_operand


def renamed(expression: Scalar, names: dict[str, str]) -> Scalar:
    """An expression with other names of some references."""
    match expression:
        case Reference(name=name, at=at):
            source = source_of(name)
            return Reference(names.get(source, source) + name[len(source) :], at)
        case TimeLiteral():
            return expression
        case Call(arguments=arguments):
            inside = tuple(renamed(each, names) for each in arguments)
            return replace(expression, arguments=inside)  # type: ignore[arg-type]
        case Binary(left=left, right=right):
            one, other = renamed(left, names), renamed(right, names)
            return replace(expression, left=one, right=other)  # type: ignore[arg-type]
    return expression


def place_of(given: Any) -> int:
    """The offset of a part in the text."""
    if isinstance(given, Path):
        return offset_of(given.start)
    if isinstance(given, Conditions):
        return min([offset_of(token) for token in (*given.slashed, *given.relative)] or [0])
    at: int = given.at
    return at
