"""The part of a document that decides what becomes of one row.

A message can concern a row only if a part of the query can be matched in it. If each of these parts
binds a variable whose string the row gives, only messages with one of these strings concern it. The
value index finds them, however many messages there are.

Law: truth and reasons (`reasons.py`) are the same in this part as in the whole document.

Below the parents of calls, subtrees without these strings and without calls are left out. That
changes no answer about the row if

- the topmost pattern nodes that can be matched in such a subtree have a variable of the row below
  them, whatever else they require;
- no string value of the parent of a call, nor of a node above it, is compared or shown;
- each value of a declared key is the string of such a variable, where the query names it. Others
  can be chosen freely for what is to come. References need this for every part of the query;
- conditions on values that a message could have concern the row's strings or constants alone;
- there are no types, and no stream deletes, replaces, or is fed by a view.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from axlog.document.extraction import extracted
from axlog.document.tree import DOCUMENT_NODE, NONE, Tree
from axlog.document.value_index import ValueIndex
from axlog.future.keys import Key
from axlog.query.formula import Formula
from axlog.query.pattern import (
    Axis,
    Branch,
    Collect,
    Kind,
    Name,
    Not,
    Pattern,
    PatternNode,
    ValueConstraint,
    Variable,
    branches_of,
)

_Goal = tuple[str, str]
"""The label of a node, and the string that it has."""
_AXES = (Axis.CHILD, Axis.DESCENDANT, Axis.ATTRIBUTE)


def part_for(
    tree: Tree, pattern: Pattern, row: Mapping[str, Any], index: ValueIndex
) -> Tree | None:
    """The part of a document that decides on a row; None: it takes the whole document."""
    strings = {
        output.of: row[output.column]
        for output in pattern.outputs
        if output.kind is Kind.VARIABLE and type(row.get(output.column)) is str
    }
    if not strings or not _is_plain(tree, pattern):
        return None
    part = _Part(tree, strings, index)
    goals = part.goals(pattern)
    return None if goals is None else part.found(goals)


def _is_plain(tree: Tree, pattern: Pattern) -> bool:
    """Whether nothing but matches and declared facts decides on rows."""
    calls = [tree.call(node) for node in tree.calls().values()]
    shown = all(output.kind in (Kind.VARIABLE, Kind.TIME) for output in pattern.outputs)
    is_alone = all(call.deletes == "no" and call.replace is None for call in calls)
    is_inside = all(tree.parent(node) != DOCUMENT_NODE for node in tree.calls().values())
    is_free = tree.types is None and not tree.deliveries
    return bool(calls) and shown and is_alone and is_inside and is_free


class _NotDecidedError(Exception):
    """Messages without the strings of the row may concern it."""


@dataclass(frozen=True, slots=True)
class _Part:
    """A document, and the strings of a row by variable."""

    tree: Tree
    strings: Mapping[str, str]
    index: ValueIndex

    def goals(self, pattern: Pattern) -> set[_Goal] | None:
        """What the messages have that concern the row; None: others may."""
        try:
            self._check_values(pattern)
            tops = list(self._tops(pattern))
            self._check_facts(pattern, tops)
        except _NotDecidedError:
            return None
        return {goal for goals in tops for goal in goals}

    def _check_values(self, pattern: Pattern) -> None:
        """Check that no value of the document is needed as one that passes a condition."""
        constraints = list(pattern.where)
        for branch in [b for top in pattern.branches for b in _all_branches(top)]:
            constraints += branch.where if isinstance(branch, Not) else ()
            if isinstance(branch, PatternNode) and any(
                isinstance(each.operand, Formula) for each in branch.comparisons
            ):
                raise _NotDecidedError
        for each in constraints:
            if isinstance(each, ValueConstraint):
                variables = [v for v in (each.left, each.right) if isinstance(v, Variable)]
                if isinstance(each.right, Formula) or any(
                    variable.name not in self.strings for variable in variables
                ):
                    raise _NotDecidedError

    def found(self, goals: Iterable[_Goal]) -> Tree | None:
        """The document with the subtrees that have these strings, and with those of calls."""
        tree, parents = self.tree, self.tree.parent_column
        nodes = list(tree.calls_by_stream.values())
        kept: dict[int, set[int]] = {parents[call]: set() for call in nodes}
        for label, string in {*goals, *self._keyed_values()}:
            known = self.index.find(label, string)
            texts = self.index.find_text(label, string)
            if known is None or texts is None:
                return None
            nodes += [*known, *texts]
        for string in self.strings.values():
            nodes += tree.partition(string)  # a variable may be bound to the label of an element
        for node in nodes:
            at = node
            while at != DOCUMENT_NODE and at != NONE:
                if parents[at] in kept:
                    kept[parents[at]].add(at)
                at = parents[at]
        return extracted(tree, kept)

    # The parts of the query that are matched in messages ------------------------------------------

    def _tops(self, pattern: Pattern) -> Iterator[set[_Goal]]:
        """For each pattern node that may be the topmost one in a subtree, what this then has."""
        tree = self.tree
        above = {
            at
            for call in tree.calls_by_stream.values()
            for at in tree.ancestors(call)
            if at != DOCUMENT_NODE
        }
        labels = {tree.label(at) for at in above}
        parents = {tree.label(tree.parent(call)) for call in tree.calls_by_stream.values()}
        waiting: list[tuple[Branch, PatternNode | None]] = [(b, None) for b in pattern.branches]
        while waiting:
            branch, outer = waiting.pop()
            if isinstance(branch, Collect):
                raise _NotDecidedError
            if isinstance(branch, PatternNode):
                if branch.axis not in _AXES or (branch.comparisons and _fits(branch, labels)):
                    raise _NotDecidedError
                if self._may_be_top(branch, outer, parents, labels):
                    goals = set(self._required(branch, outer))
                    if not goals:
                        raise _NotDecidedError
                    yield goals
                outer = branch
            waiting += [(each, outer) for each in branches_of(branch)]

    def _may_be_top(
        self, node: PatternNode, outer: PatternNode | None, parents: set[str], labels: set[str]
    ) -> bool:
        """Whether a node may be matched below the parent of a call, and `outer` there or above."""
        if node.axis is Axis.DESCENDANT:
            return outer is None or _fits(outer, labels)
        return node.axis is Axis.CHILD and outer is not None and _fits(outer, parents)

    def _required(self, node: PatternNode, outer: PatternNode | None) -> Iterator[_Goal]:
        """The strings that every match of a pattern node has in it, with the labels above them."""
        if isinstance(node.test, Variable):
            label = None if outer is None or node.axis is not Axis.CHILD else _label(outer)
            if label is not None and node.test.name in self.strings:
                yield label, self.strings[node.test.name]
        label = _label(node)
        for comparison in node.comparisons:
            operand = comparison.operand
            if comparison.operator != "=" or not isinstance(operand, Variable) or label is None:
                continue
            if operand.name in self.strings:
                yield label, self.strings[operand.name]
        for each in node.branches:
            if isinstance(each, PatternNode):
                yield from self._required(each, node)

    # Declared facts -------------------------------------------------------------------------------

    def _check_facts(self, pattern: Pattern, tops: Sequence[set[_Goal]]) -> None:
        tree = self.tree
        for key in self._keys():
            self._check_key(key, pattern)
        for each in tree.references:
            for key in (each.source, each.target):
                if any(all(label != key.by[-1] for label, _ in goals) for goals in tops):
                    raise _NotDecidedError

    def _keys(self) -> Iterator[Key]:
        yield from (fact for fact in self.tree.facts if isinstance(fact, Key))
        for each in self.tree.references:
            yield from (each.source, each.target)

    def _check_key(self, key: Key, pattern: Pattern) -> None:
        """Check that the query says of the key's value only that a variable of the row has it."""
        tree = self.tree
        for call in tree.calls_by_stream.values():
            if any(tree.label(at) == key.path[-1] for at in tree.ancestors(call)):
                raise _NotDecidedError  # messages are parts of what the key identifies
        for node in pattern.nodes():
            is_named = isinstance(node.test, Name)
            if is_named and _label(node) != key.by[-1]:
                continue
            if is_named or node.branches or node.comparisons:
                self._check_value(node)

    def _check_value(self, node: PatternNode) -> None:
        values: list[object] = [c.operand if c.operator == "=" else None for c in node.comparisons]
        for each in node.branches:
            if not isinstance(each, PatternNode):
                raise _NotDecidedError
            is_value = each == PatternNode(Axis.CHILD, each.test, each.name)
            values.append(each.test if is_value else None)
        if any(not isinstance(v, Variable) or v.name not in self.strings for v in values):
            raise _NotDecidedError

    def _keyed_values(self) -> Iterator[_Goal]:
        """The values of keys that a node to come may have."""
        for key in self._keys():
            for string in self.strings.values():
                yield key.by[-1], string


def _all_branches(branch: Branch) -> Iterator[Branch]:
    yield branch
    for each in branches_of(branch):
        yield from _all_branches(each)


def _label(node: PatternNode) -> str | None:
    """The label that a pattern node asks for, as the value index has it."""
    if not isinstance(node.test, Name):
        return None
    name = node.test.label
    return f"@{name.lstrip('@')}" if node.axis is Axis.ATTRIBUTE else name


def _fits(node: PatternNode, labels: set[str]) -> bool:
    """Whether a node may be matched at an element with one of these labels."""
    if node.axis is Axis.ATTRIBUTE:
        return False
    return not isinstance(node.test, Name) or node.test.label in labels
