"""Whether a tree pattern holds on a message, with branches that meet in one node.

This is the check after the automaton, one function per pattern. A message is laid out once as
columns (`Layout`): labels and the extents of subtrees in document order, children and descendants
by label. Each pattern that the automaton leaves open is then a few lookups, up to the first match.
Nothing is counted; `program_rows.py` counts.

Law: `holds(Layout(message), DOCUMENT)` is whether the program has a row. Declined (`can_check`):
joins of variables and constraints over several nodes, which need rows.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable

from axlog.document.parser import Element
from axlog.document.tree import CALL_LABEL
from axlog.match.automaton import children
from axlog.match.linear_paths import joined_columns
from axlog.match.message_values import texts, value
from axlog.query.compile import Choice, Edge, Relation
from axlog.query.pattern import (
    AnyComment,
    AnyInstruction,
    AnyNode,
    AnyText,
    Axis,
    Literal,
    Name,
    Variable,
    Wildcard,
)
from axlog.query.values import comparison

DOCUMENT = 0
"""The document node in a layout: the message's root is its only child."""
_NONE: tuple[int, ...] = ()


class Layout:
    """A message's elements as columns, in document order; the document node comes first."""

    __slots__ = ("_texts", "_values", "by_label", "children", "elements", "ends", "labels")

    def __init__(self, message: Element) -> None:
        self.elements: list[Element | None] = [None]
        self.labels: list[str] = [""]
        self.children: list[dict[str, list[int]]] = [{}]
        self.by_label: dict[str, list[int]] = {}
        self.ends: list[int] = []
        self._texts: dict[int, list[str]] = {}
        self._values: dict[int, str] = {}
        parents = [DOCUMENT]
        waiting = [(message, DOCUMENT)]
        while waiting:
            element, above = waiting.pop()
            label = element.tag
            if type(label) is not str or label == CALL_LABEL:
                continue
            node = len(parents)
            parents.append(above)
            self.elements.append(element)
            self.labels.append(label)
            self.children.append({})
            self.children[above].setdefault(label, []).append(node)
            self.by_label.setdefault(label, []).append(node)
            if len(element):
                waiting += [(child, node) for child in children(element)[::-1]]
        self.ends = _ends(parents)

    def texts(self, node: int) -> list[str]:
        """The texts in an element."""
        known = self._texts.get(node)
        if known is None:
            element = self.elements[node]
            known = self._texts[node] = [] if element is None else texts(element)
        return known

    def value(self, node: int) -> str:
        """The string value of an element."""
        known = self._values.get(node)
        if known is None:
            element = self.elements[node]
            known = self._values[node] = "" if element is None else value(element)
        return known

    def below(self, node: int, label: str) -> list[int]:
        """The descendants of a label."""
        found = self.by_label.get(label)
        if found is None:
            return []
        return found[bisect_right(found, node) : bisect_left(found, self.ends[node])]


def _ends(parents: list[int]) -> list[int]:
    """For each node, the number after that of its last descendant."""
    ends = list(range(1, len(parents) + 1))
    for node in range(len(parents) - 1, 0, -1):
        above = parents[node]
        if ends[node] > ends[above]:
            ends[above] = ends[node]
    return ends


Check = Callable[[Layout, int], bool]
Text = Callable[[str], bool]


def can_check(root: Relation) -> bool:
    """Whether a program can be checked branch by branch."""
    if joined_columns(root):
        return False
    return not any(each.tests or any(a.tests for a in each.absences) for each in root.walk())


def make_check(root: Relation) -> Check:
    """A function of a layout and the document node that tests whether a program holds."""
    return _all(_at(root)) or _always


def _always(_: Layout, __: int) -> bool:
    return True


def _at(relation: Relation) -> list[Check]:
    """The checks of a relation on an element that passes its test."""
    found = [_has_value(check) for check in _compared(relation)]
    found += [_edge(edge) for edge in relation.edges]
    found += [_either(choice) for choice in relation.choices]
    found += [_never(_all(_at(absence.body)) or _always) for absence in relation.absences]
    return found


def _all(checks: list[Check]) -> Check | None:
    if len(checks) < 2:
        return checks[0] if checks else None
    if len(checks) == 2:
        first, second = checks
        return lambda layout, node: first(layout, node) and second(layout, node)
    return lambda layout, node: all(check(layout, node) for check in checks)


def _has_value(holds: Text) -> Check:
    return lambda layout, node: holds(layout.value(node))


def _either(choice: Choice) -> Check:
    parts = [_all(_at(alternative)) or _always for alternative in choice.alternatives]
    return lambda layout, node: any(part(layout, node) for part in parts)


def _never(check: Check) -> Check:
    return lambda layout, node: not check(layout, node)


def _compared(relation: Relation) -> list[Text]:
    """The comparisons of a relation's node with constants."""
    node = relation.node
    return [
        comparison(one.operator, one.operand)
        for one in (node.comparisons if node is not None else ())
        if not isinstance(one.operand, Variable)
    ]


# Elements -----------------------------------------------------------------------------------------


