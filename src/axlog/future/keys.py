"""Declared keys, such as `key shipping/orders/order by oid trusted`.

A key states that at most one node at its path ever exists for each value. The path starts below the
root element and consists of child steps. `by` leads to the element or attribute whose string is the
value. Patterns read that value as `oid = $x` or as `oid/$x`, which are the same if the element
holds one text, or compare it with a constant (`oid/"7"`). If it holds more, the labels of its
children count as values too, so that a key has the same meaning for both.

A key narrows the future: no second node with an existing value, no two future nodes with one value,
and no value below an existing node that another node has. `trusted` keys are assumed to hold.
`enforced` keys are checked on arrival, and a second node with a value is rejected
(`live/key_guard.py`). See docs/meaning.md.

    order 17 was placed, and shipped early: with a key on shipping/orders/order it can never be late
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from axlog.document.parser import Element
from axlog.document.tree import ATTRIBUTE, DOCUMENT_NODE, ELEMENT, TEXT, Tree
from axlog.errors import QueryError
from axlog.evaluate.answers import answers
from axlog.future.unknowns import ValueNeeds
from axlog.query.compile import Column, Relation
from axlog.query.pattern import (
    AnyText,
    Axis,
    Comparison,
    Kind,
    Literal,
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
    def patterns(self) -> tuple[Pattern, Pattern]:
        """The patterns whose rows are (value, node): by `by = $k`, and by `by/$k`."""
        return self.patterns_of("k")

    def patterns_of(self, variable: str) -> tuple[Pattern, Pattern]:
        """As `patterns`, with another variable for the value."""
        last = PatternNode(_axis(self.by[-1]), Name(self.by[-1].lstrip("@")))
        value = replace(last, comparisons=(Comparison("=", Variable(variable)),))
        child = replace(last, branches=(PatternNode(Axis.CHILD, Variable(variable)),))
        return self._leading_to(value, variable), self._leading_to(child, variable)

    def _leading_to(self, node: PatternNode, variable: str) -> Pattern:
        for step in reversed(self.by[:-1]):
            node = PatternNode(Axis.CHILD, Name(step), branches=(node,))
        *above, own = self.path
        node = PatternNode(Axis.CHILD, Name(own), "n", branches=(node,))
        for step in reversed(above):
            node = PatternNode(Axis.CHILD, Name(step), branches=(node,))
        root = PatternNode(Axis.CHILD, Wildcard(), branches=(node,))
        return Pattern((root,), (), (Output(Kind.VARIABLE, variable), Output(Kind.ID, "n")))


class KeyedNode(NamedTuple):
    """A node of a key whose value is in a column: a future node, or an existing one."""

    column: Column  # or a constant (`constant_of`)
    key: Key
    relation: Relation
    where: str | int  # the stream that brings it, or the node


def parse_fact(text: str, namespaces: Mapping[str, str] | None = None) -> Key:
    """Parse a declared fact; prefixes are resolved by `namespaces`."""
    matched = _FACT.fullmatch(text.strip())
    if matched is None:
        raise QueryError(
            "AX201",
            f"{text!r} is not a declared fact",
            expected="`key PATH by PATH trusted` or `every PATH by PATH refers PATH by PATH"
            " trusted`, or `enforced` in place of `trusted`",
        )
    path, by = parse_path(matched[1].strip("/"), namespaces), parse_path(matched[2], namespaces)
    return Key(path, by, matched[3] == "enforced")


def parse_path(text: str, namespaces: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """The steps of a path of a declared fact, with their prefixes resolved."""
    return tuple(_expanded(step, namespaces or {}) for step in text.split("/"))


def check_path(key: Key, root: str, children: Iterable[str]) -> None:
    """Raise for a key whose path starts with the root element: it would never apply.

    `root` and `children` are the names of the root element and of the elements in it. A path of
    several steps that starts with the root's name leads to the root, unless a child has the name.
    """
    if len(key.path) > 1 and key.path[0] == root and root not in children:
        raise QueryError(
            "AX201",
            f"the path of `{key}` starts with the root element",
            expected="a path that starts below the root",
            advice=f"declare `{replace(key, path=key.path[1:])}`",
        )


def _expanded(step: str, namespaces: Mapping[str, str]) -> str:
    """A step with its prefix, if any, replaced by the namespace."""
    mark = "@" if step.startswith("@") else ""
    prefix, colon, local = step.removeprefix("@").rpartition(":")
    if not colon or "{" in prefix:
        return step
    if prefix not in namespaces:
        raise QueryError(
            "AX206",
            f"the prefix {prefix!r} of the key's step {step!r} is not declared",
            expected=", ".join(sorted(namespaces)) or "no prefix",
            advice="pass namespaces={...}",
        )
    return f"{mark}{{{namespaces[prefix]}}}{local}"


def _axis(step: str) -> Axis:
    return Axis.ATTRIBUTE if step.startswith("@") else Axis.CHILD


def values_seen(tree: Tree, key: Key) -> dict[str, set[int]]:
    """The values that nodes of a key have now, with the nodes that have each."""
    found: dict[str, set[int]] = {}
    for pattern in key.patterns:
        for value, node in answers(tree, pattern):
            found.setdefault(str(value), set()).add(int(node))
    return found


def values_below(tree: Tree, key: Key, top: int) -> Iterator[tuple[int, str]]:
    """The nodes of a key in a subtree or above it, with their current values."""
    above = [n for n in (top, *tree.ancestors(top)) if n != DOCUMENT_NODE][::-1]
    depth = len(key.path)
    on_path = [tree.label(n) for n in above[1 : depth + 1]]
    if on_path != list(key.path[: len(on_path)]):
        return
    owners = above[depth : depth + 1]
    if not owners:
        owners = [top]
        for step in key.path[len(above) - 1 :]:
            owners = [child for node in owners for child in _named(tree, node, step)]
    for owner in owners:
        nodes = [owner]
        for step in key.by:
            nodes = [child for node in nodes for child in _named(tree, node, step)]
        for node in nodes:
            yield owner, tree.string_value(node)
            for child in tree.children(node):
                if tree.kind_column[child] in (ELEMENT, TEXT):
                    yield owner, tree.label(child)


def _named(tree: Tree, node: int, step: str) -> Iterator[int]:
    """The children (or attributes, for `@name`) with a name."""
    name = step.removeprefix("@")
    kind = ATTRIBUTE if step.startswith("@") else ELEMENT
    for child in tree.chain(node):
        if tree.kind_column[child] == kind and tree.label(child).removeprefix("@") == name:
            yield child


def is_broken(tree: Tree, key: Key) -> bool:
    """Whether two nodes of a key have one value."""
    return any(len(nodes) > 1 for nodes in values_seen(tree, key).values())


Owner = Element | int
"""The node that has a value: a future node, or an existing one."""


def values_in(key: Key, tree: Tree, parent: int, root: Element) -> list[tuple[Owner, str]]:
    """The values that nodes of a key would get from a tree that arrives below a node.

    A value that grows by texts added inside its element is not tracked.
    """
    above = [n for n in (parent, *tree.ancestors(parent)) if n != DOCUMENT_NODE][::-1]
    place = [*(tree.label(n) for n in above[1:]), root.tag]  # without the document's root element
    whole, depth = (*key.path, *key.by), len(place)
    if list(whole[:depth]) != place[: len(whole)] or depth > len(whole) + 1:
        return []
    if depth > len(whole):  # below the key's element: the label of a child
        return [(above[len(key.path)], str(root.tag))]
    if depth > len(key.path):
        owner = above[len(key.path)]
        return [(owner, value) for value in _along_elements(root, whole[depth:])]
    nodes = [root]
    for step in key.path[depth:]:
        nodes = [child for node in nodes for child in node.iterchildren(step)]
    return [(node, value) for node in nodes for value in _along_elements(node, key.by)]


def _along_elements(root: Element, steps: tuple[str, ...]) -> list[str]:
    """The values at the end of a path of steps from an element."""
    nodes = [root]
    for step in steps:
        if step.startswith("@"):
            return [value for node in nodes if (value := node.get(step[1:])) is not None]
        nodes = [child for node in nodes for child in node.iterchildren(step)]
    return [value for node in nodes for value in _read(node)]


def _read(by: Element) -> Iterator[str]:
    """The values of a key's element: its string, its texts, and its children's names."""
    values = {"".join(str(text) for text in by.itertext())}
    values |= {text for text in (by.text, *(child.tail for child in by)) if text}
    values |= {str(child.tag) for child in by.iterchildren("*")}
    yield from sorted(values)


def keyed_relations(
    root: Relation, keys: Iterable[Key]
) -> dict[Relation, list[tuple[Column, Key]]]:
    """The relations that match nodes of a key, with the column that holds the key's value.

    Where the query gives the value as a constant, the column stands for it (`constant_of`).
    """
    found: dict[Relation, list[tuple[Column, Key]]] = {}
    for key in keys:
        for top in _below(root, Axis.CHILD, None):
            for relation in _along(top, key.path):
                for column in _value_columns(relation, key.by):
                    found.setdefault(relation, []).append((column, key))
    return found


def place_of(tree: Tree, node: int) -> tuple[str, ...]:
    """The labels from below the root element to a node, in the form of key paths."""
    path = [n for n in (node, *tree.ancestors(node)) if n != DOCUMENT_NODE]
    return tuple(tree.label(n) for n in reversed(path[:-1]))


def mentions(key: Key, place: tuple[str, ...], top: Relation, relation: Relation) -> bool:
    """Whether a relation, below `top` that is matched at a place, matches the nodes of a key.

    Relations of equal form are shared, wherever they occur: `a/item/k/$x` and `b/item/k/$x` have
    the same `item`, and a key on one says nothing about the other.
    """
    if key.path[: len(place)] != place or len(key.path) <= len(place) or top.node is None:
        return False
    first, *inside = key.path[len(place) :]
    if not isinstance(top.node.test, Name) or top.node.test.label != first:
        return False
    return any(found is relation for found in _along(top, tuple(inside)))


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
    """The variables or constants that a relation compares with the key's value.

    Such as `oid = $x`, `oid/$x`, `oid = "7"` and `oid/"7"`.
    """
    if by:
        for below in _below(relation, _axis(by[0]), by[0].lstrip("@")):
            yield from _value_columns(below, by[1:])
        return
    yield from _compared(relation)
    for edge in relation.edges:
        node = edge.relation.node
        if edge.axis is not Axis.CHILD or node is None:
            continue
        if isinstance(node.test, Variable):
            yield f"${node.test.name}"
        elif isinstance(node.test, Literal):
            yield f"{_CONSTANT}{node.test.text}"
        elif isinstance(node.test, AnyText):
            yield from _compared(edge.relation)


def _compared(relation: Relation) -> Iterator[Column]:
    """The variables and strings that the value of a node is equal to."""
    yield from (column for column, source in relation.own if source == "value")
    for each in () if relation.node is None else relation.node.comparisons:
        if each.operator == "=" and isinstance(each.operand, str):
            yield f"{_CONSTANT}{each.operand}"


_CONSTANT = "="
"""Begins a column that no row has: it stands for the string after it."""


def constant_of(column: Column) -> str | None:
    """The constant that stands for a key's value in place of a column; None: it is a column."""
    return column.removeprefix(_CONSTANT) if column.startswith(_CONSTANT) else None


