"""One pattern of a filter: its needs, its checks, and its rows.

Equal patterns of many subscribers are one `Wanted`. Costly parts are made on first use: most
patterns of a large filter never need them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from axlog.document.parser import Element
from axlog.document.tree import Tree
from axlog.errors import QueryError, UnsupportedError
from axlog.evaluate.joins import Bag
from axlog.match.linear_paths import needs_of
from axlog.match.message_values import finds_markup
from axlog.match.program_rows import Generated, Interpreted, can_generate
from axlog.match.test_generator import make_question
from axlog.match.twig_matcher import Check, can_check, make_check
from axlog.query.compile import Edge, Program, Relation, compile_pattern
from axlog.query.pattern import AnyNode, Axis, Name, Pattern, Wildcard

Known = tuple[tuple[str, frozenset[str]], ...]
"""Per variable, the strings that can still join: the tuner's knowledge of the other side."""


class Wanted:
    """A pattern, or a relation of the engine, with the keys of its subscribers."""

    def __init__(self, source: Pattern | Relation, axis: Axis, known: Known = ()) -> None:
        self.keys: set[str] = set()
        self.source, self.axis, self.values = source, axis, known
        self.pattern = source if isinstance(source, Pattern) else None
        self.question: Program
        self._program: Program | None
        if isinstance(source, Relation):
            self.question = self._program = _whole(source, axis)
        else:
            self.question, self._program = _compile_question(source)
        self.needs = needs_of(self.question.root)
        self.reads_texts = any(_reads_texts(relation) for relation in self.question.relations)
        self.finds_markup = finds_markup(self.question.root)
        self._ask: Callable[[Element], bool | None] | None = None
        self._check: Check | None = None
        self._generated: Generated | None = None
        self._interpreted: Interpreted | None = None
        self.known = [(self._column(name), values) for name, values in known]
        self.is_settled = self.needs.are_whole and not known  # if its meetings are at one element
        self.can_check = not known and can_check(self.question.root)

    def _column(self, variable: str) -> int:
        columns = self.program.root.columns
        if f"${variable}" not in columns:
            raise QueryError(
                "AX204",
                f"the rows have no column ${variable} for known values",
                expected="one of " + (", ".join(columns) or "no columns at all"),
            )
        return columns.index(f"${variable}")

    @property
    def program(self) -> Program:
        """The program with its outputs; `question` only tests whether it has a row."""
        if self._program is None:
            assert self.pattern is not None
            self._program = _compile(self.pattern)
        return self._program

    def holds(self, message: Element) -> bool | None:
        """Whether the pattern holds on a parsed message; None if only rows can tell."""
        if self._ask is None:
            self._ask = (make_question(self.question.root) if self.can_check else None) or _unknown
        return self._ask(message)

    @property
    def check(self) -> Check:
        """The same for a message's layout (`can_check`): faster for many patterns."""
        if self._check is None:
            self._check = make_check(self.question.root)
        return self._check

    @property
    def needs_tree(self) -> bool:
        """Whether rows need a tree made from the message."""
        return not can_generate(self.program)

    def rows(self, message: Element, time: int, content: bytes) -> Bag:
        """The rows on a message, by generated code."""
        if self._generated is None:
            self._generated = Generated([self.program])
        return self.keep(self._generated.rows(message, time, content)[0])

    def rows_on(self, tree: Tree) -> Bag:
        """The rows on a message in the form of a tree."""
        if self._interpreted is None:
            self._interpreted = Interpreted([self.program])
        return self.keep(self._interpreted.rows(tree)[0])

    def keep(self, bag: Bag) -> Bag:
        """The rows whose values can still join."""
        if not self.known or not bag:
            return bag
        return {r: c for r, c in bag.items() if all(r[at] in values for at, values in self.known)}


def _unknown(_: Element) -> None:
    return None


def known_values(known: Mapping[str, Iterable[str]] | None) -> Known:
    """The values that can still join, in a hashable form."""
    given = {name: frozenset(values) for name, values in (known or {}).items()}
    return tuple(sorted(given.items(), key=lambda pair: pair[0]))


def _compile_question(pattern: Pattern) -> tuple[Program, Program | None]:
    """The program that tests whether there is a row, and the one for rows if it was made already.

    Outputs tell the compiler how far up connectives go: a pattern may be declined without them that
    is accepted with them.
    """
    asked = compile_pattern(replace(pattern, outputs=()))
    if asked.refusal is None:
        return asked, asked if pattern.is_boolean else None
    program = _compile(pattern)
    return program, program


def _compile(pattern: Pattern) -> Program:
    program = compile_pattern(pattern)
    if program.refusal is not None:
        raise UnsupportedError("AX211", f"the pattern cannot be a filter: {program.refusal}")
    return program


def _whole(relation: Relation, axis: Axis) -> Program:
    """A relation of the engine as a separate program, on the message as a document."""
    columns = relation.columns
    root = Relation("q", None, edges=(Edge(axis, relation),), columns=columns, bound=columns)
    assert relation.node is not None
    return Program(Pattern((relation.node,)), root, tuple(root.walk()), ())


def _reads_texts(relation: Relation) -> bool:
    node = relation.node
    if node is None or node.axis is Axis.ATTRIBUTE:
        return False
    if node.axis is Axis.DESCENDANT_OR_SELF and isinstance(node.test, AnyNode):
        # A text has no content: it is no match for a pattern node with branches.
        return bool(node.comparisons) or not relation.edges
    return bool(node.comparisons) or not isinstance(node.test, Name | Wildcard)
