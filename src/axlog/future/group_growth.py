"""How many tuples a scenario can still bring: one, one for each tree, or any number.

An aggregate ranges over the distinct tuples of nodes that a pattern binds. A scenario of the
pattern with all these nodes as outputs (`aggregate_patterns.counted_once`) is one such tuple that
can still come. It can come again

- in another tree, if its streams may deliver more trees and no key forbids a second node with its
  value;
- in the same tree, if a node that it binds stands inside of it, other than as an attribute: the
  tree can hold that node twice.

`Capacity.most` is an upper bound. `Capacity.sure` is a number that some future reaches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from math import inf

from axlog.document.cardinality import TEXT, All, Count, Formula, symbols_of
from axlog.document.schema import Schema
from axlog.document.tree import Tree
from axlog.future.capacity import trees_left
from axlog.future.generalized_rows import Need
from axlog.future.keys import constant_of
from axlog.query.aggregate_patterns import binds
from axlog.query.compile import Relation
from axlog.query.pattern import (
    Axis,
    Branch,
    Name,
    Or,
    Pattern,
    PatternNode,
    Variable,
    nodes_of,
)

_ONE = (Axis.ATTRIBUTE, Axis.SELF)


@dataclass(frozen=True, slots=True)
class Capacity:
    """How many tuples a scenario can bring."""

    most: float
    sure: float
    singles: float  # how many tuples with equal arguments can come one by one, alone; 0: unknown
    may_differ: bool  # whether repeated tuples may have different values


def capacity_of(
    tree: Tree, need: Need, known: Mapping[str, object], arguments: frozenset[str] = frozenset()
) -> Capacity:
    """The capacity of a scenario.

    `known`: the values of its columns that are given. `arguments`: the columns that are arguments
    of aggregates.
    """
    if not need.brought:
        return Capacity(1, 1, 0, False)
    future = [(relation, stream) for relation, stream in need.brought if _binding(relation)]
    if tree.types is not None or _replaces(tree, need):
        return Capacity(inf, 1, 0, False)
    fixed = _Fixed(need, known)
    if any(_repeats_inside(relation, need, fixed.perhaps) for relation, _ in future):
        return Capacity(inf, inf, 1 if _is_apart(need) else 0, False)
    if any(_repeats_inside(relation, need, fixed.surely) for relation, _ in future) or any(
        map(_has_or, need.brought)
    ):
        return Capacity(inf, 1, 0, False)
    most: float = 1
    for relation, stream in _independent(tree, need):
        is_only = any(map(fixed.surely, _keys_of(relation, stream, need)))
        most *= 1 if is_only else _left(tree, stream)
    is_free = all(trees_left(tree, stream) is None for _, stream in need.brought)
    is_fresh = not any(map(fixed.perhaps, _all_keys(need)))
    sure: float = 1
    if future and is_free and is_fresh:
        sure = inf
    elif len(need.brought) == 1 and future and most != inf:
        sure = most if is_fresh else 1
    return Capacity(most, sure, _singles(tree, need, fixed, arguments), sure > 1)


def _singles(tree: Tree, need: Need, fixed: _Fixed, arguments: frozenset[str]) -> float:
    """How many tuples trees that match in one way each can bring one by one."""
    if not _is_apart(need):
        return 0
    found: float = 1
    for relation, stream in need.brought:
        if not _binding(relation):
            continue
        repeated = _repeated_with(relation, stream, need)
        keys = {key for pair in repeated for key in _keys_of(*pair, need)}
        if not any(fixed.perhaps(key) or key in arguments for key in keys):
            found = max(found, min(_left(tree, each) for _, each in repeated))
    return found


def _left(tree: Tree, stream: str) -> float:
    left = trees_left(tree, stream)
    return inf if left is None else left


def _independent(tree: Tree, need: Need) -> list[tuple[Relation, str]]:
    """The sub-patterns whose trees determine those of the others: by a key that joins them."""
    binding = [pair for pair in need.brought if _binding(pair[0])]
    found = sorted(binding, key=lambda pair: (-_left(tree, pair[1]), pair[0].name, pair[1]))
    for pair in list(found):
        keys = set(_keys_of(*pair, need))
        if any(other is not pair and not keys.isdisjoint(other[0].bound) for other in found):
            found.remove(pair)
    return found


def _repeated_with(relation: Relation, stream: str, need: Need) -> list[tuple[Relation, str]]:
    """The sub-patterns whose trees must come again for another tree of this one.

    A key wants a new value for each tree of a sub-pattern, and so do all that join on the value.
    """
    found = [(relation, stream)]
    for pair in found:
        keys = set(_keys_of(*pair, need))
        found += [
            other
            for other in need.brought
            if other not in found and not keys.isdisjoint(other[0].bound)
        ]
    return found


def _is_apart(need: Need) -> bool:
    """Whether a scenario needs trees of different streams that match in one way each."""
    streams = [stream for _, stream in need.brought]
    is_apart = len(set(streams)) == len(streams)
    return is_apart and all(_is_plain(relation) for relation, _ in need.brought)


def most_by_types(types: Schema | None, pattern: Pattern) -> float:
    """An upper bound on the tuples of a pattern that the types of a document allow."""
    if types is None:
        return inf
    table = types.document.table
    most: float = 1
    for branch in pattern.branches:
        if isinstance(branch, PatternNode) and branch.axis is Axis.CHILD:
            most *= _inside_by_types(table, branch)
        elif binds_inside(branch):
            return inf
    return most


def _inside_by_types(table: Mapping[str, Formula], node: PatternNode) -> float:
    """How many tuples one match of a node can have."""
    if not isinstance(node.test, Name):
        return 1 if not any(map(binds_inside, node.branches)) else inf
    most: float = 1
    for branch in node.branches:
        if not binds_inside(branch):
            continue
        if not isinstance(branch, PatternNode) or branch.axis not in (Axis.CHILD, *_ONE):
            return inf
        if branch.axis in _ONE:
            continue
        is_text = isinstance(branch.test, Variable) and node.test.label in table
        symbols = set(symbols_of(table[node.test.label])) if is_text else set()
        if is_text and symbols == {TEXT}:
            symbol = TEXT
        elif isinstance(branch.test, Name):
            symbol = branch.test.label
        else:
            return inf
        most *= _most_children(table.get(node.test.label), symbol)
        most *= _inside_by_types(table, branch) if isinstance(branch.test, Name) else 1
    return most


def _most_children(formula: Formula | None, symbol: str) -> float:
    parts = formula.parts if isinstance(formula, All) else (formula,)
    found = inf
    for each in parts:
        if isinstance(each, Count) and each.symbol == symbol and isinstance(each.than, int):
            if each.operator in ("<=", "="):
                found = min(found, each.than)
            elif each.operator == "<":
                found = min(found, each.than - 1)
    return found


def _binding(relation: Relation) -> list[PatternNode]:
    """The nodes of a delivered sub-pattern that an aggregate tells apart, outside `or`."""
    return [] if relation.node is None else [n for n in _outside_or(relation.node) if binds(n)]


def _outside_or(node: PatternNode) -> Iterator[PatternNode]:
    yield node
    for branch in node.branches:
        if isinstance(branch, PatternNode):
            yield from _outside_or(branch)


def _repeats_inside(relation: Relation, need: Need, is_fixed: Callable[[str], bool]) -> bool:
    """Whether one tree can hold several matches that an aggregate tells apart.

    A key forbids a second match with a value that is fixed.
    """
    if relation.node is None:
        return False
    if relation.node.axis not in (Axis.CHILD, *_ONE):  # anywhere in the tree
        return not any(map(is_fixed, _keys_below(relation.node, need)))
    return any(
        _repeats_below(branch, need, is_fixed)
        for branch in relation.node.branches
        if isinstance(branch, PatternNode)
    )


def _repeats_below(node: PatternNode, need: Need, is_fixed: Callable[[str], bool]) -> bool:
    is_several = node.axis not in _ONE and any(binds(each) for each in _outside_or(node))
    if is_several and not any(map(is_fixed, _keys_below(node, need))):
        return True
    return node.axis not in _ONE and any(
        _repeats_below(branch, need, is_fixed)
        for branch in node.branches
        if isinstance(branch, PatternNode)
    )


def _keys_below(node: PatternNode, need: Need) -> Iterator[str]:
    """The columns of key values whose nodes stand in a part of a sub-pattern."""
    inside = set(nodes_of(node))
    for each in need.new:
        if isinstance(each.where, str) and each.relation.node in inside:
            yield each.column


def _keys_of(relation: Relation, stream: str, need: Need) -> Iterator[str]:
    """The columns of key values of the roots of a sub-pattern's trees."""
    for each in need.new:
        if each.where == stream and each.relation is relation:
            yield each.column


