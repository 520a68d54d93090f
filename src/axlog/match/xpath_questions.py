"""XPath for libxml2 that asks whether a message may match a pattern.

An expression is evaluated in C at the root element of a parsed message. XPath 1.0 has no exact form
for values that skip white space, native numbers, formulas, joins and constraints: the expression
is true more often, or leaves them out.

Law: if a program has a row on a message, its expression is true there. The converse holds if it
`is_exact` and, if it `sees_calls`, the message has none. Not handled: the values of messages that
only a tree represents correctly (`message_forms.needs_tree`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import islice

from axlog.document.recorder import SPACES
from axlog.match.linear_paths import joined_columns
from axlog.query.compile import Absence, Choice, Edge, Relation
from axlog.query.pattern import Axis, Comparison, Name, Number, PatternNode, Test, Wildcard

MOST_DESCENTS = 3
"""The most steps to descendants in an expression: libxml2 compares their results pair by pair."""
MOST_RELATIONS = 60
"""The most relations of a program that is asked in XPath: expressions are nested."""
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*", re.ASCII)
_TEXT = re.compile(r"[ -~]*", re.ASCII)
_LARGEST = 1e12
_PRECISION = 1e-6
_INSIDE = {
    Axis.CHILD: "child", Axis.DESCENDANT: "descendant", Axis.SELF: "self",
    Axis.DESCENDANT_OR_SELF: "descendant-or-self", Axis.ATTRIBUTE: "attribute",
}  # fmt: skip
_FROM_DOCUMENT = {
    Axis.CHILD: "self", Axis.DESCENDANT: "descendant-or-self",
    Axis.DESCENDANT_OR_SELF: "descendant-or-self",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Question:
    """An expression, and whether it is true only for messages that match."""

    expression: str
    is_exact: bool
    sees_calls: bool  # as if they were other elements


def questions_of(root: Relation) -> list[Question]:
    """Questions of a program, which differ in cost; none if they would be true for every message.

    libxml2 stops at the first node that a predicate finds, but a predicate has a cost.
    """
    if sum(1 for _ in islice(root.walk(), MOST_RELATIONS + 1)) > MOST_RELATIONS:
        return []
    writer = _Writer()
    conditions = writer.conditions(root, _FROM_DOCUMENT)
    if not conditions or writer.descents > MOST_DESCENTS:
        return []
    is_exact = writer.is_exact and not joined_columns(root)
    text = " and ".join(conditions)
    return [Question(each, is_exact, writer.sees_calls) for each in (text, f"self::node()[{text}]")]


class _Writer:
    """Writes conditions that hold wherever a relation has rows."""

    def __init__(self) -> None:
        self.is_exact, self.sees_calls = True, False
        self.descents = 0

    def conditions(self, relation: Relation, axes: dict[Axis, str]) -> list[str]:
        """The conditions of a relation's parts at a node, from which these axes are possible."""
        found = [self._edge(edge, axes) for edge in relation.edges]
        found += [self._choice(choice, axes) for choice in relation.choices]
        found += [self._absence(absence, axes) for absence in relation.absences]
        self.is_exact = self.is_exact and not relation.tests
        return [each for each in found if each]

    def _edge(self, edge: Edge, axes: dict[Axis, str]) -> str:
        """A path to the nodes that an edge finds; "" if there is none."""
        relation, axis = edge.relation, axes.get(edge.axis)
        label = None if relation.node is None else _label(relation.node.test)
        if relation.node is None or axis is None or label is None:
            return self._left_out()
        if edge.axis in (Axis.DESCENDANT, Axis.DESCENDANT_OR_SELF):
            self.descents += 1
        if label == "*":
            self.is_exact = self.is_exact and relation.node.test == Wildcard()
            # A call is an element for XPath; it has no content.
            self.sees_calls = self.sees_calls or not any(map(_is_inside, relation.edges))
        if edge.axis is Axis.ATTRIBUTE:
            return self._attribute(label, relation)
        tests = self._comparisons(relation.node, is_attribute=False)
        inside = self.conditions(relation, _INSIDE)
        # The last path goes on; the other ones are predicates.
        paths = [each for each in inside if each.startswith(_PATHS)]
        last = f"/{paths[-1]}" if paths else ""
        tests += [each for each in inside if not paths or each is not paths[-1]]
        return f"{axis}::{label}{_predicate(tests)}{last}"

    def _attribute(self, label: str, relation: Relation) -> str:
        assert relation.node is not None
        if [*relation.below()] or relation.tests:
            self.is_exact = False
        tests = self._comparisons(relation.node, is_attribute=True)
        if len(tests) == 1 and tests[0].startswith(". = "):
            return f"attribute::{label}{tests[0][1:]}"
        return f"attribute::{label}{_predicate(tests)}"

    def _choice(self, choice: Choice, axes: dict[Axis, str]) -> str:
        alternatives = [self.conditions(each, axes) for each in choice.alternatives]
        if not all(alternatives):
            return self._left_out()
        return f"({' or '.join(' and '.join(each) for each in alternatives)})"

    def _absence(self, absence: Absence, axes: dict[Axis, str]) -> str:
        """A `not`, which must be exact: a body that is true too often would rule out rows."""
        writer = _Writer()
        inside = writer.conditions(absence.body, axes)
        self.descents += writer.descents
        is_exact = writer.is_exact and not writer.sees_calls
        if absence.tests or not is_exact or not inside:
            return self._left_out()
        return f"not({' and '.join(inside)})"

    def _left_out(self) -> str:
        self.is_exact = False
        return ""

    def _comparisons(self, node: PatternNode, is_attribute: bool) -> list[str]:
        """The conditions on the string value of a node."""
        found = [_comparison(each, is_attribute) for each in node.comparisons]
        if not is_attribute or not all(each.startswith(". = ") for each in found):
            self.is_exact = self.is_exact and not found
        return [each for each in found if each]


