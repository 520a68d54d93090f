"""Conditions that a pattern places on a future node, and their distribution over its children.

A requirement (`Wants`) is a set of pattern branches that must hold at one node. `NodeMatcher`
resolves the branches that concern the node itself (`self`, `or`, attributes), for a future node of
a given kind and label. `share_out` enumerates the ways to satisfy the remaining branches by
children: several by one child, or each by its own.

A variable is bound, or it occurs once and matches anything. Strings of future nodes are drawn from
`strings`: every string that the pattern distinguishes, and one that it does not mention.
Comparisons with the value of a future element are rejected (AX503). `typed_values` rewrites those
of elements that hold one text before they get here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from axlog.document.tree import NodeKind
from axlog.errors import UndecidedError
from axlog.evaluate.value_tests import comparison as compared_with
from axlog.future.value_classes import is_of_times, needs_types
from axlog.query.pattern import (
    AnyComment,
    AnyInstruction,
    AnyNode,
    AnyText,
    Axis,
    Branch,
    Collect,
    Comparison,
    Literal,
    Name,
    Not,
    Or,
    PatternNode,
    Variable,
    Wildcard,
)

Wants = frozenset[Branch]
NOTHING: Wants = frozenset()


class Subject(NamedTuple):
    """The kind and label of a future node."""

    kind: NodeKind
    label: str


@dataclass
class NodeMatcher:
    """Matches pattern nodes with future nodes, under bindings of the pattern's variables."""

    bindings: Mapping[str, str]
    strings: tuple[str, ...]
    count: Callable[[], None]

    def passes(self, node: PatternNode, subject: Subject) -> bool:
        """Whether a future node passes the test and the comparisons of a pattern node."""
        is_element = subject.kind is NodeKind.ELEMENT
        match node.test:
            case Name(label=label):
                passed = is_element and subject.label == label
            case Wildcard():
                passed = is_element
            case Literal(text=text):
                passed = not is_element and subject.label == text
            case AnyText():
                passed = not is_element
            case AnyComment() | AnyInstruction():
                passed = False
            case AnyNode():
                passed = True
            case Variable(name=name):
                passed = self.bindings.get(name, subject.label) == subject.label
        return passed and all(self._compares(c, subject) for c in node.comparisons)

    def _compares(self, comparison: Comparison, subject: Subject) -> bool:
        if self.is_free(comparison):
            return True
        if subject.kind is NodeKind.ELEMENT:
            raise UndecidedError(
                "AX503", f"{comparison} compares the value of an element that has not arrived"
            )
        return self._is_value(comparison, subject.label)

    def is_free(self, comparison: Comparison) -> bool:
        """Whether a comparison only binds a variable that is used nowhere else."""
        operand = comparison.operand
        return (
            comparison.operator == "="
            and isinstance(operand, Variable)
            and operand.name not in self.bindings
        )

    def _is_value(self, comparison: Comparison, value: str) -> bool:
        operand = comparison.operand
        if isinstance(operand, Variable):
            operand = self.bindings.get(operand.name, value)
        if needs_types(comparison.operator) or is_of_times(comparison.operator, operand):
            raise UndecidedError(
                "AX503", f"{comparison} compares a date or a typed value that has not arrived"
            )
        return compared_with(comparison.operator, operand)(value)

    # Requirements at one node

    def settled(self, wants: Wants, subject: Subject) -> Iterator[tuple[Wants, Wants]]:
        """Every way to resolve requirements at a future node: (branches below, attributes)."""
        for reading in self.readings(tuple(wants), lambda node: self.passes(node, subject)):
            attributes = frozenset(w for w in reading if is_attribute(w))
            yield reading - attributes, attributes

    def readings(
        self, wants: tuple[Branch, ...], passes: Callable[[PatternNode], bool]
    ) -> Iterator[Wants]:
        """Every choice at `or` and descendant-or-self, with `self` steps resolved.

        Each result is the set of branches that children, descendants and attributes must satisfy.
        """
        self.count()
        for at, want in enumerate(wants):
            others = (*wants[:at], *wants[at + 1 :])
            match want:
                case Collect():  # collects existing nodes, requires none
                    yield from self.readings(others, passes)
                    return
                case Or(alternatives=alternatives):
                    for alternative in alternatives:
                        yield from self.readings((*others, *alternative), passes)
                    return
                case Not():
                    raise UndecidedError("AX503", "`not` is not decided under types")
                case PatternNode(axis=Axis.SELF | Axis.DESCENDANT_OR_SELF as axis):
                    if passes(want):
                        yield from self.readings((*others, *want.branches), passes)
                    if axis is Axis.DESCENDANT_OR_SELF:
                        yield from self.readings((*others, _as_descendant(want)), passes)
                    return
        yield frozenset(wants)

    def attributes(self, wants: Iterable[Branch]) -> dict[str, str] | None:
        """Names and values of attributes that satisfy these branches; None if there are none."""
        named: dict[str, list[PatternNode]] = {}
        for want in sorted(wants, key=str):
            assert isinstance(want, PatternNode)
            name = want.test.label if isinstance(want.test, Name) else f"any.{len(named)}"
            named.setdefault(name, []).append(want)
        found: dict[str, str] = {}
        for name, nodes in named.items():
            values = (v for v in self.strings if all(self._has_value(n, v) for n in nodes))
            value = next(values, None)
            if value is None:
                return None
            found[name] = value
        return found

    def _has_value(self, node: PatternNode, value: str) -> bool:
        if not all(self.is_free(c) or self._is_value(c, value) for c in node.comparisons):
            return False
        text = Subject(NodeKind.TEXT, value)
        return any(
            all(self._is_met_by_text(want, text) for want in reading)
            for reading in self.readings(node.branches, _attribute_passes_self)
        )

    def _is_met_by_text(self, want: Branch, text: Subject) -> bool:
        """Whether the text of an attribute satisfies a branch below the attribute."""
        assert isinstance(want, PatternNode)
        if want.axis not in (Axis.CHILD, Axis.DESCENDANT) or not self.passes(want, text):
            return False
        below = self.readings(want.branches, lambda node: self.passes(node, text))
        return any(not reading for reading in below)


