"""One pattern of a filter: its needs, its test, and its rows.

Equal patterns of many subscribers are one `FilterPattern`. Costly parts are made on first use: most
patterns of a large filter never need them.

Law: `rows(message)` is the bag that `evaluate/answers.py` gives on the message as a document,
without the rows whose values can no longer join, and `holds(message)` is whether it has a row.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

from axlog.document.parser import DEFAULT_LIMITS
from axlog.errors import QueryError, UnsupportedError
from axlog.evaluate.joins import Bag
from axlog.match.filter_generator import Test, generate_test
from axlog.match.linear_paths import needs_of
from axlog.match.message_forms import MessageForms
from axlog.match.message_values import finds_markup
from axlog.match.program_rows import ProgramRows, TreeRows
from axlog.query.compile import Edge, Program, Relation, compile_pattern
from axlog.query.pattern import AnyNode, Axis, Name, Pattern, Wildcard

Known = tuple[tuple[str, frozenset[str]], ...]
"""Per variable, the strings that can still join: the tuner's knowledge of the other side."""


class FilterPattern:
    """A pattern, or a relation of the engine, with the keys of its subscribers."""

    def __init__(self, source: Pattern | Relation, axis: Axis, known: Known = ()) -> None:
        self.keys: set[str] = set()
        self.source, self.axis, self.values = source, axis, known
        self.pattern = source if isinstance(source, Pattern) else None
        self._question: Program  # the program without outputs: whether there is a row
        self._program: Program | None
        if isinstance(source, Relation):
            self._question = self._program = _as_program(source, axis)
        else:
            self._question, self._program = _compile_question(source)
        self.needs = needs_of(self._question.root)
        self.reads_texts = any(_reads_texts(relation) for relation in self._question.relations)
        self.finds_markup = finds_markup(self._question.root)
        self.known = [(self._column(name), values) for name, values in known]
        self.is_settled = self.needs.are_whole and not known  # if its meetings are at one element

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
        """The program with its outputs."""
        if self._program is None:
            assert self.pattern is not None
            self._program = _compile(self.pattern)
        return self._program

    @property
    def question(self) -> Program:
        """The program that decides whether the pattern holds."""
        return self.program if self.known else self._question

    @cached_property
    def test(self) -> Test | None:
        """Generated code for whether the pattern holds; None if only rows show that."""
        return None if self.known else generate_test(self._question.root)

    @cached_property
    def _rows(self) -> ProgramRows:
        return ProgramRows(self.program)

    @cached_property
    def _question_rows(self) -> ProgramRows:
        return self._rows if self.question is self._program else ProgramRows(self.question)

    def holds(self, message: MessageForms) -> bool:
        """Whether the pattern holds on a message."""
        test = self.test
        if test is not None:
            return test(message.root)
        return bool(self.keep(self._question_rows.rows(message)))

    def rows(self, message: MessageForms) -> Bag:
        """The rows on a message."""
        return self.keep(self._rows.rows(message))

    def keep(self, bag: Bag) -> Bag:
        """The rows whose values can still join."""
        if not self.known or not bag:
            return bag
        return {r: c for r, c in bag.items() if all(r[at] in values for at, values in self.known)}


class PatternsOnTree:
    """Several patterns, evaluated together on the tree of a message."""

    def __init__(self, patterns: Sequence[FilterPattern], with_rows: bool) -> None:
        self._patterns = patterns
        self._rows = TreeRows([each.program if with_rows else each.question for each in patterns])

    def rows(self, message: MessageForms) -> list[tuple[FilterPattern, Bag]]:
        """The patterns that hold, with their rows."""
        bags = self._rows.rows(message.tree)
        kept = ((each, each.keep(bag)) for each, bag in zip(self._patterns, bags, strict=True))
        return [(each, bag) for each, bag in kept if bag]

    def keys(self, message: MessageForms) -> tuple[set[str], set[str]]:
        """The keys of the patterns that hold, and of those that exceed their work budget."""
        bags = self._rows.rows_within(message.tree, DEFAULT_LIMITS.work)
        found: set[str] = set()
        exceeding: set[str] = set()
        for each, bag in zip(self._patterns, bags, strict=True):
            if bag is None:
                exceeding |= each.keys
            elif each.keep(bag):
                found |= each.keys
        return found, exceeding


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


def _as_program(relation: Relation, axis: Axis) -> Program:
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
