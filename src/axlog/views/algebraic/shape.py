"""A pattern as a tree of nodes, each with a label test and a selection, and outputs.

    v = e_v(σ_1(R_1) ⋈ σ_2(R_2) ⋈ ... ⋈ σ_k(R_k))            (paper 5, section 3.1)

R_i are the nodes that pass a test, and the joins are the edges. σ_i are comparisons with constants
and, beyond the paper, `or` and `not` whose bindings are not used outside. Both are conditions on
one node, which an update below the node may flip. Node 0 is the document node, the root of every
pattern, which no update moves. The nodes of the pattern are 1 to k in the order of the text. `or`
and `not` at node 0 (an absolute path in a predicate: `//order[not(/shop/stop)]`) select no
relation: while they do not hold, the view has no rows (`Shape.guards`).

Declined: axes that do not go down, variables that join, constraints between values, and outputs
bound inside `or`. Counting keeps those patterns.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

from axlog.document.tree import COMMENT_LABEL, INSTRUCTION_LABEL, TEXT_LABEL
from axlog.query.normalize import bound_names, normalise
from axlog.query.pattern import (
    AnyComment,
    AnyInstruction,
    AnyNode,
    AnyText,
    Axis,
    Branch,
    Collect,
    Comparison,
    Kind,
    Literal,
    Name,
    Not,
    Or,
    Output,
    PartialName,
    Pattern,
    PatternNode,
    Test,
    TimeConstraint,
    Variable,
    Wildcard,
    branches_of,
)
from axlog.views.algebraic.tables import Column, node_column

MOST_NODES = 24
"""The most nodes of a pattern: larger patterns have too many terms."""

ANY_ELEMENT, ANY_ATTRIBUTE, ANYTHING = "*", "@*", "."
"""Classes of labels, which no node has as its name."""

OF_NODES = (Kind.ID, Kind.VAL, Kind.CONT)
ROOT = 0
_ROOT_STEP = PatternNode(Axis.SELF, AnyNode())


def wanted_of(step: PatternNode) -> str:
    """The label that the nodes of a step have, or the class of labels."""
    is_attribute = step.axis is Axis.ATTRIBUTE
    match step.test:
        case Name(label=label):
            return f"@{label}" if is_attribute else label
        case Wildcard():
            return ANY_ATTRIBUTE if is_attribute else ANY_ELEMENT
        case AnyText() | Literal():
            return TEXT_LABEL
        case AnyComment():
            return COMMENT_LABEL
        case AnyInstruction():
            return INSTRUCTION_LABEL
    return ANYTHING


def is_by_content(test: Test) -> bool:
    """Whether a test depends on more than a kind or a whole name: on a string, a target, a part."""
    if isinstance(test, AnyInstruction):
        return bool(test.target)
    return isinstance(test, Literal | PartialName)


@dataclass(frozen=True)
class ShapeNode:
    """One pattern node: its edge, its test, its selection."""

    number: int
    step: PatternNode
    above: int
    below: tuple[int, ...] = ()
    conditions: tuple[Branch, ...] = ()
    collects: tuple[Collect, ...] = ()
    values: tuple[int, ...] = ()  # outputs that show its label, time or string value

    @cached_property
    def constants(self) -> tuple[Comparison, ...]:
        return tuple(c for c in self.step.comparisons if not isinstance(c.operand, Variable))

    @cached_property
    def is_selective(self) -> bool:
        """Whether it has conditions besides its test."""
        return bool(self.constants or self.conditions)

    @cached_property
    def reads_below(self) -> bool:
        """Whether a change below a node can change its conditions or its shown values."""
        return bool(self.step.comparisons or self.conditions)

    @cached_property
    def wanted(self) -> str:
        """The label that its nodes have, or the class of labels (see `labels`)."""
        return wanted_of(self.step)

    @cached_property
    def is_plain(self) -> bool:
        """Whether the label alone decides that a node is in its relation."""
        return not self.is_selective and not is_by_content(self.step.test)

    def __str__(self) -> str:
        test = str(PatternNode(Axis.CHILD, self.step.test)).removeprefix("/")
        return f"@{test}" if self.step.axis is Axis.ATTRIBUTE else test


@dataclass(frozen=True, eq=False)
class Shape:
    """The nodes of a pattern, the key of its rows, and their outputs."""

    pattern: Pattern
    nodes: tuple[ShapeNode, ...]
    named: dict[str, int]
    key: tuple[Column, ...]
    times: tuple[TimeConstraint, ...]
    anchors: dict[str, int] = field(default_factory=dict)  # name inside a collect to its node

    @cached_property
    def guards(self) -> tuple[Branch, ...]:
        """The conditions at the document node: without them there are no rows."""
        return self.nodes[ROOT].conditions

    @cached_property
    def guarding(self) -> tuple[Shape, ...]:
        """The patterns of those conditions, each as a view without outputs."""
        found: list[tuple[Branch, ...]] = []
        for guard in self.guards:
            if isinstance(guard, Or):
                found += guard.alternatives
            elif isinstance(guard, Not):
                found.append(guard.branches)
        return tuple(shape_of(Pattern(branches)) for branches in found)

    @cached_property
    def needed(self) -> frozenset[Column]:
        """The columns that rows or constraints are made of."""
        constrained = {node_column(self.named[n]) for each in self.times for _, n in each.terms}
        return frozenset(self.key) | constrained

    @cached_property
    def stored(self) -> frozenset[int]:
        """The pattern nodes whose ids identify a row."""
        return frozenset(column.number for column in self.key if column.kind == "node")

    @cached_property
    def subpatterns(self) -> tuple[tuple[int, ...], ...]:
        """For each node, itself and all below it, parents first."""
        found: list[tuple[int, ...]] = [()] * len(self.nodes)
        for node in reversed(self.nodes):
            below = [number for child in node.below for number in found[child]]
            found[node.number] = (node.number, *below)
        return tuple(found)

    @cached_property
    def above(self) -> tuple[tuple[int, ...], ...]:
        """For each node, the nodes above it, the nearest first, the document node left out."""
        found: list[tuple[int, ...]] = [()]
        for node in self.nodes[1:]:
            found.append(() if node.above == ROOT else (node.above, *found[node.above]))
        return tuple(found)

    @cached_property
    def depths(self) -> tuple[int | None, ...]:
        """For each node, the depth of its matches, if only child steps lead to it."""
        found: list[int | None] = [0]
        for node in self.nodes[1:]:
            above = found[node.above]
            near = node.step.axis in (Axis.CHILD, Axis.ATTRIBUTE)
            found.append(above + 1 if near and above is not None else None)
        return tuple(found)

    @cached_property
    def kept_above(self) -> tuple[frozenset[Column], ...]:
        """For each subpattern, the columns of it that rows or constraints are made of."""
        return tuple(
            frozenset(column for column in self.needed if self.home(column) in inside)
            for inside in map(set, self.subpatterns)
        )

    def home(self, column: Column) -> int:
        """The node that a column is about."""
        if column.kind == "node":
            return column.number
        return next(node.number for node in self.nodes if column.number in node.values)

    def __str__(self) -> str:
        return " ⋈ ".join(f"R_{node}" for node in self.nodes[1:])


def refusal(pattern: Pattern) -> str | None:
    """Why the algebra cannot keep a pattern, or None."""
    normal = normalise(pattern)
    variables: Counter[str] = Counter()
    nodes = 0
    for branch, is_inside in _every(normal.branches):
        if isinstance(branch, Not) and branch.where:
            return "a constraint is inside `not`"
        if not isinstance(branch, PatternNode):
            continue
        nodes += not is_inside
        if not branch.axis.is_downward:
            return f"it has the axis {branch.axis.value}"
        operands = [comparison.operand for comparison in branch.comparisons]
        if isinstance(branch.test, Variable):
            variables[branch.test.name] += 1
        for comparison, operand in zip(branch.comparisons, operands, strict=True):
            if isinstance(operand, Variable):
                variables[operand.name] += 1
                if comparison.operator != "=":
                    return "it compares values of variables"
    if any(count > 1 for count in variables.values()):
        return "variables join parts of it"
    if nodes > MOST_NODES:
        return f"it has more than {MOST_NODES} nodes"
    return _needs_inside(normal)


def _needs_inside(normal: Pattern) -> str | None:
    """Why bindings of an `or` are needed outside, or which constraint is not on times."""
    plain = _plain_names(normal.branches)
    collected = {n for b, _ in _every(normal.branches) if isinstance(b, Collect)
                 for n in bound_names((b.node,))}  # fmt: skip
    bound = _plain_variables(normal.branches)
    for output in normal.outputs:
        known = bound if output.kind is Kind.VARIABLE else plain | collected
        if output.of not in known:
            return "an output is bound inside `or`"
    for constraint in normal.where:
        if not isinstance(constraint, TimeConstraint):
            return "it has a constraint on values"
        if any(name not in plain for _, name in constraint.terms):
            return "a constraint names a node inside `or`"
    return None


def _plain_names(branches: tuple[Branch, ...]) -> set[str]:
    return {b.name for b in _positive(branches) if b.name is not None}


def _plain_variables(branches: tuple[Branch, ...]) -> set[str]:
    found = set()
    for node in _positive(branches):
        if isinstance(node.test, Variable):
            found.add(node.test.name)
        found |= {c.operand.name for c in node.comparisons if isinstance(c.operand, Variable)}
    return found


def _positive(branches: tuple[Branch, ...]) -> Iterator[PatternNode]:
    """The nodes outside of every connective, in the order of writing."""
    for branch in branches:
        if isinstance(branch, PatternNode):
            yield branch
            yield from _positive(branch.branches)


def _every(branches: tuple[Branch, ...], inside: bool = False) -> Iterator[tuple[Branch, bool]]:
    """Every branch, and whether it stands in a connective."""
    for branch in branches:
        yield branch, inside
        within = inside or not isinstance(branch, PatternNode)
        yield from _every(tuple(branches_of(branch)), within)


@lru_cache(maxsize=256)
def shape_of(pattern: Pattern) -> Shape:
    """The shape of a pattern that `refusal` accepts."""
    return _ShapeBuilder(normalise(pattern)).shape()


class _ShapeBuilder:
    """Builds the shape of one pattern."""

    def __init__(self, pattern: Pattern) -> None:
        self.pattern = pattern
        self.nodes: list[ShapeNode] = []
        self.named: dict[str, int] = {}
        self.anchors: dict[str, int] = {}
        self.variables: dict[str, int] = {}

    def shape(self) -> Shape:
        self._add(_ROOT_STEP, ROOT, self.pattern.branches)
        key = dict.fromkeys(self._key(n, out) for n, out in enumerate(self.pattern.outputs))
        times = tuple(c for c in self.pattern.where if isinstance(c, TimeConstraint))
        shown = {out.of for out in self.pattern.outputs if out.kind is not Kind.VARIABLE}
        self.anchors = {name: at for name, at in self.anchors.items() if name in shown}
        nodes = tuple(self._with_values(node) for node in self.nodes)
        return Shape(self.pattern, nodes, self.named, tuple(key), times, self.anchors)

    def _add(self, step: PatternNode, above: int, branches: tuple[Branch, ...]) -> int:
        number = len(self.nodes)
        self.nodes.append(ShapeNode(number, step, above))
        if step.name is not None:
            self.named[step.name] = number
        for variable in _bound(step):
            self.variables[variable] = number
        below = [self._add(b, number, b.branches) for b in branches if isinstance(b, PatternNode)]
        collects = tuple(b for b in branches if isinstance(b, Collect))
        for collect in collects:
            self.anchors.update(dict.fromkeys(bound_names((collect.node,)), number))
        conditions = tuple(b for b in branches if isinstance(b, Or | Not))
        self.nodes[number] = ShapeNode(number, step, above, tuple(below), conditions, collects)
        return number

    def _key(self, number: int, output: Output) -> Column:
        if output.of in self.anchors and output.kind is not Kind.VARIABLE:
            return node_column(self.anchors[output.of])
        if output.kind in OF_NODES:
            return node_column(self.named[output.of])
        return Column("value", number)

    def _with_values(self, node: ShapeNode) -> ShapeNode:
        shown = tuple(
            number
            for number, output in enumerate(self.pattern.outputs)
            if self._key(number, output).kind == "value" and self._home(output) == node.number
        )
        return ShapeNode(
            node.number, node.step, node.above, node.below, node.conditions, node.collects, shown
        )

    def _home(self, output: Output) -> int:
        return (self.variables if output.kind is Kind.VARIABLE else self.named)[output.of]


def _bound(step: PatternNode) -> set[str]:
    bound = {c.operand.name for c in step.comparisons if isinstance(c.operand, Variable)}
    return bound | ({step.test.name} if isinstance(step.test, Variable) else set())
