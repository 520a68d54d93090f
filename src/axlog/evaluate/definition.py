"""Rows by definition: try every node for every pattern node.

A valuation maps each positive pattern node to a document node that its parent's axis reaches and
that passes its test, so that all occurrences of a variable agree, comparisons and constraints hold,
and nothing matches inside a `not`. A row is a distinct tuple of outputs; its count is the number of
its valuations. Two valuations differ only in:

- the nodes outside of `or` (each multiplies the count), and the joint bindings of the ors:
  variables that all alternatives bind, and names in all alternatives that an output or a constraint
  uses. Ways through an `or` that differ in nothing else are one valuation;
- not in a `collect`, which is no factor. It shows, for each name inside, the nodes that some match
  of its path gives the name, each once, in document order.

Checks that need all bindings of their scope (nots, `!= $x`, constraints) are made at its end, so
the order of writing does not matter. The cost is exponential in the pattern: this module is the
reference for tests of the other evaluators and is not meant to answer queries.
(Paper 2, definition 3; paper 3, definition 3.)
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeAlias

from axlog.document.ids import Id
from axlog.document.serializer import serialise
from axlog.document.tree import DOCUMENT_NODE, Tree
from axlog.errors import QueryError
from axlog.evaluate.definition_axes import passes, reached
from axlog.evaluate.value_tests import comparison
from axlog.query.clock_terms import NOW
from axlog.query.normalize import bound_names, bound_variables, normalise, variables_of
from axlog.query.pattern import (
    Axis,
    Branch,
    Collect,
    Comparison,
    Constraint,
    Kind,
    Not,
    Or,
    Output,
    Pattern,
    PatternNode,
    Test,
    TimeConstraint,
    Variable,
    branches_of,
    nodes_of,
)
from axlog.query.values import compare, compare_numbers

Value: TypeAlias = str | int | Id | tuple["Value", ...]
Key: TypeAlias = tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Answer:
    """One row: its values, and the number of valuations that yield it."""

    values: tuple[Value, ...]
    count: int


@dataclass(frozen=True, slots=True)
class Valuation:
    """One way to match a pattern.

    `nodes` maps the preorder number of every positive pattern node (as in `pattern.nodes()`) to a
    handle; for an `or`, the nodes of one alternative that holds. `gathered` has the nodes of
    collects, `anchors` their anchors, `joined` the values of variables shared with other parts.
    """

    nodes: dict[int, int] = field(default_factory=dict)
    bindings: dict[str, str] = field(default_factory=dict)
    names: dict[str, int] = field(default_factory=dict)
    gathered: dict[str, tuple[int, ...]] = field(default_factory=dict)
    anchors: dict[str, int] = field(default_factory=dict)
    joined: dict[str, tuple[str, ...]] = field(default_factory=dict)


def rows(tree: Tree, pattern: Pattern, most: int | None = None) -> dict[Key, Answer]:
    """Every row by its key: the outputs with each `val` and `cont` replaced by its node's id.

    With `most`, at most this many pairs of a pattern node and a document node are tried.

    A Boolean pattern has the row () or none. The value of a `collect` is a tuple. The key has the
    id of its anchor, so that its changes are updates of one row. If the path joins with variables
    around it, the key has their values too: rows that differ in them collect different nodes at one
    anchor.
    """
    found: dict[Key, Answer] = {}
    for valuation in valuations(tree, pattern, most=most):
        key, values = row_of(tree, pattern, valuation)
        count = found[key].count if key in found else 0
        found[key] = Answer(values, count + 1)
    return found


def sorted_rows(found: dict[Key, Answer]) -> list[tuple[Key, Answer]]:
    """Rows by their output tuples: ids in document order, strings by code point; then by key."""
    return sorted(found.items(), key=lambda item: (item[1].values, item[0]))


def row_of(tree: Tree, pattern: Pattern, valuation: Valuation) -> tuple[Key, tuple[Value, ...]]:
    """The key and the values of a valuation's row."""
    shown = [_shown(tree, output, valuation) for output in pattern.outputs]
    return tuple(key for key, _ in shown), tuple(value for _, value in shown)


def _shown(tree: Tree, output: Output, valuation: Valuation) -> tuple[Value, Value]:
    """The part of an output in the key, and its value."""
    if output.kind is Kind.VARIABLE:
        value = valuation.bindings[output.of]
        return value, value
    if output.of in valuation.gathered:
        pairs = [_of_node(tree, output.kind, node) for node in valuation.gathered[output.of]]
        anchor, joined = tree.id(valuation.anchors[output.of]), valuation.joined[output.of]
        return (anchor, *joined) if joined else anchor, tuple(value for _, value in pairs)
    return _of_node(tree, output.kind, valuation.names[output.of])


def _of_node(tree: Tree, kind: Kind, node: int) -> tuple[Value, Value]:
    if kind is Kind.LABEL:
        return tree.label(node), tree.label(node)
    if kind is Kind.TIME:
        return tree.time(node), tree.time(node)
    if kind is Kind.VAL:
        return tree.id(node), tree.string_value(node)
    if kind is Kind.CONT:
        return tree.id(node), serialise(tree, node)
    return tree.id(node), tree.id(node)


