"""The rows of whole programs on a message: the input of the engine's relations.

There are two ways with one law: a program's bag equals the one that `evaluate/answers.py` gives on
the message as a document. Generated matchers handle programs that need only strings and times of
the message. The interpreter, on a tree made from the message, handles the rest: nodes in rows
(handles of that tree), paths too long for generated code, messages with `xml:space` or calls.
(Filter facts: paper 3.)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from axlog.document.parser import Element
from axlog.document.tree import CALL_LABEL, DOCUMENT_NODE, Tree
from axlog.evaluate.interpreter import Gathered, Interpreter
from axlog.evaluate.joins import Bag
from axlog.evaluate.work import Meters
from axlog.match.matcher_generator import Matcher, can_match, generate
from axlog.query.compile import Edge, Program, Relation
from axlog.query.pattern import Axis, Name


class _AnyBytes(bytes):
    """Stands for the unknown bytes of a message: every search finds something."""

    def find(self, *_: object) -> int:
        return 0


UNKNOWN = _AnyBytes()


class Generated:
    """Programs that one generated matcher evaluates together."""

    def __init__(self, programs: Sequence[Program]) -> None:
        here: dict[Relation, None] = {}
        everywhere: dict[Relation, None] = {}
        for program in programs:
            for edge in top_edges(program.root):
                (here if edge.axis is Axis.CHILD else everywhere)[edge.relation] = None
        self.matcher: Matcher = generate(here, everywhere)
        wanted = [(True, relation) for relation in here] + [(False, r) for r in everywhere]
        at = {each: number for number, each in enumerate(wanted)}
        self._roots = [_Root(program, at) for program in programs]

    def rows(self, message: Element, time: int, content: bytes = UNKNOWN) -> list[Bag]:
        """The bag of each program."""
        bags = self.matcher.run(message, time, content)
        return [
            bags[root.only] if root.only is not None else root.joined(bags) for root in self._roots
        ]


class _Root:
    """Computes a program's answers from the bags of the edges at the document node."""

    __slots__ = ("children", "descendants", "interpreter", "only", "program")

    def __init__(self, program: Program, at: dict[tuple[bool, Relation], int]) -> None:
        found = [
            (edge, at[edge.axis is Axis.CHILD, edge.relation]) for edge in top_edges(program.root)
        ]
        self.only = found[0][1] if _passes_on(program.root) else None
        self.program = program
        self.interpreter: Interpreter | None = None
        self.children = [(e.relation, number) for e, number in found if e.axis is Axis.CHILD]
        self.descendants = [(e.relation, number) for e, number in found if e.axis in _DESCENT]

    def joined(self, bags: tuple[Bag, ...]) -> Bag:
        if self.interpreter is None:
            self.interpreter = Interpreter(self.program.relations)
        below = Gathered(
            {relation: bags[at] for relation, at in self.children if bags[at]},
            {relation: bags[at] for relation, at in self.descendants if bags[at]},
        )
        return self.interpreter.rows(self.program.root, (), below, {})


_DESCENT = (Axis.DESCENDANT, Axis.DESCENDANT_OR_SELF)


def top_edges(root: Relation) -> Iterable[Edge]:
    """The edges at the document node, including those in its connectives."""
    yield from root.edges
    for choice in root.choices:
        for alternative in choice.alternatives:
            yield from top_edges(alternative)
    for absence in root.absences:
        yield from top_edges(absence.body)


def _passes_on(root: Relation) -> bool:
    """Whether a root's rows are those of its only edge."""
    if root.choices or root.absences or root.tests or len(root.edges) != 1:
        return False
    return root.edges[0].relation.columns == root.columns


LONGEST = 12
"""The most steps of a path: each is one loop or two, and Python nests at most twenty."""


def _depth(relation: Relation) -> int:
    return 1 + max((_depth(below) for below in relation.below()), default=0)


def can_generate(program: Program) -> bool:
    """Whether a matcher can be generated for a program."""
    edges = list(top_edges(program.root))
    if _depth(program.root) > LONGEST:
        return False
    if not all(edge.axis is Axis.CHILD or edge.axis in _DESCENT for edge in edges):
        return False
    return all(can_match(edge.relation) for edge in edges) and not _names_calls(program)


def _names_calls(program: Program) -> bool:
    """Whether a pattern has the label of calls, which are parsed as elements but are not."""
    tests = (relation.node.test for relation in program.relations if relation.node is not None)
    return any(isinstance(test, Name) and test.label == CALL_LABEL for test in tests)


class Interpreted:
    """Programs that the interpreter evaluates together on a tree made of the message."""

    def __init__(self, programs: Sequence[Program]) -> None:
        self._roots = [program.root for program in programs]
        self._interpreter = Interpreter(r for program in programs for r in program.relations)

    def rows(self, tree: Tree) -> list[Bag]:
        """The bag of each program; nodes are handles of the tree."""
        below = self._interpreter.gathered(tree, tree.children(DOCUMENT_NODE))
        return [self._interpreter.rows(root, (), below, {}) for root in self._roots]

    def rows_within(self, tree: Tree, work: int) -> list[Bag | None]:
        """The same within a work budget; None for a program that exceeds it."""
        interpreter, meters = self._interpreter, Meters(work)
        interpreter.exploded, interpreter.meters = {}, meters
        meters.size = lambda: len(tree)
        try:
            bags = self.rows(tree)
            over = interpreter.exploded
        finally:
            interpreter.exploded = interpreter.meters = None
        return [
            None if any(relation in over for relation in root.walk()) else bag
            for root, bag in zip(self._roots, bags, strict=True)
        ]