def _edge(edge: Edge) -> Check:
    """Whether an axis reaches, from an element, a node where a relation has a row."""
    relation, axis = edge.relation, edge.axis
    assert relation.node is not None
    if axis is Axis.ATTRIBUTE:
        return _attribute(relation)
    test = relation.node.test
    if isinstance(test, AnyComment | AnyInstruction):
        return _never(_always)  # a layout has no such nodes
    found: list[Check] = []
    if not isinstance(test, Literal | AnyText):
        label = test.label if isinstance(test, Name) else None
        found.append(_elements(axis, label, _all(_at(relation))))
    if not isinstance(test, Name | Wildcard) and axis is not Axis.SELF:
        found.append(_texts(axis, _text(relation)))
    if len(found) == 1:
        return found[0]
    return lambda layout, node: any(check(layout, node) for check in found)


def _elements(axis: Axis, label: str | None, inside: Check | None) -> Check:
    if axis is Axis.CHILD:
        return _any_child(inside) if label is None else _child(label, inside)
    if axis is Axis.DESCENDANT:
        return _descendant(label, inside)
    itself = _self(label, inside)
    if axis is Axis.SELF:
        return itself
    below = _descendant(label, inside)
    return lambda layout, node: itself(layout, node) or below(layout, node)


def _child(label: str, inside: Check | None) -> Check:
    if inside is None:
        return lambda layout, node: label in layout.children[node]
    check = inside  # narrowed for the type checker

    def some(layout: Layout, node: int) -> bool:
        for child in layout.children[node].get(label, _NONE):  # noqa: SIM110  # any() costs double
            if check(layout, child):
                return True
        return False

    return some


def _any_child(inside: Check | None) -> Check:
    if inside is None:
        return lambda layout, node: bool(layout.children[node])
    return lambda layout, node: any(
        inside(layout, child) for same in layout.children[node].values() for child in same
    )


def _descendant(label: str | None, inside: Check | None) -> Check:
    def reached(layout: Layout, node: int) -> Iterable[int]:
        return range(node + 1, layout.ends[node]) if label is None else layout.below(node, label)

    if inside is None:
        return lambda layout, node: bool(reached(layout, node))
    return lambda layout, node: any(inside(layout, each) for each in reached(layout, node))


def _self(label: str | None, inside: Check | None) -> Check:
    """The document node passes no test."""
    check = inside or _always

    def itself(layout: Layout, node: int) -> bool:
        passes = layout.labels[node] == label if label is not None else node != DOCUMENT
        return passes and check(layout, node)

    return itself


# Texts and attributes -----------------------------------------------------------------------------


def _texts(axis: Axis, holds: Text) -> Check:
    if axis is Axis.CHILD:
        return lambda layout, node: any(map(holds, layout.texts(node)))
    return lambda layout, node: any(
        holds(text) for each in range(node, layout.ends[node]) for text in layout.texts(each)
    )


def _attribute(relation: Relation) -> Check:
    assert relation.node is not None
    test = relation.node.test
    holds = _string(relation, is_attribute=True)
    if not isinstance(test, Name):
        return lambda layout, node: any(map(holds, _attributes(layout, node).values()))
    name = test.label

    def some(layout: Layout, node: int) -> bool:
        element = layout.elements[node]
        text = None if element is None else element.get(name)
        return text is not None and holds(text)

    return some


def _attributes(layout: Layout, node: int) -> dict[str, str]:
    element = layout.elements[node]
    return {} if element is None else {str(k): str(v) for k, v in element.items()}


def _text(relation: Relation) -> Text:
    """A check that a text passes a relation's test and its branches."""
    assert relation.node is not None
    test = relation.node.test
    holds = _string(relation, is_attribute=False)
    if isinstance(test, Literal):
        wanted = test.text
        return lambda text: text == wanted and holds(text)
    if isinstance(test, AnyText | AnyNode | Variable):
        return holds
    return lambda text: False


def _string(relation: Relation, is_attribute: bool) -> Text:
    """The check of a relation on a text, which has no content, or on an attribute."""
    checks = list(_compared(relation))
    checks += [_from_string(edge, is_attribute) for edge in relation.edges]
    for choice in relation.choices:
        checks.append(_some([_string(each, is_attribute) for each in choice.alternatives]))
    for absence in relation.absences:
        checks.append(_not(_string(absence.body, is_attribute)))
    if len(checks) == 1:
        return checks[0]
    return lambda text: all(check(text) for check in checks)


def _from_string(edge: Edge, is_attribute: bool) -> Text:
    assert edge.relation.node is not None
    axis, test = edge.axis, edge.relation.node.test
    if axis is Axis.DESCENDANT_OR_SELF or axis is (Axis.CHILD if is_attribute else Axis.SELF):
        return _text(edge.relation)
    if is_attribute and axis is Axis.DESCENDANT:
        return _text(edge.relation)
    if is_attribute and axis is Axis.SELF and isinstance(test, AnyNode):
        return _string(edge.relation, is_attribute)
    return lambda text: False


def _some(checks: list[Text]) -> Text:
    return lambda text: any(check(text) for check in checks)


def _not(check: Text) -> Text:
    return lambda text: not check(text)
