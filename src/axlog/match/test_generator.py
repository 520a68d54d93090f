"""Whether a pattern holds on a parsed message, as generated code that stops at the first match.

For few patterns, tested one by one. A chain of steps becomes nested loops that return; other
branches of a node become separate functions, called there.

Law: `ask(message)` is whether the program has a row. Declined (`None`): joins and constraints,
which need rows; `self` and tests that a text passes as well as an element; paths longer than loops
can nest; more than two nested loops over descendants, which a deep message multiplies.
`program_rows.py` handles those. Searching for names in the message's bytes first was tried and
dropped: a search costs as much as three steps, and child paths usually end sooner.
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
"""The most nested blocks: Python nests at most twenty loops."""
_FEW = 8  # children up to which testing each is faster than an iterator by name


class _Declined(Exception):
    """Code for this pattern cannot be generated here."""


def make_question(root: Relation) -> Ask | None:
    """A function that tests whether a program holds; None if it is declined."""
    if not can_check(root):
        return None
    writer = _Writer()
    try:
        name = writer.function(root, is_document=True)
    except _Declined:
        return None
    scope = dict(writer.constants)
    exec(compile("\n".join(writer.functions), "<question>", "exec"), scope)
    ask: Ask = scope[name]  # type: ignore[assignment]  # defined by the code
    return ask


class _Writer:
    """Writes functions of an element; `constants` are the objects they refer to."""

    def __init__(self) -> None:
        self.functions: list[str] = []
        self.constants: dict[str, object] = {
            "value": value, "has_value": has_value, "texts": texts, "is_element": is_element,
        }  # fmt: skip
        self._numbers = 0
        self._descents = 0  # loops over descendants around the current code
        self._lines: list[str] = []

    def _fresh(self, stem: str) -> str:
        self._numbers += 1
        return f"{stem}{self._numbers}"

    def function(self, relation: Relation, is_document: bool = False) -> str:
        """Write a function that tests whether all branches of a node hold."""
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
        """Write the tests at a node, the cheap ones first; the last edge continues inside."""
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
        """The call of a separate function for one edge."""
        return f"{self.function(Relation('', None, edges=(edge,)), is_document)}({at})"

    def _walk(self, edge: Edge, at: str, depth: int, is_document: bool) -> None:
        """Write the loop over the elements that an edge reaches, and their tests."""
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
            test = f"len({child})"  # comments, instructions and calls have no content
        if label is None or edge.axis is Axis.CHILD:
            self._line(depth, f"if {test}:")
            depth += 1
        self._at(edge.relation, child, depth)
        self._descents -= edge.axis in (Axis.DESCENDANT, Axis.DESCENDANT_OR_SELF)

    def _below_any(self, edge: Edge, at: str, child: str, depth: int, is_document: bool) -> None:
        """`//*/a`: any `a` below with an element between; few elements are `a`, all are `*`."""
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
        """The comparisons of an element's string value; equality does not build the value."""
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
    """An element's value against a string; usually it has a single text."""
    if wanted == "''":
        return f"has_value({at}, '')"
    return f"(has_value({at}, {wanted}) if len({at}) else {at}.text == {wanted})"


def has_value(element: Element, wanted: str) -> bool:
    """Whether an element's string value is this one; stops at the first text that differs."""
    return _read(element, wanted, 0) == len(wanted)


def _read(element: Element, wanted: str, at: int) -> int:
    """The position in a string after the texts of an element; -1 if they differ."""
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
    """The only edge of a wildcard that just requires a child of some name."""
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
