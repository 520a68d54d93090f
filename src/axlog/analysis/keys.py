"""Declared keys: `key shipping/orders/order by oid trusted` (DESIGN section 3, Truth).

A key says that at most one such node per value ever exists. The path starts below the root element
and goes by child steps; `by` leads to the element or attribute whose string is the value. So what a
stream may still bring narrows: a node of a value that is there already can never come. `trusted`
keys are taken at their word; `enforced` ones are checked on what arrives, and a second node of a
value is refused (`widgets/guarding.py`).

    order 17 was placed and shipped early: with a key on shipping/orders/order, it can never be late
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from axlog.datalog.compile import Column, Program, Relation
from axlog.document.reading import Element
from axlog.document.tree import DOCUMENT_NODE, Tree
from axlog.errors import QueryError
from axlog.evaluate.answers import answers
from axlog.language.pattern import (
    Axis,
    Comparison,
    Kind,
    Name,
    Output,
    Pattern,
    PatternNode,
    Variable,
    Wildcard,
)

_FACT = re.compile(r"key\s+(\S+)\s+by\s+(\S+)\s+(trusted|enforced)")


@dataclass(frozen=True, slots=True)
class Key:
    """At most one node at this path for each value."""

    path: tuple[str, ...]
    by: tuple[str, ...]  # a last step `@name` is an attribute
    is_enforced: bool = False

    def __str__(self) -> str:
        how = "enforced" if self.is_enforced else "trusted"
        return f"key {'/'.join(self.path)} by {'/'.join(self.by)} {how}"

    @property
    def pattern(self) -> Pattern:
        """The pattern whose rows are the values."""
        node = PatternNode(
            _axis(self.by[-1]),
            Name(self.by[-1].lstrip("@")),
            comparisons=(Comparison("=", Variable("k")),),
        )
        for step in reversed((*self.path, *self.by[:-1])):
            node = PatternNode(Axis.CHILD, Name(step), branches=(node,))
        root = PatternNode(Axis.CHILD, Wildcard(), branches=(node,))
        return Pattern((root,), (), (Output(Kind.VARIABLE, "k"),))


def parse_fact(text: str) -> Key:
    """A declared fact from its text."""
    matched = _FACT.fullmatch(text.strip())
    if matched is None:
        raise QueryError(
            "AX201",
            f"{text!r} is not a declared fact",
            expected="`key PATH by PATH trusted` or `key PATH by PATH enforced`",
        )
    path, by = matched[1].strip("/").split("/"), matched[2].split("/")
    return Key(tuple(path), tuple(by), matched[3] == "enforced")


def _axis(step: str) -> Axis:
    return Axis.ATTRIBUTE if step.startswith("@") else Axis.CHILD


def values_seen(tree: Tree, key: Key) -> set[str]:
    """The values that nodes of a key have now."""
    return {str(row[0]) for row in answers(tree, key.pattern)}


def values_in(key: Key, tree: Tree, parent: int, root: Element) -> list[str]:
    """The values of the key's nodes in a message that would arrive below a node."""
    above = [tree.label(n) for n in (parent, *tree.ancestors(parent)) if n != DOCUMENT_NODE]
    place = [*reversed(above[:-1]), root.tag]  # without the document's root element
    depth = len(place)
    if list(key.path[:depth]) != place:
        return []
    nodes = [root]
    for step in (*key.path[depth:], *key.by[:-1]):
        nodes = [child for node in nodes for child in node.iterchildren(step)]
    last = key.by[-1]
    if last.startswith("@"):
        return [value for node in nodes if (value := node.get(last[1:])) is not None]
    texts = [child.itertext() for node in nodes for child in node.iterchildren(last)]
    return ["".join(str(text) for text in each) for each in texts]


def keyed_relations(
    program: Program, keys: Iterable[Key]
) -> dict[Relation, list[tuple[Column, Key]]]:
    """The relations that a key speaks of, each with the column that holds the key's value."""
    found: dict[Relation, list[tuple[Column, Key]]] = {}
    for key in keys:
        for top in _below(program.root, Axis.CHILD, None):
            for relation in _along(top, key.path):
                for column in _value_columns(relation, key.by):
                    found.setdefault(relation, []).append((column, key))
    return found


def _below(relation: Relation, axis: Axis, name: str | None) -> Iterator[Relation]:
    for edge in relation.edges:
        node = edge.relation.node
        if edge.axis is not axis or node is None:
            continue
        if name is None or (isinstance(node.test, Name) and node.test.label == name):
            yield edge.relation


def _along(relation: Relation, path: tuple[str, ...]) -> Iterator[Relation]:
    if not path:
        yield relation
        return
    for below in _below(relation, Axis.CHILD, path[0]):
        yield from _along(below, path[1:])


def _value_columns(relation: Relation, by: tuple[str, ...]) -> Iterator[Column]:
    """The variables that a relation binds to the key's value: `oid = $x`, or `oid/$x`."""
    if by:
        for below in _below(relation, _axis(by[0]), by[0].lstrip("@")):
            yield from _value_columns(below, by[1:])
        return
    yield from (column for column, source in relation.own if source == "value")
    for edge in relation.edges:
        node = edge.relation.node
        if edge.axis is Axis.CHILD and node is not None and isinstance(node.test, Variable):
            yield f"${node.test.name}"
