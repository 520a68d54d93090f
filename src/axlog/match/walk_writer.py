"""Generated loops over a parsed message: the part that both modes of the generator share.

A walk visits the nodes that an axis reaches from a node, as far as they pass a relation's test. It
uses lxml's own iterators (`iter(tag)`, `iterchildren(tag)`), so that it makes no object for other
nodes. The code to run at each node that passes is written by the caller (`Then`).

Law: a walk visits the same nodes as `evaluate/interpreter.py` on the message's tree. Not handled:
comments and processing instructions, which a walk never visits, and the texts of messages with
`xml:space` or calls. Such messages are matched on a tree.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from axlog.evaluate.value_tests import comparison
from axlog.match.code_writer import CodeWriter
from axlog.match.message_values import all_texts, has_value, is_element, texts, value
from axlog.query.compile import Edge, Relation
from axlog.query.pattern import (
    AnyComment,
    AnyInstruction,
    AnyNode,
    AnyText,
    Axis,
    Literal,
    Name,
    PatternNode,
    Variable,
    Wildcard,
)

DEEPEST = 10
"""The depth of nested blocks from which separate functions are written: Python nests at most twenty
loops."""
DESCENT = (Axis.DESCENDANT, Axis.DESCENDANT_OR_SELF)
DOCUMENT, ELEMENT, TEXT, ATTRIBUTE = "document", "element", "text", "attribute"
_FEW = 8
"""Children up to which testing each is faster than an iterator that searches for a name."""


class Node(NamedTuple):
    """A node of the message in the code: the variable that holds it, and its kind.

    The variable holds an element, or the string of a text or an attribute. For the document node it
    holds the message's root element. The label of an attribute is an expression. So is the handle
    of a text or an attribute, which tells it from others with the same string
    (`document_rows.py`); the texts of a loop have none.
    """

    name: str
    kind: str = ELEMENT
    label: str = ""
    handle: str = ""


class _Children(NamedTuple):
    """The variables of a pass over the children of an element.

    A list of every child, or None if they are many; lists by name; numbers of counted branches.
    """

    every: str
    by_name: dict[str, str]
    numbers: dict[Edge, str]


Then: TypeAlias = Callable[[Node], None]
"""Writes the code to run at a node."""


class WalkWriter(CodeWriter):
    """Writes walks; its subclasses write the code at the nodes."""

    deepest = DEEPEST

    def __init__(self) -> None:
        super().__init__()
        self.descents = 0  # loops over descendants around the current code
        self._children: dict[str, _Children] = {}  # of an element, by its variable
        self._pending: list[tuple[str, Node, int, Then]] = []
        self.constants |= {
            "texts": texts, "all_texts": all_texts, "value": value, "has_value": has_value,
            "is_element": is_element,
        }  # fmt: skip

    def descend(self) -> None:
        """Account for one more loop over descendants, at the start of its body."""
        self.descents += 1

    def walk(self, axis: Axis, relation: Relation, at: Node, then: Then) -> None:
        """Write a walk from a node along an axis."""
        node = relation.node
        assert node is not None
        test = node.test
        if at.kind in (TEXT, ATTRIBUTE):
            self.walk_string(axis, relation, at, then)
        elif axis is Axis.ATTRIBUTE:
            self._attributes(relation, node, at, then)
        elif isinstance(test, AnyComment | AnyInstruction):
            return
        elif axis is Axis.CHILD and at.kind == ELEMENT and not isinstance(test, Name | Wildcard):
            self._content(relation, node, at, then)
        else:
            if not isinstance(test, Literal | AnyText):
                self._elements(axis, relation, node, at, then)
            if not isinstance(test, Name | Wildcard) and axis in DESCENT:
                self._texts(axis, relation, node, at, then)

    def describe(self, relation: Relation) -> str:
        """A comment with the pattern node, escaped because a text in it must not end the line."""
        if relation.node is None:
            return ""
        return f"  # {relation.name} {repr(str(relation.node))[1:-1]}"

    # Separate functions ---------------------------------------------------------------------------

    def apart(self, stem: str, at: Node, write: Then) -> str:
        """The name of a separate function of a node, which is written when this one is done."""
        name = self.fresh(stem)
        self._pending.append((name, at, self.descents, write))
        return name

    def write_apart(self, more: str = "") -> bool:
        """Write the pending functions and those that they add; whether there are any.

        This is a loop without recursion, because patterns may be deep.
        """
        is_split = bool(self._pending)
        while self._pending:
            name, at, self.descents, write = self._pending.pop()
            top = at._replace(name=self.fresh("e"))
            self.depth = 0
            self.open(f"def {name}({top.name}{more}):")
            write(top)
        return is_split

    # Elements -------------------------------------------------------------------------------------

    def share_children(self, edges: list[Edge], at: Node) -> bool:
        """Visit the children of an element once for several walks in this block, if there are.

        Branches that are only counted are counted in this pass (`counts`), the other children are
        listed by name. Whether it was written: then `forget_children` ends its use.
        """
        visiting = [edge for edge in edges if _visits_children(edge)]
        by_name: dict[str, list[Edge]] = {}
        for edge in dict.fromkeys(visiting):
            label = _label(edge)
            if label:
                by_name.setdefault(label, []).append(edge)
        is_known = at.kind != ELEMENT or at.name in self._children
        if is_known or len(visiting) < 2 or self.depth > self.deepest:
            return False
        if len(by_name) < 2 or len(by_name) > _FEW or not all(map(_label, visiting)):
            listed = self.fresh("kids")
            self.line(f"{listed} = {at.name}[:] if len({at.name}) < {_FEW} else None")
            self._children[at.name] = _Children(listed, {}, {})
            return True
        known = self._children[at.name] = _Children("", {}, {})
        for label, found in by_name.items():
            for edge in found:
                if self.counts(edge):
                    known.numbers[edge] = self.fresh("n")
                elif label not in known.by_name:
                    known.by_name[label] = self.fresh("kids")
        self.line(
            "; ".join(
                [f"{listed} = []" for listed in known.by_name.values()]
                + [f"{number} = 0" for number in known.numbers.values()]
            )
        )
        child, tag = self.fresh("e"), self.fresh("g")
        names = ", ".join(map(repr, by_name))
        few = f"{at.name}[:] if len({at.name}) < {_FEW}"
        self.open(f"for {child} in {few} else {at.name}.iterchildren({names}):")
        self.line(f"{tag} = {child}.tag")
        for number, (label, found) in enumerate(by_name.items()):
            self.open(f"{'elif' if number else 'if'} {tag} == {label!r}:")
            for edge in found:
                if edge in known.numbers:
                    self.count(edge, Node(child), known.numbers[edge])
            if label in known.by_name:
                self.line(f"{known.by_name[label]}.append({child})")
            self.close()
        self.close()
        return True

    def counts(self, edge: Edge) -> bool:
        """Whether a branch is counted in the pass over the children of its node."""
        return False

    def count(self, edge: Edge, at: Node, number: str) -> None:
        """Write the addition of a branch's rows at a child to a number."""

    def counted(self, edge: Edge, at: Node) -> str | None:
        """The number of a branch that the pass over the children counted; None: it did not."""
        known = self._children.get(at.name)
        return None if known is None else known.numbers.get(edge)

    def forget_children(self, at: Node) -> None:
        """End the use of a list of children, after the block that made it."""
        del self._children[at.name]

    def _elements(
        self, axis: Axis, relation: Relation, node: PatternNode, at: Node, then: Then
    ) -> None:
        label = repr(node.test.label) if isinstance(node.test, Name) else ""
        if axis is Axis.SELF or (axis is Axis.CHILD and at.kind == DOCUMENT):
            self.open(f"if {_passes(at.name, label, relation)}:{self.describe(relation)}")
            then(Node(at.name))
            self.close()
            return
        child = self.fresh("e")
        is_named = bool(label) and axis is not Axis.CHILD  # by lxml or the lists of children
        if axis is Axis.CHILD:
            known = self._children.get(at.name)
            named = node.test.label if isinstance(node.test, Name) else ""
            if known is not None and named in known.by_name:
                reach, is_named = known.by_name[named], True
            else:
                listed = f"{at.name}[:]" if known is None else known.every or f"{at.name}[:]"
                few = f"len({at.name}) < {_FEW}" if listed[-1] == "]" else f"{listed} is not None"
                reach = f"{listed} if {few} else {at.name}.iterchildren({label})"
        elif axis is Axis.DESCENDANT and at.kind == ELEMENT:
            reach = f"{at.name}.iterdescendants({label})"
        else:
            reach = f"{at.name}.iter({label})"
        self.open(f"for {child} in {reach}:{self.describe(relation)}")
        levels = 1
        if axis in DESCENT:
            self.descend()
        if not is_named:
            self.open(f"if {_passes(child, label, relation)}:")
            levels = 2
        then(Node(child))
        self.close(levels)
        self.descents -= axis in DESCENT

    # Texts and attributes -------------------------------------------------------------------------

    def _content(self, relation: Relation, node: PatternNode, at: Node, then: Then) -> None:
        """Texts, or elements and texts, in an element; usually it has a single text."""
        self.open(f"if len({at.name}):{self.describe(relation)}")
        if isinstance(node.test, Variable | AnyNode):
            self._elements(Axis.CHILD, relation, node, at, then)
        self._texts(Axis.CHILD, relation, node, at, then)
        self.close()
        self.open("else:")
        text = self.fresh("s")
        self.line(f"{text} = {at.name}.text")
        self.write_text(node, text, then, f"({at.name}, 0, {text})")
        self.close()

    def _texts(
        self, axis: Axis, relation: Relation, node: PatternNode, at: Node, then: Then
    ) -> None:
        text = self.fresh("s")
        reach = "texts" if axis is Axis.CHILD else "all_texts"
        self.open(f"for {text} in {reach}({at.name}):{self.describe(relation)}")
        if axis in DESCENT:
            self.descend()
        self.write_text(node, text, then)
        self.close()
        self.descents -= axis in DESCENT

    def write_text(self, node: PatternNode, text: str, then: Then, handle: str = "") -> None:
        """A text, if it passes the test; the empty string is not a text."""
        if isinstance(node.test, Literal):
            self.open(f"if {text} == {node.test.text!r}:" if node.test.text else "if False:")
        else:
            self.open(f"if {text}:")
        then(Node(text, TEXT, handle=handle))
        self.close()

    def _attributes(self, relation: Relation, node: PatternNode, at: Node, then: Then) -> None:
        text = self.fresh("s")
        if isinstance(node.test, Name):
            self.line(f"{text} = {at.name}.get({node.test.label!r})")
            self.open(f"if {text} is not None:{self.describe(relation)}")
            label = repr(f"@{node.test.label}")
        else:
            name = self.fresh("a")
            self.open(f"for {name}, {text} in {at.name}.attrib.items():{self.describe(relation)}")
            label = f"'@' + {name}"
        then(Node(text, ATTRIBUTE, label, f"({at.name}, {label}, {text})"))
        self.close()

    def walk_string(self, axis: Axis, relation: Relation, at: Node, then: Then) -> None:
        """A walk from a text, which has no content, or from an attribute, which has a text."""
        assert relation.node is not None
        test = relation.node.test
        if at.kind == ATTRIBUTE and axis is Axis.SELF:
            if isinstance(test, AnyNode):
                then(at)
            return
        reaches = (Axis.CHILD, *DESCENT) if at.kind == ATTRIBUTE else (Axis.SELF, *DESCENT[1:])
        if axis not in reaches:
            return
        inside = Node(at.name, TEXT, handle=f"({at.handle}, 0, {at.name})")
        text = at if at.kind == TEXT else inside
        if isinstance(test, Literal):
            self.open(f"if {at.name} == {test.text!r}:{self.describe(relation)}")
            then(text)
            self.close()
        elif isinstance(test, AnyText | AnyNode | Variable):
            then(text)

    # Values ---------------------------------------------------------------------------------------

    def comparisons(self, relation: Relation, at: Node) -> list[str]:
        """The comparisons of a node with constants; equality does not build an element's value."""
        found = []
        for one in relation.node.comparisons if relation.node is not None else ():
            if isinstance(one.operand, Variable):
                continue
            if one.operator == "=" and isinstance(one.operand, str):
                found.append(self.equals(at, one.operand))
            else:
                check = self.constant("compare", comparison(one.operator, one.operand))
                found.append(f"{check}({self.value_of(at)})")
        return found

    def value_of(self, at: Node) -> str:
        """The string value of a node, as an expression."""
        return f"value({at.name})" if at.kind == ELEMENT else at.name

    def equals(self, at: Node, wanted: str) -> str:
        """Whether a node's string value is this one; usually an element has a single text."""
        if at.kind != ELEMENT:
            return f"{at.name} == {wanted!r}"
        if not wanted:
            return f"has_value({at.name}, '')"
        slow = f"has_value({at.name}, {wanted!r})"
        return f"({slow} if len({at.name}) else {at.name}.text == {wanted!r})"

    def label_of(self, at: Node) -> str:
        """The label of a node, as an expression."""
        return f"{at.name}.tag" if at.kind == ELEMENT else at.name if at.kind == TEXT else at.label

    def open_if(self, conditions: list[str]) -> int:
        """Start a block for these conditions, if there are any; the number of blocks to close."""
        if conditions:
            self.open(f"if {' and '.join(conditions)}:")
        return len(conditions[:1])


def _passes(name: str, label: str, relation: Relation) -> str:
    """Whether an element passes a relation's test; comments, instructions and calls do not."""
    if label:
        return f"{name}.tag == {label}"
    if any(_needs_elements(edge) for edge in relation.edges):
        return f"len({name})"  # comments, instructions and calls have no content
    return f"is_element({name})"


def _needs_elements(edge: Edge) -> bool:
    """Whether an edge has rows only at an element that has elements in it."""
    node = edge.relation.node
    is_named = node is not None and isinstance(node.test, Name | Wildcard)
    return is_named and edge.axis in (Axis.CHILD, Axis.DESCENDANT)


def _label(edge: Edge) -> str:
    """The name that an edge looks for; "" for any other test."""
    test = edge.relation.node.test if edge.relation.node is not None else None
    return test.label if isinstance(test, Name) else ""


def _visits_children(edge: Edge) -> bool:
    node = edge.relation.node
    is_named = node is not None and isinstance(node.test, Name | Wildcard)
    return is_named and edge.axis is Axis.CHILD