class Places(Protocol):
    """Knows nodes outside of which a pattern node cannot match."""

    def below(self, at: int, branch: PatternNode) -> list[int] | None:
        """The nodes that the pattern node's axis reaches from a node and that it may match, in
        document order; None: all that it reaches.
        """


def valuations(
    tree: Tree,
    pattern: Pattern,
    given: Mapping[str, str] | None = None,
    most: int | None = None,
    places: Places | None = None,
) -> Iterator[Valuation]:
    """Every valuation, each once; of several ways through ors, one.

    With `given`, only those that bind variables to these values, without trying the others.
    `places` knows nodes outside of which a pattern node cannot match then: they are not tried.
    """
    normal = normalise(pattern)
    matcher = _Matcher(tree, most, places)
    plain = set(_plain(normal.branches))
    variables = sorted(bound_variables(normal.branches))
    names = sorted(bound_names(normal.branches) & _used_names(normal))
    seen: set[Hashable] = set()
    start = _Match(bindings=dict(given or {}))
    for match in matcher.scope(normal.branches, normal.where, 0, DOCUMENT_NODE, start):
        counted = (
            tuple(sorted(pair for pair in match.nodes.items() if pair[0] in plain)),
            tuple(match.bindings[variable] for variable in variables),
            tuple(match.names[name] for name in names),
        )
        if counted not in seen:
            seen.add(counted)
            anchors = {n: at for c, _, at in match.collects for n in bound_names((c.node,))}
            gathered, joined = matcher.gather(match), _joined(match)
            yield Valuation(match.nodes, match.bindings, match.names, gathered, anchors, joined)


def _joined(match: _Match) -> dict[str, tuple[str, ...]]:
    """For each name inside a collect, the values of the variables bound outside of its path."""
    found: dict[str, tuple[str, ...]] = {}
    for collect, _, _ in match.collects:
        shared = sorted(variables_of(collect.node) & match.bindings.keys())
        values = tuple(match.bindings[variable] for variable in shared)
        found |= dict.fromkeys(bound_names((collect.node,)), values)
    return found


def _plain(branches: Iterable[Branch], number: int = 0) -> Iterator[int]:
    """The preorder numbers of the nodes outside of `or`, `not` and `collect`."""
    for branch in branches:
        if isinstance(branch, PatternNode):
            yield number
            yield from _plain(branch.branches, number + 1)
        number += _size(branch)


def _size(branch: Branch) -> int:
    return sum(1 for _ in nodes_of(branch))


def _used_names(pattern: Pattern) -> frozenset[str]:
    """The names that an output or a constraint uses."""
    used = {output.of for output in pattern.outputs if output.kind is not Kind.VARIABLE}
    for constraint in constraints_of(pattern):
        if isinstance(constraint, TimeConstraint):
            used |= {name for _, name in constraint.terms}
    return frozenset(used)


def constraints_of(pattern: Pattern) -> Iterator[Constraint]:
    """The constraints of a pattern, including those inside its nots."""
    yield from pattern.where
    for branch in every_branch(pattern):
        if isinstance(branch, Not):
            yield from branch.where


def every_branch(pattern: Pattern) -> Iterator[Branch]:
    """All branches of a pattern at any depth, in no order."""
    waiting = list(pattern.branches)
    while waiting:
        branch = waiting.pop()
        yield branch
        waiting += branches_of(branch)


@dataclass(frozen=True, slots=True)
class _Match:
    """A partial match: its bindings, and the conditions to check at the end of the scope."""

    nodes: dict[int, int] = field(default_factory=dict)
    bindings: dict[str, str] = field(default_factory=dict)
    names: dict[str, int] = field(default_factory=dict)
    pending: tuple[Callable[[_Match], bool], ...] = ()
    collects: tuple[tuple[Collect, int, int], ...] = ()

    def bind(self, variable: str, value: str) -> _Match | None:
        """The match with this binding; None if the variable has another value."""
        known = self.bindings.get(variable)
        if known is None:
            return replace(self, bindings={**self.bindings, variable: value})
        return self if known == value else None

    def wait_for(self, condition: Callable[[_Match], bool]) -> _Match:
        return replace(self, pending=(*self.pending, condition))


