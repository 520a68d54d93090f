"""What messages can bring: the generalised rows of a relation in trees still to come (P2 3, step
2).

Everything in a tree to come is unknown except what the pattern itself says: a label that is tested
for, a value that is compared with `=`. Its times are at or after each other down the tree, for a
message may hold calls that bring more later; all the same (`together`) if messages hold none.
Conditions that contradict each other bring nothing. Exact, or refused by name: `not`, and
comparisons of a value that has further conditions inside.
"""

from __future__ import annotations

from dataclasses import replace

from axlog.analysis.constraints import Inequality, at_or_after
from axlog.analysis.generalised import NOTHING, Need, Rows, add_need, add_rows, constrain, meet
from axlog.analysis.unknowns import ValueNeeds, is_consistent
from axlog.datalog.compile import Relation
from axlog.errors import UndecidedError
from axlog.language.pattern import (
    AnyNode,
    AnyText,
    Axis,
    Comparison,
    Literal,
    Name,
    PatternNode,
    Variable,
    Wildcard,
)

_INSIDE = (Axis.CHILD, Axis.DESCENDANT, Axis.ATTRIBUTE)


def bringable(relation: Relation, is_root: bool, together: bool = False) -> Rows:
    """The rows that a message can bring; `is_root`: at the root of its tree, an element."""
    return _Bringing(together).rows(relation, is_root, None)


class _Bringing:
    def __init__(self, together: bool) -> None:
        self.together = together

    def rows(self, relation: Relation, is_element: bool, above: str | None) -> Rows:
        """The rows of a relation at a node to come; `above` names the nearest named node over it.
        """
        node = relation.node
        assert node is not None
        inside = _requires_element(relation)
        is_attribute = node.axis is Axis.ATTRIBUTE
        is_element = (is_element or inside or bool(_names(relation))) and not is_attribute
        if is_element and isinstance(node.test, Literal | AnyText):
            return {}
        if is_attribute and any(
            e.axis in (Axis.ATTRIBUTE, Axis.DESCENDANT) for e in relation.edges
        ):
            return {}
        constants = [c for c in node.comparisons if not isinstance(c.operand, Variable)]
        if isinstance(node.test, Literal):
            constants.append(Comparison("=", node.test.text))
        if constants and inside and not is_attribute:
            raise UndecidedError(
                "AX503", f"{node} compares a value to come that has conditions inside it"
            )
        if not is_consistent(constants):
            return {}
        start = self._own(relation, node, is_element, constants, above)
        if start is None:
            return {}
        layout, values, need = start
        return self._join(relation, {values: [need]}, layout, node.name or above, is_attribute)

    def _own(
        self,
        relation: Relation,
        node: PatternNode,
        is_element: bool,
        constants: list[Comparison],
        above: str | None,
    ) -> tuple[list[str], tuple[str | int | None, ...], Need] | None:
        """The node's own columns, unknown but for what its tests say."""
        known: dict[str, str | int | None] = {}
        need = NOTHING
        label = self._label(relation, node)
        if label is _CONTRADICTION:
            return None
        fixed = next((c.operand for c in constants if c.operator == "="
                      and isinstance(c.operand, str)), None)  # fmt: skip
        for column, source in relation.own:
            value = {"label": label, "value": fixed}.get(source)
            if known.get(column) is not None and value is not None and known[column] != value:
                return None
            if known.get(column) is None:
                known[column] = value if isinstance(value, str) else None
            if source == "value" and fixed is None and constants:
                compared = frozenset((column, c) for c in constants)
                need = replace(need, values=need.values.joined(ValueNeeds(compared)))
            if source == "label" and is_element and isinstance(node.test, Variable):
                names = ValueNeeds(names=frozenset({column}))
                need = replace(need, values=need.values.joined(names))
        if node.name is not None:
            times = frozenset(self._order(node.name, above))
            need = replace(need, times=times, unknown_times=frozenset({node.name}))
        return list(known), tuple(known.values()), need

    def _label(self, relation: Relation, node: PatternNode) -> object:
        """The label that tests fix, None if they leave it open."""
        labels = set(_names(relation))
        if isinstance(node.test, Name):
            labels.add(node.test.label)
        if isinstance(node.test, Literal):
            labels.add(node.test.text)
        if len(labels) > 1:
            return _CONTRADICTION
        label = next(iter(labels), None)
        return f"@{label}" if label is not None and node.axis is Axis.ATTRIBUTE else label

    def _order(self, name: str, above: str | None) -> list[Inequality]:
        if above is None:
            return []
        later = at_or_after(name, above)
        return [later, at_or_after(above, name)] if self.together else [later]

    def _join(
        self,
        relation: Relation,
        rows: Rows,
        layout: list[str],
        above: str | None,
        is_attribute: bool,
    ) -> Rows:
        if relation.absences:
            raise UndecidedError("AX503", "`not` in what a stream may bring")
        for edge in relation.edges:
            part = self._part(edge.axis, edge.relation, above, is_attribute)
            rows, layout = meet(rows, layout, part, edge.relation.columns)
        for choice in relation.choices:
            merged: Rows = {}
            longer = list(dict.fromkeys([*layout, *choice.columns]))
            for alternative in choice.alternatives:
                part = self._join(alternative, {(): [NOTHING]}, [], above, is_attribute)
                met, columns = meet(rows, list(layout), part, alternative.columns)
                order = [columns.index(column) for column in longer]
                add_rows(merged, {tuple(v[i] for i in order): needs for v, needs in met.items()})
            rows, layout = merged, longer
        at = [layout.index(column) for column in relation.columns]
        found: Rows = {}
        for values, needs in rows.items():
            known = dict(zip(layout, values, strict=True))
            for need in needs:
                for narrowed in constrain(relation.tests, known, need):
                    add_need(found, tuple(values[i] for i in at), narrowed)
        return found

    def _part(self, axis: Axis, relation: Relation, above: str | None, is_attribute: bool) -> Rows:
        node = relation.node
        assert node is not None
        if is_attribute and isinstance(node.test, Name | Wildcard):
            return {}  # an attribute has nothing but a text below
        if axis is Axis.SELF:
            if node.name is not None or node.comparisons or isinstance(node.test, Variable):
                raise UndecidedError("AX503", f"{node} binds a node to come a second time")
            if isinstance(node.test, AnyNode | Wildcard | Name):
                return self._join(relation, {(): [NOTHING]}, [], above, is_attribute)
            raise UndecidedError("AX503", f"{node} tests a node to come a second time")
        return self.rows(relation, False, above)


def _requires_element(relation: Relation) -> bool:
    """Whether only an element can have what the relation asks for below its node."""
    return any(edge.axis in _INSIDE for edge in relation.edges) or any(
        all(_requires_element(alternative) for alternative in choice.alternatives)
        for choice in relation.choices
    )


_CONTRADICTION = object()


def _names(relation: Relation) -> list[str]:
    """The names that `self::` steps give the node besides its own test."""
    nodes = [edge.relation.node for edge in relation.edges if edge.axis is Axis.SELF]
    return [n.test.label for n in nodes if n is not None and isinstance(n.test, Name)]