# Conflicts ----------------------------------------------------------------------------------------


Known = Mapping[str, str | int | None]


def is_repeated(
    nodes: Iterable[KeyedNode],
    known: Known,
    needs: ValueNeeds,
    seen: Mapping[Key, Mapping[str, set[int]]],
) -> bool:
    """Whether nodes violate a key: with existing nodes, or with each other."""
    known = _filled(known, needs)
    for each in nodes:
        value = _value_of(each, known)
        if value is not None and seen[each.key].get(str(value), set()) - {each.where}:
            return True
    return any(len({each.where for each in group}) > 1 for group in sharing(nodes, known, needs))


def has_value(nodes: Iterable[KeyedNode], known: Known, needs: ValueNeeds) -> bool:
    """Whether the key value of some node is known, so that another node may take it first.

    A column that is not shown counts as known: a join may have fixed its value.
    """
    filled = _filled(known, needs)
    return any(c in filled or c not in known for c in (each.column for each in nodes))


def keyed_values(
    nodes: Iterable[KeyedNode], known: Known, needs: ValueNeeds
) -> Iterator[tuple[Key, str]]:
    """The known key values of some nodes."""
    filled = _filled(known, needs)
    for each in nodes:
        value = _value_of(each, filled)
        if value is not None:
            yield each.key, str(value)


