"""The generator of filters: straight-line Python that tests whether a message has a row.

It writes the walks of a matcher (`walk_writer.py`) and stops at the first row. At a node the last
branch is a nest of loops that returns. The other branches are separate functions.

Law: a test is whether the bag of the program (`evaluate/interpreter.py`) is not empty.

A test is declined (None) for joins and constraints, which need rows, and for more than two nested
loops over descendants, which a deep message multiplies: rows are metered, tests are not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias, cast

from axlog.document.parser import Element
from axlog.document.tree import CALL_LABEL
from axlog.match.linear_paths import joined_columns
from axlog.match.walk_writer import DEEPEST, DOCUMENT, ELEMENT, TEXT, Node, WalkWriter
from axlog.query.compile import Edge, Relation
from axlog.query.pattern import AnyText, Axis, Literal, Name, Wildcard

Test: TypeAlias = Callable[[Element], bool]
"""From a message's root element to whether a program has a row."""
MOST_DESCENTS = 2
"""The most loops over descendants that a test nests."""


def can_test(root: Relation) -> bool:
    """Whether a program can be tested branch by branch: no joins, no constraints over rows."""
    if joined_columns(root):
        return False
    return not any(each.tests or any(a.tests for a in each.absences) for each in root.walk())


def generate_test(root: Relation) -> Test | None:
    """Make a function that tests whether a program holds; None if it is declined."""
    if not can_test(root):
        return None
    writer = _TestWriter()
    try:
        source = writer.function(root)
    except _Declined:
        return None
    return cast("Test", writer.compiled("test", source))


class _Declined(Exception):
    """A test of this pattern cannot be generated."""


class _TestWriter(WalkWriter):
    """Writes a function that returns whether a program has a row."""

    def function(self, root: Relation) -> str:
        document = Node("e", DOCUMENT)
        self.open("def test(e):")
        self._holds(root, document)
        self.line("return False")
        self.write_apart()
        return "\n".join(self.lines) + "\n"

    def descend(self) -> None:
        """Limit the loops over descendants."""
        super().descend()
        if self.descents > MOST_DESCENTS:
            raise _Declined

    def _holds(self, relation: Relation, at: Node) -> None:
        """Return True if all branches of a node hold; cheap ones first, the last one nested."""
        conditions = self.comparisons(relation, at)
        walks: list[Edge] = []
        for edge in relation.edges:
            condition = self._condition(edge, at)
            if condition:
                conditions.append(condition)
            else:
                walks.append(edge)
        conditions += [self._branch(edge, at) for edge in walks[:-1]]
        for choice in relation.choices:
            either = [self._part(each, at) for each in choice.alternatives]
            conditions.append(f"({' or '.join(either)})")
        conditions += [f"not {self._part(absence.body, at)}" for absence in relation.absences]
        if walks and self.depth > DEEPEST:
            conditions.append(self._branch(walks.pop(), at))
        levels = self.open_if(conditions)
        if walks:
            self._walk_edge(walks[-1], at)
        else:
            self.line("return True")
        self.close(levels)

    def _walk_edge(self, edge: Edge, at: Node) -> None:
        """Return True if the relation of an edge holds at a node that the edge reaches."""
        test = edge.relation.node.test if edge.relation.node is not None else None
        if isinstance(test, Name) and test.label == CALL_LABEL:
            raise _Declined  # calls are parsed as elements, but are not
        if at.kind == DOCUMENT and edge.axis in (Axis.SELF, Axis.ATTRIBUTE):
            raise _Declined
        found = _named_child(edge) if at.kind in (DOCUMENT, ELEMENT) else None
        if found is None:
            self.walk(edge.axis, edge.relation, at, lambda node: self._holds(edge.relation, node))
            return
        # `//*/a` is any `a` with an element in between: few elements are `a`, all are `*`.
        label, relation = found
        child = self.fresh("e")
        reach = f"{at.name}.iterdescendants({label!r})"
        self.open(f"for {child} in {reach}:{self.describe(edge.relation)}")
        self.descend()
        is_lower = [] if at.kind == DOCUMENT else [f"{child}.getparent() is not {at.name}"]
        levels = self.open_if(is_lower)
        self._holds(relation, Node(child))
        self.close(levels + 1)
        self.descents -= 1

    def _branch(self, edge: Edge, at: Node) -> str:
        """A call of a separate function for one edge."""

        def write(top: Node) -> None:
            self._walk_edge(edge, top)
            self.line("return False")

        return f"{self.apart('branch', at, write)}({at.name})"

    def _part(self, relation: Relation, at: Node) -> str:
        """A call of a separate function for a conjunction at the same node."""

        def write(top: Node) -> None:
            self._holds(relation, top)
            self.line("return False")

        return f"{self.apart('part', at, write)}({at.name})"

    def _condition(self, edge: Edge, at: Node) -> str:
        """An edge from an element to an attribute or a text as an expression; "" if it is none."""
        relation, node = edge.relation, edge.relation.node
        if at.kind != ELEMENT or node is None or list(relation.below()):
            return ""
        if edge.axis is Axis.ATTRIBUTE and isinstance(node.test, Name):
            text = Node(self.fresh("s"), TEXT)
            given = f"({text.name} := {at.name}.get({node.test.label!r})) is not None"
            return " and ".join([given, *self.comparisons(relation, text)])
        if edge.axis is not Axis.CHILD or node.comparisons:
            return ""
        if isinstance(node.test, Literal) and node.test.text:
            text_is = f"{at.name}.text == {node.test.text!r}"
            return f"({node.test.text!r} in texts({at.name}) if len({at.name}) else {text_is})"
        return f"texts({at.name})" if isinstance(node.test, AnyText) else ""


def _named_child(edge: Edge) -> tuple[str, Relation] | None:
    """For an edge to any element below that just has a child of some name: that name and child."""
    relation = edge.relation
    if relation.node is None or relation.node.test != Wildcard():
        return None
    if relation.node.comparisons or relation.choices or relation.absences:
        return None
    if edge.axis is not Axis.DESCENDANT or len(relation.edges) != 1:
        return None
    (only,) = relation.edges
    test = only.relation.node.test if only.relation.node is not None else None
    if only.axis is not Axis.CHILD or not isinstance(test, Name) or test.label == CALL_LABEL:
        return None
    return test.label, only.relation