def _all_keys(need: Need) -> Iterator[str]:
    for each in need.new:
        if isinstance(each.where, str):
            yield each.column


@dataclass(frozen=True, slots=True)
class _Fixed:
    """Which columns have one value in all tuples of a scenario."""

    need: Need
    known: Mapping[str, object]

    def surely(self, column: str) -> bool:
        if constant_of(column) is not None or self._has_value(column):
            return True
        pairs = [pair for pair in self.need.values.same if column in pair]
        return any(self._has_value(other) for pair in pairs for other in pair)

    def perhaps(self, column: str) -> bool:
        """A column that is not kept may be fixed by a join."""
        if column not in self.known or self._has_value(column):
            return True
        return any(column in pair for pair in self.need.values.same)

    def _has_value(self, column: str) -> bool:
        return self.known.get(column) is not None or column in self.need.values.pins()


def _replaces(tree: Tree, need: Need) -> bool:
    calls = tree.calls()
    return any(tree.call(calls[stream]).replace is not None for _, stream in need.brought)


def _has_or(pair: tuple[Relation, str]) -> bool:
    node = pair[0].node
    return node is not None and any(
        isinstance(branch, Or) and binds_inside(branch) for branch in _branches(node)
    )


def binds_inside(branch: Branch) -> bool:
    """Whether a branch binds a node or a variable."""
    if isinstance(branch, PatternNode):
        return binds(branch) or any(map(binds_inside, branch.branches))
    if isinstance(branch, Or):
        return any(binds_inside(each) for way in branch.alternatives for each in way)
    return False