_PATHS = ("child::", "descendant::", "self::", "descendant-or-self::")


def _is_inside(edge: Edge) -> bool:
    """Whether an edge leads to elements in an element."""
    node = edge.relation.node
    is_named = node is not None and isinstance(node.test, Name | Wildcard)
    return is_named and edge.axis in (Axis.CHILD, Axis.DESCENDANT)


def _label(test: Test) -> str | None:
    """The node test in XPath, or one that more nodes pass; None if others than elements pass."""
    if isinstance(test, Name) and _NAME.fullmatch(test.label):
        return test.label
    return "*" if isinstance(test, Name | Wildcard) else None


def _predicate(conditions: list[str]) -> str:
    return f"[{' and '.join(conditions)}]" if conditions else ""


def _comparison(test: Comparison, is_attribute: bool) -> str:
    """A condition that holds wherever a comparison does; "" if there is none.

    Numbers are compared with a margin: libxml2 rounds them in its own way. What is not a number
    there may be one here, so the comparison is the denial of the opposite one.
    """
    operand, operator = test.operand, test.operator
    if isinstance(operand, str):
        return _equality(operand, is_attribute) if operator == "=" else ""
    if not isinstance(operand, float | Number) or operator not in ("=", "<", "<=", ">", ">="):
        return ""
    bound = float(operand.value if isinstance(operand, Number) else operand)
    if not abs(bound) < _LARGEST:
        return ""
    margin = _PRECISION * (1 + abs(bound))
    low, high = f". < {bound - margin:.9f}", f". > {bound + margin:.9f}"
    either = {"=": f"{low} or {high}", "<": high, "<=": high}.get(operator, low)
    return f"not({either})"


def _equality(wanted: str, is_attribute: bool) -> str:
    """White space between elements is part of a value in XPath only."""
    if not _TEXT.fullmatch(wanted) or ("'" in wanted and '"' in wanted):
        return ""
    quote = '"' if "'" in wanted else "'"
    if is_attribute:
        return f". = {quote}{wanted}{quote}"
    solid = wanted.translate(dict.fromkeys(map(ord, SPACES)))
    is_solid = f"translate(., '{SPACES}', '') = {quote}{solid}{quote}"
    return f"(. = {quote}{wanted}{quote} or descendant::node()[2] and {is_solid})"
