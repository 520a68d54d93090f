"""Relations for the values of keys: each string that a key could forbid is one of its own.

`profile_trees.py` examines them with the relations of a ground pattern. Two siblings at the place
of a key must not both have the relation of one string.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import lru_cache

from axlog.errors import UndecidedError
from axlog.future.grounding import Ground
from axlog.future.keys import Key
from axlog.query.compile import Choice, Edge, Program, Relation, compile_pattern
from axlog.query.pattern import (
    AnyNode,
    AnyText,
    Axis,
    Branch,
    Comparison,
    Constant,
    Literal,
    Name,
    Not,
    Pattern,
    PatternNode,
    Variable,
    Wildcard,
    branches_of,
)


class KeyRelations:
    """Relations that hold at nodes which lead to a node of a key with a certain value."""

    def __init__(self, strings: Mapping[Key, Iterable[str]]) -> None:
        self.relations: list[Relation] = []  # in evaluation order
        self.known: dict[str, str] = {}  # the label of each variable in them
        self.roots: list[Edge] = []
        self.chain: list[Relation] = []  # of nodes on the paths of keys; siblings share none
        for key, values in strings.items():
            for value in sorted(values):
                self._add(key, value)

    def _add(self, key: Key, value: str) -> None:
        """The path of a key whose node has a value, as the string of `by` or as a label in it."""
        variable = Variable(f"key~{len(self.known)}")
        self.known[variable.name] = value
        *steps, last = key.by
        axis = Axis.ATTRIBUTE if last.startswith("@") else Axis.CHILD
        end = PatternNode(axis, Name(last.lstrip("@")))
        by_value = self._relation(replace(end, comparisons=(Comparison("=", value),)))
        by_child = self._relation(end, self._relation(PatternNode(Axis.CHILD, variable)))
        for step in reversed(steps):
            node = PatternNode(Axis.CHILD, Name(step))
            by_value, by_child = self._relation(node, by_value), self._relation(node, by_child)
        either = tuple(
            Relation("or", None, edges=(_edge_to(each),)) for each in (by_value, by_child)
        )
        *above, own = key.path
        relation = self._relation(PatternNode(Axis.CHILD, Name(own)))
        relation.choices = (Choice(either, (), False),)
        self.chain.append(relation)
        for step in reversed(above):
            relation = self._relation(PatternNode(Axis.CHILD, Name(step)), relation)
            self.chain.append(relation)
        root = self._relation(PatternNode(Axis.CHILD, Wildcard()), relation)
        self.roots.append(_edge_to(root))

    def _relation(self, node: PatternNode, *below: Relation) -> Relation:
        made = Relation("key", node, edges=tuple(map(_edge_to, below)))
        self.relations.append(made)
        return made


def _edge_to(relation: Relation) -> Edge:
    assert relation.node is not None
    return Edge(relation.node.axis, relation)


@lru_cache(maxsize=256)
def program_of(pattern: Pattern) -> Program:
    program = compile_pattern(pattern)
    if program.refusal is not None:
        raise UndecidedError("AX503", f"the analyses do not cover the query: {program.refusal}")
    return program


def key_strings(ground: Ground, key: Key) -> set[str]:
    """The strings of a pattern that may become values of a key."""
    found: set[str] = set()
    for branch in ground.pattern.branches:
        found |= _strings_inside(branch, ground, key.by[-1].lstrip("@"), False)
    return {*found, ""} if _may_forbid_texts(ground.pattern.branches, ground, False) else found


def _may_forbid_texts(branches: Iterable[Branch], ground: Ground, is_inside: bool) -> bool:
    """Whether some `not` may leave an element without any text but a known one."""
    for branch in branches:
        if is_inside and isinstance(branch, PatternNode):
            test = branch.test
            is_open = isinstance(test, Variable) and test.name not in ground.strings
            if is_open or isinstance(test, AnyText | AnyNode) or branch.comparisons:
                return True
        if _may_forbid_texts(branches_of(branch), ground, is_inside or isinstance(branch, Not)):
            return True
    return False


def resolved(operand: Constant | Variable, strings: Mapping[str, str]) -> Constant:
    """The constant that an operand of a ground pattern stands for."""
    return strings[operand.name] if isinstance(operand, Variable) else operand


def _strings_inside(branch: Branch, ground: Ground, label: str, is_inside: bool) -> set[str]:
    found: set[str] = set()
    if isinstance(branch, PatternNode):
        is_inside = is_inside or branch.axis in (Axis.DESCENDANT, Axis.DESCENDANT_OR_SELF)
        test = branch.test
        if is_inside and isinstance(test, Variable) and test.name in ground.strings:
            found.add(ground.strings[test.name])
        if is_inside and isinstance(test, Name):
            found.add(test.label)
        if is_inside and isinstance(test, Literal):
            found.add(test.text)
        is_inside = is_inside or not isinstance(test, Name) or test.label == label
        if is_inside:
            operands = [resolved(c.operand, ground.strings) for c in branch.comparisons]
            found |= {operand for operand in operands if isinstance(operand, str)}
    for below in branches_of(branch):
        found |= _strings_inside(below, ground, label, is_inside)
    return found
