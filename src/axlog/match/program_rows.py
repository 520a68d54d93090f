"""The rows of whole programs on a message.

There are two ways with one law: a program's bag equals the one that `evaluate/answers.py` gives on
the message as a document. A generated matcher handles a program that needs only strings and times
of the message. The interpreter, on a tree made from the message, handles the rest: nodes in rows
(handles of that tree), and messages with `xml:space` or calls. (Filter facts: paper 3.)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from axlog.document.tree import CALL_LABEL, DOCUMENT_NODE, Tree
from axlog.evaluate.gathered import Gathered
from axlog.evaluate.interpreter import Interpreter
from axlog.evaluate.joins import Bag
from axlog.evaluate.work import Meters
from axlog.match.matcher_generator import can_match, generate
from axlog.match.message_forms import MessageForms
from axlog.match.walk_writer import DESCENT
from axlog.query.compile import Edge, Program, Relation
from axlog.query.pattern import Axis, Name


class ProgramRows:
    """The rows of one program on a message: by generated code if possible, else on a tree."""

    def __init__(self, program: Program) -> None:
        self._generated = GeneratedRows(program) if can_generate(program) else None
        self._on_tree = None if self._generated is not None else TreeRows([program])

    def rows(self, message: MessageForms) -> Bag:
        """The bag of the program."""
        if self._generated is not None:
            return self._generated.rows(message)
        assert self._on_tree is not None
        return self._on_tree.rows(message.tree)[0]


class GeneratedRows:
    """The rows of a program, computed from the bags of the edges at the document node."""

    def __init__(self, program: Program) -> None:
        edges = list(top_edges(program.root))
        here = list(dict.fromkeys(edge.relation for edge in edges if edge.axis is Axis.CHILD))
        deep = list(dict.fromkeys(edge.relation for edge in edges if edge.axis in DESCENT))
        self._run = generate(here, deep).run
        self._here, self._deep = here, deep
        self._root = program.root
        self._interpreter = None if _passes_on(program.root) else Interpreter(program.relations)

    def rows(self, message: MessageForms) -> Bag:
        """The bag of the program."""
        bags = self._run(message.root, message.time, b"")
        if self._interpreter is None:
            return bags[0]
        at = len(self._here)
        below = Gathered(
            {relation: bag for relation, bag in zip(self._here, bags[:at], strict=True) if bag},
            {relation: bag for relation, bag in zip(self._deep, bags[at:], strict=True) if bag},
        )
        return self._interpreter.rows(self._root, (), below, {})


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


def can_generate(program: Program) -> bool:
    """Whether a matcher can be generated for a program."""
    edges = list(top_edges(program.root))
    if not all(edge.axis is Axis.CHILD or edge.axis in DESCENT for edge in edges):
        return False
    return all(can_match(edge.relation) for edge in edges) and not _names_calls(program)


def _names_calls(program: Program) -> bool:
    """Whether a pattern has the label of calls, which are parsed as elements but are not."""
    tests = (relation.node.test for relation in program.relations if relation.node is not None)
    return any(isinstance(test, Name) and test.label == CALL_LABEL for test in tests)


class TreeRows:
    """The rows of several programs, by one pass of the interpreter over a message's tree."""

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