def _attribute_passes_self(node: PatternNode) -> bool:
    """Whether an attribute passes a `self` step: only `self::node()` without comparisons."""
    return node.axis is Axis.SELF and isinstance(node.test, AnyNode) and not node.comparisons


def is_attribute(want: Branch) -> bool:
    return isinstance(want, PatternNode) and want.axis is Axis.ATTRIBUTE


def _as_descendant(node: PatternNode) -> PatternNode:
    return PatternNode(Axis.DESCENDANT, node.test, node.name, node.comparisons, node.branches)


# Distribution over children -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Slot:
    """A child that can receive requirements.

    It is an existing node (`node`), a future node that the message itself holds, or a future node
    that a call of `service` delivers.
    """

    subject: Subject
    service: str | None = None
    node: int | None = None


class Group(NamedTuple):
    """A child, and the branches that must hold at it."""

    slot: Slot
    wants: Wants


Ways = Callable[[PatternNode, Slot], Iterator[Wants]]
"""Every set of branches at a child that makes a given branch hold at its parent."""


def share_out(
    wants: Iterable[Branch], slots: list[Slot], ways: Ways, count: Callable[[], None]
) -> Iterator[list[Group]]:
    """Every way to distribute branches over children."""
    nodes = [want for want in sorted(wants, key=str) if isinstance(want, PatternNode)]
    return _share_out(nodes, slots, ways, count, [])


def _share_out(
    wants: list[PatternNode],
    slots: list[Slot],
    ways: Ways,
    count: Callable[[], None],
    groups: list[Group],
) -> Iterator[list[Group]]:
    count()
    if not wants:
        yield groups
        return
    want, *others = wants
    used = {group.slot.node for group in groups} - {None}
    for at, group in enumerate(groups):
        for more in ways(want, group.slot):
            changed = [*groups]
            changed[at] = Group(group.slot, group.wants | more)
            yield from _share_out(others, slots, ways, count, changed)
    for slot in slots:
        if slot.node not in used:  # an existing node forms one group
            for more in ways(want, slot):
                yield from _share_out(others, slots, ways, count, [*groups, Group(slot, more)])
