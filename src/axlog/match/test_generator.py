"""Whether a pattern holds on a parsed message, as generated code that leaves at the first match.

For few patterns, tested one by one. A chain of steps becomes nested loops that return; what else
hangs on a node becomes a function of its own, called there.

Law: `ask(message)` is whether the program has a row. Declined (`None`): joins and constraints,
which need rows; `self` and tests that a text passes as well as an element; paths longer than loops
can nest; more than two loops over descendants inside each other, which a deep message multiplies.
`program_rows.py` takes those. Looking for names in the message's bytes first was tried: a search
costs as much as three steps, and child paths mostly end sooner.
"""

from __future__ import annotations

from collections.abc import Callable

from axlog.document.parser import Element
from axlog.document.recorder import SPACES
from axlog.document.tree import CALL_LABEL
from axlog.match.message_values import is_element, texts, value
from axlog.match.twig_matcher import can_check
from axlog.query.compile import Edge, Relation
from axlog.query.pattern import AnyText, Axis, Literal, Name, PatternNode, Variable, Wildcard
from axlog.query.values import comparison

Ask = Callable[[Element], bool]
MOST_DESCENTS = 2
DEEPEST = 17
"""Blocks inside each other at most: Python nests twenty loops."""
_FEW = 8  # children up to which looking at each is faster than an iterator that looks for a name


class _Declined(Exception):
    """The code for this is not written here."""


def make_question(root: Relation) -> Ask | None:
    """Code that says whether a program holds; None if it is declined."""
    if not can_check(root):
        return None
    writer = _Writer()
    try:
        name = writer.function(root, is_document=True)
    except _Declined:
        return None
    scope = dict(writer.constants)
    exec(compile("\n".join(writer.functions), "<question>", "exec"), scope)
    ask: Ask = scope[name]  # type: ignore[assignment]  # what the code defines
    return ask


class _Writer:
    """Writes functions of an element; `constants` are what they refer to."""

    def __init__(self) -> None:
        self.functions: list[str] = []
        self.constants: dict[str, object] = {
            "value": value, "has_value": has_value, "texts": texts, "is_element": is_element,
        }  # fmt: skip
        self._numbers = 0
        self._descents = 0  # loops over descendants that the code to be written stands in
        self._lines: list[str] = []

    def _fresh(self, stem: str) -> str:
        self._numbers += 1
        return f"{stem}{self._numbers}"

    def function(self, relation: Relation, is_document: bool = False) -> str:
        """A function that says whether all that hangs on a node holds."""
        name = self._fresh("f")
        outer, self._lines = self._lines, [f"def {name}(e):"]
        self._at(relation, "e", 1, is_document)
        self._lines.append("    return False")
        self.functions += self._lines
        self._lines = outer
        return name

    def _line(self, depth: int, text: str) -> None:
        self._lines.append("    " * depth + text)

    def _at(self, relation: Relation, at: str, depth: int, is_document: bool = False) -> None:
        """Tests at a node, the cheap ones first; the last edge goes on inside."""
        conditions = self._values(relation.node, at)
        walks: list[Edge] = []
        for edge in relation.edges:
            if edge.axis is Axis.ATTRIBUTE and not is_document:
                conditions.append(self._attribute(edge.relation, at))
            elif _is_text(edge):
                conditions.append(self._text(edge, at, is_document))
            else:
                walks.append(edge)
        conditions += [self._alone(edge, at, is_document) for edge in walks[:-1]]
        for choice in relation.choices:
            names = [self.function(each, is_document) for each in choice.alternatives]
            conditions.append("(" + " or ".join(f"{name}({at})" for name in names) + ")")
        for absence in relation.absences:
            conditions.append(f"not {self.function(absence.body, is_document)}({at})")
        if conditions:
            self._line(depth, f"if {' and '.join(conditions)}:")
            depth += 1
        if walks:
            self._walk(walks[-1], at, depth, is_document)
        else:
            self._line(depth, "return True")

    def _alone(self, edge: Edge, at: str, is_document: bool) -> str:
        """A call of a function for one edge."""
        return f"{self.function(Relation('', None, edges=(edge,)), is_document)}({at})"

    def _walk(self, edge: Edge, at: str, depth: int, is_document: bool) -> None:
        """The elements that an edge reaches, and what they must have."""
        node = edge.relation.node
        if node is None or not isinstance(node.test, Name | Wildcard) or depth > DEEPEST:
            raise _Declined
        label = node.test.label if isinstance(node.test, Name) else None
        if label == CALL_LABEL:
            raise _Declined
        child = self._fresh("e")
        named = _named_child(edge)
        if named is not None and edge.axis is Axis.DESCENDANT:
            self._below_any(named, at, child, depth, is_document)
            return
        test = f"is_element({child})" if label is None else f"{child}.tag == {label!r}"
        by_name = "" if label is None else repr(label)
        if edge.axis is Axis.CHILD and is_document:
            self._line(depth, f"{child} = {at}")
        elif edge.axis is Axis.CHILD:
            many = f"{at}.iterchildren({by_name})"
            self._line(depth, f"for {child} in {at}[:] if len({at}) < {_FEW} else {many}:")
            depth += 1
        elif edge.axis is Axis.DESCENDANT or (edge.axis is Axis.DESCENDANT_OR_SELF and is_document):
            self._descents += 1
            if self._descents > MOST_DESCENTS:
                raise _Declined
            reach = "iter" if is_document else "iterdescendants"
            self._line(depth, f"for {child} in {at}.{reach}({by_name}):")
            depth += 1
        else:
            raise _Declined
        if label is None and _goes_on(edge.relation):
            test = f"len({child})"  # no comment, instruction or call has anything in it
        if label is None or edge.axis is Axis.CHILD:
            self._line(depth, f"if {test}:")
            depth += 1
        self._at(edge.relation, child, depth)
        self._descents -= edge.axis in (Axis.DESCENDANT, Axis.DESCENDANT_OR_SELF)

    def _below_any(self, edge: Edge, at: str, child: str, depth: int, is_document: bool) -> None:
        """`//*/a`: any `a` below that has an element between; few are `a`, all are `*`."""
        assert edge.relation.node is not None
        assert isinstance(edge.relation.node.test, Name)
        label = edge.relation.node.test.label
        self._descents += 1
        if self._descents > MOST_DESCENTS:
            raise _Declined
        self._line(depth, f"for {child} in {at}.iterdescendants({label!r}):")
        depth += 1
        if not is_document:
            self._line(depth, f"if {child}.getparent() is not {at}:")
            depth += 1
        self._at(edge.relation, child, depth)
        self._descents -= 1

    # Strings --------------------------------------------------------------------------------------

    def _values(self, node: PatternNode | None, at: str) -> list[str]:
        """The comparisons of an element's string value; an equal one is not put together first."""
        found = self._conditions(node, f"value({at})")
        begin = f"value({at}) == "
        return [
            _equal(at, each.removeprefix(begin)) if each.startswith(begin) else each
            for each in found
        ]

    def _conditions(self, node: PatternNode | None, string: str) -> list[str]:
        """The comparisons of a node with constants."""
        found = []
        for one in node.comparisons if node is not None else ():
            if isinstance(one.operand, Variable):
                continue
            if one.operator == "=" and isinstance(one.operand, str):
                found.append(f"{string} == {one.operand!r}")
            else:
                check = self._fresh("CHECK")
                self.constants[check] = comparison(one.operator, one.operand)
                found.append(f"{check}({string})")
        return found

    def _attribute(self, relation: Relation, at: str) -> str:
        node = relation.node
        if node is None or not isinstance(node.test, Name) or list(relation.below()):
            raise _Declined
        text = self._fresh("s")
        given = f"({text} := {at}.get({node.test.label!r})) is not None"
        return " and ".join([given, *self._conditions(node, text)])

    def _text(self, edge: Edge, at: str, is_document: bool) -> str:
        """A text in an element: any, or a given one."""
        node = edge.relation.node
        assert node is not None
        if list(edge.relation.below()) or node.comparisons:
            raise _Declined
        if is_document or edge.axis is not Axis.CHILD:
            raise _Declined
        if isinstance(node.test, Literal):
            return f"{node.test.text!r} in texts({at})"
        return f"texts({at})"


