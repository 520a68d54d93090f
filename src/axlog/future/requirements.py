"""What a pattern asks of nodes that are still to come, and how it is shared out among them.

Wants are branches of a pattern that must hold at a node. `Asking` settles what they ask of the node
itself (`self`, `or`, attributes) for a node to come of a given kind and label; `share_out` lists
the ways to meet wants by children, several by one child or each by its own.

Variables are bound, or occur once and match anything. Strings to come are taken from `strings`: all
that the pattern tells apart, and one that it does not know. Values of elements are refused, those
of elements that hold one text aside (`typing_values`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from axlog.document.tree import NodeKind
from axlog.errors import UndecidedError
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
from axlog.query.values import comparison as compared_with

Wants = frozenset[Branch]
NOTHING: Wants = frozenset()


class Subject(NamedTuple):
    """A node to come: its kind and label."""

    kind: NodeKind
    label: str


@dataclass
class Asking:
    """A pattern's questions under bindings of its variables."""

    bindings: Mapping[str, str]
    strings: tuple[str, ...]
    count: Callable[[], None]

    def passes(self, node: PatternNode, subject: Subject) -> bool:
        """Whether a node to come passes the test and the comparisons of a pattern node."""
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
            raise UndecidedError("AX503", f"{comparison} compares the value of an element to come")
        return self._is_value(comparison, subject.label)

    def is_free(self, comparison: Comparison) -> bool:
        """Whether it only binds a variable that nothing else uses."""
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
            raise UndecidedError("AX503", f"{comparison} compares a date or a type to come")
        return compared_with(comparison.operator, operand)(value)

    # Wants at one node

    def settled(self, wants: Wants, subject: Subject) -> Iterator[tuple[Wants, Wants]]:
        """The ways to read wants at a node to come: those below it, those of its attributes."""
        for reading in self.readings(tuple(wants), lambda node: self.passes(node, subject)):
            attributes = frozenset(w for w in reading if _is_attribute(w))
            yield reading - attributes, attributes

    def readings(
        self, wants: tuple[Branch, ...], passes: Callable[[PatternNode], bool]
    ) -> Iterator[Wants]:
        """Every choice at ors and descendant-or-self, with what `self` asks settled."""
        self.count()
        for at, want in enumerate(wants):
            others = (*wants[:at], *wants[at + 1 :])
            match want:
                case Collect():  # shows what there is, asks for nothing
                    yield from self.readings(others, passes)
                    return
                case Or(alternatives=alternatives):
                    for alternative in alternatives:
                        yield from self.readings((*others, *alternative), passes)
                    return
                case Not():
                    raise UndecidedError("AX503", "`not` under types is not decided")
                case PatternNode(axis=Axis.SELF | Axis.DESCENDANT_OR_SELF as axis):
                    if passes(want):
                        yield from self.readings((*others, *want.branches), passes)
                    if axis is Axis.DESCENDANT_OR_SELF:
                        yield from self.readings((*others, _deeper(want)), passes)
                    return
        yield frozenset(wants)

    def attributes(self, wants: Iterable[Branch]) -> dict[str, str] | None:
        """Names and values of attributes that meet these wants, or None."""
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
            for reading in self.readings(node.branches, _asks_nothing)
        )

    def _is_met_by_text(self, want: Branch, text: Subject) -> bool:
        """Whether an attribute's text meets what is wanted below the attribute."""
        assert isinstance(want, PatternNode)
        if want.axis not in (Axis.CHILD, Axis.DESCENDANT) or not self.passes(want, text):
            return False
        below = self.readings(want.branches, lambda node: self.passes(node, text))
        return any(not reading for reading in below)


def _asks_nothing(node: PatternNode) -> bool:
    """Whether `self` passes an attribute, which only `self::node()` does."""
    return node.axis is Axis.SELF and isinstance(node.test, AnyNode) and not node.comparisons


def _is_attribute(want: Branch) -> bool:
    return isinstance(want, PatternNode) and want.axis is Axis.ATTRIBUTE


def _deeper(node: PatternNode) -> PatternNode:
    return PatternNode(Axis.DESCENDANT, node.test, node.name, node.comparisons, node.branches)


# Sharing out --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Slot:
    """A child that wants can be given to: one to come, perhaps by a call of a service, or a node
    that is there."""

    subject: Subject
    service: str | None = None
    node: int | None = None


class Group(NamedTuple):
    """A child and what it is to meet."""

    slot: Slot
    wants: Wants


Ways = Callable[[PatternNode, Slot], Iterator[Wants]]
"""What a child must meet so that a want holds at its parent, in every way there is."""


def share_out(
    wants: Iterable[Branch], slots: list[Slot], ways: Ways, count: Callable[[], None]
) -> Iterator[list[Group]]:
    """Every way to share wants out among children."""
    nodes = [want for want in sorted(wants, key=str) if isinstance(want, PatternNode)]
    return _share(nodes, slots, ways, count, [])


def _share(
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
    taken = {group.slot.node for group in groups} - {None}
    for at, group in enumerate(groups):
        for more in ways(want, group.slot):
            changed = [*groups]
            changed[at] = Group(group.slot, group.wants | more)
            yield from _share(others, slots, ways, count, changed)
    for slot in slots:
        if slot.node not in taken:  # a node that is there is one group
            for more in ways(want, slot):
                yield from _share(others, slots, ways, count, [*groups, Group(slot, more)])
