"""Whether a pattern with `not` and without joins can still come to hold.

The profile of a tree is the set of relations that hold at its root, and the set of relations that
hold somewhere in it. The profile of a node follows from its label and the union of its children's
profiles; the number and order of children with equal profiles do not matter. So the futures of a
document reduce to sets of profiles:

1. The profiles of future trees: a fixpoint over the labels of the pattern and one other label, from
   the leaves up. Any set of trees can be below a node.
2. The profiles that each node of the document can get, bottom-up: one profile for each child, and
   any set of those of step 1 at an open call, up to the number of trees that it may still deliver.

The pattern can come to hold if some profile of the document satisfies it. With the values of a row
pinned, the same test decides whether that row can appear (`negation.py`). There may be 2^|pattern|
profiles; beyond a limit the question is undecided (AX502).

Rejected: joins beside `not`, where truth is undecidable (AX501). Beside `not`, with AX503: time
constraints, values of elements, comparisons other than `=` and `!=` with a string, streams that may
delete. (Paper 2, section 5 and theorem 7.)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product

from axlog.document.tree import ATTRIBUTE, CALL, DOCUMENT_NODE, ELEMENT, TEXT, Tree
from axlog.errors import UndecidedError
from axlog.future.comments import refuse_any_node
from axlog.future.disjuncts import is_name, is_text
from axlog.future.scenarios import may_bring
from axlog.query.compile import Edge, Relation, compile_pattern
from axlog.query.normalize import normalise
from axlog.query.pattern import (
    AnyNode,
    AnyText,
    Axis,
    Branch,
    Collect,
    Literal,
    Name,
    Not,
    Pattern,
    PatternNode,
    Variable,
    Wildcard,
    branches_of,
)
from axlog.query.values import comparison

LIMIT = 4000
"""Largest number of profiles, or unions of profiles, to examine."""

Profile = tuple[int, int]
"""Two bit sets of relations: those at the root that an edge can reach, and those anywhere."""
_EMPTY: Profile = (0, 0)


def has_not(pattern: Pattern) -> bool:
    """Whether a pattern contains `not`."""
    return any(isinstance(branch, Not) for branch in _branches(pattern.branches))


def _branches(branches: Iterable[Branch]) -> Iterator[Branch]:
    for branch in branches:
        yield branch
        yield from _branches(branches_of(branch))


def check_covered(tree: Tree, pattern: Pattern) -> None:
    """Reject patterns and documents that profiles do not decide."""
    _check_pattern(pattern)
    _check_document(tree)


@dataclass(frozen=True, slots=True)
class Pins:
    """The known values of a row, by column of the program: conditions on the matched nodes."""

    tree: Tree
    values: Mapping[str, str | int]

    @property
    def strings(self) -> list[str]:
        return [str(v) for c, v in self.values.items() if not c.endswith((".node", ".time"))]

    def check(self) -> None:
        if sum(column.endswith(".time") for column in self.values) > 1:
            raise UndecidedError("AX503", "two times of one row are not decided beside `not`")

    def admit(self, node: PatternNode, kind: int, label: str, at: int | None) -> bool:
        """Whether a pattern node may match this node; `at` is None for a future node."""
        named, _, value = label.partition("\0") if kind == ATTRIBUTE else (label, "", label)
        if isinstance(node.test, Variable) and not self._is(f"${node.test.name}", named):
            return False
        for each in node.comparisons:
            if isinstance(each.operand, Variable) and f"${each.operand.name}" in self.values:
                if kind == ELEMENT:
                    raise UndecidedError(
                        "AX503", f"the value of {node} is not decided beside `not`"
                    )
                if not self._is(f"${each.operand.name}", value):
                    return False
        if node.name is None:
            return True
        wanted, time = self.values.get(f"{node.name}.node"), self.values.get(f"{node.name}.time")
        if wanted is not None and wanted != at:
            return False
        if time is not None:
            tree = self.tree
            if int(time) < tree.clock if at is None else tree.time(at) != time:
                return False
        return self._is(f"{node.name}.label", named)

    def _is(self, column: str, string: str) -> bool:
        return self.values.get(column, string) == string


# Coverage -----------------------------------------------------------------------------------------


def _check_pattern(pattern: Pattern) -> None:
    refuse_any_node(pattern, "beside `not`")
    used: set[str] = set()
    for branch in _branches(normalise(pattern).branches):
        if isinstance(branch, Collect):
            raise UndecidedError("AX503", "`not` beside a collected path is not covered")
        if isinstance(branch, Not) and branch.where:
            raise UndecidedError(
                "AX503", f"`not` with the constraint {branch.where[0]} is not covered"
            )
        if isinstance(branch, PatternNode):
            _check_node(branch, used)
    if pattern.where:
        raise UndecidedError(
            "AX503", f"`not` beside the constraint {pattern.where[0]} is not covered"
        )


def _check_node(node: PatternNode, used: set[str]) -> None:
    operands = [node.test, *(c.operand for c in node.comparisons)]
    for variable in (each.name for each in operands if isinstance(each, Variable)):
        if variable in used:
            raise UndecidedError(
                "AX501",
                f"${variable} is a join beside `not`: whether the query can hold is undecidable",
                advice="remove the join or the `not`; the rows of the view are still maintained",
            )
        used.add(variable)
    for each in node.comparisons:
        if isinstance(each.operand, Variable) and each.operator == "=":
            continue  # only binds a value
        has_value = node.axis is Axis.ATTRIBUTE or isinstance(node.test, Literal | AnyText)
        is_equality = each.operator in ("=", "!=") and isinstance(each.operand, str)
        if not (has_value and is_equality):
            raise UndecidedError("AX503", f"`not` beside the comparison {node} is not covered")


def _check_document(tree: Tree) -> None:
    for stream, node in tree.calls().items():
        if tree.call(node).deletes != "no":
            raise UndecidedError(
                "AX503", f"`not` is not decided where the stream {stream!r} may delete"
            )
    if tree.types is not None:
        raise UndecidedError("AX503", "`not` is not decided under types")
    if tree.facts:
        raise UndecidedError("AX503", f"`not` is not decided beside the declared {tree.facts[0]}")


# Profiles -----------------------------------------------------------------------------------------


class Profiles:
    """The profiles of a document and of future trees, for one pattern.

    `pins` fixes values of a row. `among` restricts the streams that deliver data.
    """

    def __init__(
        self,
        tree: Tree,
        pattern: Pattern,
        pins: Pins | None = None,
        among: frozenset[str] | None = None,
    ) -> None:
        self.tree = tree
        self._among = among
        self._pins = pins if pins is not None and pins.values else None
        if self._pins is not None:
            self._pins.check()
        program = compile_pattern(pattern)
        if program.refusal is not None:
            raise UndecidedError("AX503", f"the analyses do not cover the query: {program.refusal}")
        self.root = program.root
        self.relations = [r for r in program.relations if r.node is not None]
        self.bit = {relation: 1 << number for number, relation in enumerate(self.relations)}
        edges = [edge for relation in program.relations for edge in relation.edges]
        self.visible = self._bits(edges, Axis.CHILD, Axis.ATTRIBUTE)
        self.descending = self._bits(edges, Axis.DESCENDANT, Axis.DESCENDANT_OR_SELF)
        self.names, self.attributes, self.texts = self._alphabet()

    def _bits(self, edges: Iterable[Edge], *axes: Axis) -> int:
        found = 0
        for edge in edges:
            found |= self.bit[edge.relation] if edge.axis in axes else 0
        return found

    def _alphabet(self) -> tuple[list[str], list[str], list[str]]:
        """The element names, attribute names and texts that the pattern distinguishes."""
        nodes = [r.node for r in self.relations if r.node is not None]
        pinned = set() if self._pins is None else set(self._pins.strings)
        names = {n.test.label for n in nodes if isinstance(n.test, Name)}
        texts = {n.test.text for n in nodes if isinstance(n.test, Literal)}
        texts |= {c.operand for n in nodes for c in n.comparisons if isinstance(c.operand, str)}
        attributes = [
            n.test.label for n in nodes if n.axis is Axis.ATTRIBUTE and isinstance(n.test, Name)
        ]
        names |= {string for string in pinned if is_name(string)}
        texts |= {string for string in pinned if is_text(string)}
        return (
            sorted({*names, _fresh_string(names)}),
            sorted({*attributes, _fresh_string(names)}) if self._sees_attributes(nodes) else [],
            sorted(text for text in {*texts, _fresh_string(texts)} if text),
        )

    @staticmethod
    def _sees_attributes(nodes: list[PatternNode]) -> bool:
        return any(node.axis is Axis.ATTRIBUTE for node in nodes)

    def is_possible(self) -> bool:
        """Whether some future document satisfies the pattern."""
        self.sets = self._future_sets()
        possible = self._of_document()
        return any(self._satisfies(self.root, children, below, 0) for children, below in possible)

    # One node

    def _profile(
        self, kind: int, label: str, children: int, below: int, at: int | None = None
    ) -> Profile:
        """The profile of a node from its label and the relations that hold below it."""
        here = 0
        for relation in self.relations:  # in evaluation order: dependencies first
            node = relation.node
            assert node is not None
            if not _passes(node, kind, label):
                continue
            if self._pins is not None and not self._pins.admit(node, kind, label, at):
                continue
            if self._satisfies(relation, children, below, here):
                here |= self.bit[relation]
        everywhere = 0 if kind == ATTRIBUTE else (here & self.descending) | below
        return here & self.visible, everywhere

    def _satisfies(self, relation: Relation, children: int, below: int, here: int) -> bool:
        for edge in relation.edges:
            seen = {
                Axis.CHILD: children, Axis.ATTRIBUTE: children, Axis.DESCENDANT: below,
                Axis.SELF: here, Axis.DESCENDANT_OR_SELF: below | here,
            }[edge.axis]  # fmt: skip
            if not seen & self.bit[edge.relation]:
                return False
        for choice in relation.choices:
            if not any(self._satisfies(a, children, below, here) for a in choice.alternatives):
                return False
        return not any(self._satisfies(a.body, children, below, here) for a in relation.absences)

    # Future trees

    def _future_sets(self) -> list[set[Profile]]:
        """The unions of profiles of at most 0, 1, 2, ... future trees."""
        texts = {self._profile(TEXT, text, 0, 0) for text in self.texts}
        attributes = self._sets_of_attributes()
        elements: set[Profile] = set()
        while True:
            inside = _unions(elements | texts)[-1]
            known = len(elements)
            for (children, below), more, name in product(inside, attributes, self.names):
                elements.add(self._profile(ELEMENT, name, children | more, below))
                _check_limit(elements)
            if len(elements) == known:
                return _unions(elements)

    def _sets_of_attributes(self) -> set[int]:
        """The joint profiles of the attributes of a future element; each name at most once."""
        found = {0}
        for name in self.attributes:
            values = {self._attribute(name, text) for text in ("", *self.texts)}
            found |= {known | value for known in found for value in values}
        return found

    def _attribute(self, name: str, text: str) -> int:
        value = self._profile(TEXT, text, 0, 0)
        return self._profile(ATTRIBUTE, f"@{name}\0{text}", *value)[0]

    # The document

    def _of_document(self) -> set[Profile]:
        """The unions of profiles that are possible below the document node."""
        tree = self.tree
        inside: dict[int, set[Profile]] = {}
        for node in reversed(list(tree.subtree(DOCUMENT_NODE))):
            below = inside.pop(node, {_EMPTY})
            if node == DOCUMENT_NODE:
                return below
            kind = tree.kind_column[node]
            if kind == CALL:
                profiles = self._deliverable(node)
            elif kind in (ELEMENT, TEXT):
                label = tree.label(node)
                profiles = {self._profile(kind, label, c, b, node) for c, b in below}
            elif kind == ATTRIBUTE:
                name, value = tree.label(node), tree.string_value(node)
                labelled = f"{name}\0{value}"
                profiles = {self._profile(kind, labelled, c, b, node) for c, b in below}
            else:
                continue
            above = inside.setdefault(tree.parent(node), {_EMPTY})
            inside[tree.parent(node)] = _joined(above, profiles)
        raise AssertionError("a document has a document node")

    def _deliverable(self, node: int) -> set[Profile]:
        """The unions of profiles that a call may deliver."""
        call = self.tree.call(node)
        is_asked = self._among is None or call.stream in self._among
        if not is_asked or not may_bring(self.tree, call):
            return {_EMPTY}
        if call.most is None:
            return self.sets[-1]
        left = call.most - self.tree.brought.get(call.stream, 0)
        return self.sets[min(left, len(self.sets) - 1)]


def _fresh_string(known: set[str]) -> str:
    """A name or text that the pattern does not mention."""
    other = "other"
    while other in known:
        other += "-"
    return other


def _joined(some: set[Profile], more: set[Profile]) -> set[Profile]:
    found = {(a | c, b | d) for a, b in some for c, d in more}
    _check_limit(found)
    return found


def _unions(profiles: set[Profile]) -> list[set[Profile]]:
    """The unions of at most 0, 1, 2, ... profiles, up to the fixpoint."""
    found = [{_EMPTY}]
    while True:
        more = found[-1] | _joined(found[-1], profiles)
        if len(more) == len(found[-1]):
            return found
        found.append(more)


def _check_limit(found: set[Profile]) -> None:
    if len(found) > LIMIT:
        raise UndecidedError(
            "AX502",
            f"there are more than {LIMIT:,} ways to satisfy the query",
            advice="use a smaller query",
        )


def _passes(node: PatternNode, kind: int, label: str) -> bool:
    """Whether a node passes a test. The label of an attribute includes its value."""
    if kind == ATTRIBUTE:
        name, _, value = label.partition("\0")
        if node.axis is Axis.SELF:
            is_named = isinstance(node.test, AnyNode)
        else:
            is_named = node.axis is Axis.ATTRIBUTE and (
                isinstance(node.test, Wildcard)
                or (isinstance(node.test, Name) and name == f"@{node.test.label}")
            )
        return is_named and _compares(node, value)
    if node.axis is Axis.ATTRIBUTE:
        return False
    match node.test:
        case Name(label=wanted):
            return kind == ELEMENT and label == wanted
        case Wildcard():
            return kind == ELEMENT
        case Literal(text=text):
            return kind == TEXT and label == text and _compares(node, label)
        case AnyText():
            return kind == TEXT and _compares(node, label)
    return True


def _compares(node: PatternNode, value: str) -> bool:
    return all(
        comparison(each.operator, each.operand)(value)
        for each in node.comparisons
        if not isinstance(each.operand, Variable)
    )