def _equal(at: str, wanted: str) -> str:
    """An element's value against a string; mostly it has nothing but one text."""
    if wanted == "''":
        return f"has_value({at}, '')"
    return f"(has_value({at}, {wanted}) if len({at}) else {at}.text == {wanted})"


def has_value(element: Element, wanted: str) -> bool:
    """Whether an element's string value is this one; the first text that differs says no."""
    return _read(element, wanted, 0) == len(wanted)


def _read(element: Element, wanted: str, at: int) -> int:
    """How far the texts of an element carry on a string from a position; -1 if they differ."""
    text = element.text
    if text and (not len(element) or text.strip(SPACES)):
        if not wanted.startswith(text, at):
            return -1
        at += len(text)
    for child in element:
        if type(child.tag) is str:
            at = _read(child, wanted, at)
            if at < 0:
                return -1
        tail = child.tail
        if tail and tail.strip(SPACES):
            if not wanted.startswith(tail, at):
                return -1
            at += len(tail)
    return at


def _named_child(edge: Edge) -> Edge | None:
    """The one edge of a wildcard that asks for nothing but a child of some name."""
    relation = edge.relation
    if relation.node is None or not isinstance(relation.node.test, Wildcard):
        return None
    if relation.node.comparisons or relation.choices or relation.absences:
        return None
    if len(relation.edges) != 1 or relation.edges[0].axis is not Axis.CHILD:
        return None
    below = relation.edges[0].relation.node
    is_named = below is not None and isinstance(below.test, Name) and below.test.label != CALL_LABEL
    return relation.edges[0] if is_named else None


def _goes_on(relation: Relation) -> bool:
    """Whether a node must have elements below it."""
    return any(
        edge.axis in (Axis.CHILD, Axis.DESCENDANT) and not _is_text(edge) for edge in relation.edges
    )


def _is_text(edge: Edge) -> bool:
    node = edge.relation.node
    return node is not None and isinstance(node.test, Literal | AnyText)