def sharing(nodes: Iterable[KeyedNode], known: Known, needs: ValueNeeds) -> list[list[KeyedNode]]:
    """Groups of required nodes of a key that have one value and must therefore be one node."""
    groups: dict[tuple[Key, object], list[KeyedNode]] = {}
    first, known = _representatives(needs), _filled(known, needs)
    for each in sorted(nodes, key=lambda n: (n.relation.name, n.column)):
        value = _value_of(each, known)
        shown = first.get(each.column, each.column) if value is None else ("=", value)
        groups.setdefault((each.key, shown), []).append(each)
    return [group for group in groups.values() if len({n.relation for n in group}) > 1]


def _value_of(node: KeyedNode, known: Known) -> str | int | None:
    constant = constant_of(node.column)
    return known.get(node.column) if constant is None else constant


def _filled(known: Known, needs: ValueNeeds) -> Known:
    """The values, extended to columns that must have one value, and to those that equal others."""
    known = {**needs.pins(), **{c: v for c, v in known.items() if v is not None}}
    first = _representatives(needs)
    values = {first[c]: v for c, v in known.items() if c in first}
    return {**known, **{c: values[one] for c, one in first.items() if one in values}}


def _representatives(needs: ValueNeeds) -> dict[str, str]:
    first: dict[str, str] = {}
    for left, right in sorted(needs.same):
        one, other = first.setdefault(left, left), first.setdefault(right, right)
        first = {column: one if at == other else at for column, at in first.items()}
    return first


def merged_relations(
    group: Iterable[KeyedNode], tops: Iterable[Relation]
) -> list[frozenset[Relation]]:
    """Relations, level by level, that must match one node for keyed nodes to be one."""
    chains = [chain for each in group for top in tops if (chain := _chain(top, each.relation))]
    return [frozenset(level) for level in zip(*chains, strict=True)]


def _chain(top: Relation, wanted: Relation) -> list[Relation]:
    """The relations from one down to another by child steps; empty if it is not below."""
    if top is wanted:
        return [top]
    for edge in top.edges:
        below = _chain(edge.relation, wanted) if edge.axis is Axis.CHILD else []
        if below:
            return [top, *below]
    return []