def _branches(node: PatternNode) -> Iterator[Branch]:
    for branch in node.branches:
        yield branch
        if isinstance(branch, PatternNode):
            yield from _branches(branch)


def _is_plain(relation: Relation) -> bool:
    """Whether a tree made for a sub-pattern matches it in one way."""
    node = relation.node
    return node is not None and node.axis is Axis.CHILD and _is_plain_node(node)


def _is_plain_node(node: PatternNode) -> bool:
    below = node.branches
    if not isinstance(node.test, Name) and (below or not isinstance(node.test, Variable)):
        return False
    nodes = [each for each in below if isinstance(each, PatternNode)]
    if len(nodes) < len(below) or any(
        each.axis not in (Axis.CHILD, Axis.ATTRIBUTE) for each in nodes
    ):
        return False
    if len({(each.axis, each.test) for each in nodes}) < len(nodes):
        return False
    if len(nodes) > 1 and any(isinstance(each.test, Variable) for each in nodes):
        return False
    return all(map(_is_plain_node, nodes))


def has_or_that_binds(pattern: Pattern) -> bool:
    """Whether an `or` of a pattern binds variables: their values tell tuples apart, not nodes."""
    return any(
        isinstance(branch, Or) and binds_inside(branch)
        for top in pattern.branches
        for branch in (top, *(_branches(top) if isinstance(top, PatternNode) else ()))
    )