class _Matcher:
    """The definition over one tree. `number` is the preorder number of the first node."""

    def __init__(self, tree: Tree, most: int | None = None, places: Places | None = None) -> None:
        self._tree = tree
        self._places = places
        self._most = most
        self._tried = 0
        self._known: dict[tuple[int, Axis, Test], list[int]] = {}
        self._sizes: dict[int, int] = {}  # by identity: branches live as long as their pattern

    def _size(self, branch: Branch) -> int:
        size = self._sizes.get(id(branch))
        if size is None:
            size = self._sizes[id(branch)] = _size(branch)
        return size

    def _candidates(self, at: int, axis: Axis, test: Test) -> list[int]:
        """The nodes at the end of an axis that pass a test; cached."""
        found = self._known.get((at, axis, test))
        if found is None:
            tree = self._tree
            found = [n for n in reached(tree, at, axis) if passes(tree, n, axis, test)]
            self._known[at, axis, test] = found
        return found

    def _reached(self, at: int, branch: PatternNode) -> list[int]:
        """The nodes that a pattern node may match, from a node."""
        known = None if self._places is None else self._places.below(at, branch)
        if known is None:
            return self._candidates(at, branch.axis, branch.test)
        tree = self._tree
        return [node for node in known if passes(tree, node, branch.axis, branch.test)]

    def scope(
        self,
        branches: tuple[Branch, ...],
        where: tuple[Constraint, ...],
        number: int,
        at: int,
        around: _Match,
    ) -> Iterator[_Match]:
        """The matches of a whole scope, after its deferred conditions."""
        for match in self._conjunction(branches, number, at, replace(around, pending=())):
            if all(self._holds(constraint, match) for constraint in where) and all(
                condition(match) for condition in match.pending
            ):
                yield match

    def _conjunction(
        self, branches: tuple[Branch, ...], number: int, at: int, match: _Match
    ) -> Iterator[_Match]:
        if not branches:
            yield match
            return
        first, others = branches[0], branches[1:]
        for longer in self._branch(first, number, at, match):
            yield from self._conjunction(others, number + self._size(first), at, longer)

    def _branch(self, branch: Branch, number: int, at: int, match: _Match) -> Iterator[_Match]:
        match branch:
            case PatternNode():
                for node in self._reached(at, branch):
                    placed = self._place(branch, number, node, match)
                    if placed is not None:
                        yield from self._conjunction(branch.branches, number + 1, node, placed)
            case Or(alternatives=alternatives):
                for alternative in alternatives:
                    yield from self._conjunction(alternative, number, at, match)
                    number += sum(map(_size, alternative))
            case Not(branches=branches, where=where):
                yield match.wait_for(
                    lambda whole: (
                        not any(True for _ in self.scope(branches, where, number, at, whole))
                    )
                )
            case Collect():
                yield replace(match, collects=(*match.collects, (branch, number, at)))

    def _place(self, node: PatternNode, number: int, at: int, match: _Match) -> _Match | None:
        """The match with this pattern node at this document node; None if its values differ."""
        self._tried += 1
        if self._most is not None and self._tried > self._most:
            raise QueryError(
                "AX216",
                f"the query is not answered after {self._most:,} attempts",
                advice="write it without sibling or reverse axes, or with fewer branches",
            )
        names = match.names if node.name is None else {**match.names, node.name: at}
        here = replace(match, nodes={**match.nodes, number: at}, names=names)
        placed: _Match | None = here
        if isinstance(node.test, Variable):
            placed = here.bind(node.test.name, self._tree.label(at))
        for asked in node.comparisons:
            if placed is not None:
                placed = _compared(asked, self._tree.string_value(at), placed)
        return placed

    def _holds(self, constraint: Constraint, match: _Match) -> bool:
        if isinstance(constraint, TimeConstraint):
            times = (
                coefficient * self._time(name, match) for coefficient, name in constraint.terms
            )
            return compare_numbers(sum(times), constraint.operator, constraint.bound)
        right = constraint.right
        operand = match.bindings[right.name] if isinstance(right, Variable) else right
        return comparison(constraint.operator, operand)(match.bindings[constraint.left.name])

    def _time(self, name: str, match: _Match) -> int:
        """The time of a named node, or of the document's clock."""
        if name == NOW and name not in match.names:
            return self._tree.clock
        return self._tree.time(match.names[name])

    def gather(self, match: _Match) -> dict[str, tuple[int, ...]]:
        """For each name inside a collect, the nodes that its matches give it, in document order."""
        gathered: dict[str, tuple[int, ...]] = {}
        for collect, number, at in match.collects:
            inside = list(self.scope((collect.node,), (), number, at, match))
            for name in bound_names((collect.node,)):
                nodes = {found.names[name] for found in inside}
                gathered[name] = tuple(sorted(nodes, key=self._tree.id))
        return gathered


def _compared(asked: Comparison, value: str, match: _Match) -> _Match | None:
    """The match if a node's value fits: `= $x` binds, other uses of a variable are deferred."""
    operand = asked.operand
    if not isinstance(operand, Variable):
        return match if comparison(asked.operator, operand)(value) else None
    if asked.operator == "=":
        return match.bind(operand.name, value)
    return match.wait_for(
        lambda whole: compare(value, asked.operator, whole.bindings[operand.name])
    )


def gather(tree: Tree, path: PatternNode, anchor: int) -> dict[str, tuple[int, ...]]:
    """The nodes of a collected path at one node, by name, in document order."""
    collected = _Match(collects=((Collect(path), 0, anchor),))
    return _Matcher(tree).gather(collected)
