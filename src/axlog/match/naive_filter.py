"""Patterns tested without the automaton: few patterns, or messages that need a tree.

`Asked` has one generated function per pattern, which tests whether it holds. `Tested` has one
generated matcher for the rows of all its patterns, and the interpreter for patterns that cannot be
generated. `OnTree` uses the interpreter for all patterns, in one pass over a tree made from the
message: for messages with calls or `xml:space`, whose texts differ from those of the parsed
elements.
"""

from __future__ import annotations

from collections.abc import Sequence

from lxml import etree

from axlog.document.loader import load
from axlog.document.parser import DEEPEST, DEFAULT_LIMITS, Element, Limits
from axlog.document.tree import Tree
from axlog.evaluate.joins import Bag
from axlog.match.filter_pattern import Wanted
from axlog.match.program_rows import UNKNOWN, Generated, Interpreted, can_generate
from axlog.match.test_generator import make_question
from axlog.query.compile import Program

Found = list[tuple[Wanted, Bag]]

_ODD = etree.XPath(
    "boolean(descendant-or-self::*[@xml:space or self::ax:call])", namespaces={"ax": "urn:axlog"}
)
_LIMITS = Limits(depth=DEEPEST)


def is_odd(message: Element, content: bytes | None = None) -> bool:
    """Whether a message has calls or `xml:space`."""
    if content is not None and b"xml" not in content:  # neither xmlns nor xml:space
        return False
    return bool(_ODD(message))


def tree_of(message: Element, time: int) -> Tree:
    """A message as a separate document."""
    return load(message, limits=_LIMITS, time=time)


def _program(wanted: Wanted, with_rows: bool) -> Program:
    """The program for the rows, or the smaller one that tests whether there are any."""
    return wanted.program if with_rows or wanted.known else wanted.question


class Tested:
    """The rows of few patterns, tested one after the other."""

    def __init__(self, wanted: Sequence[Wanted], with_rows: bool = True) -> None:
        programs = [(each, _program(each, with_rows)) for each in wanted]
        simple = [pair for pair in programs if can_generate(pair[1])]
        others = [pair for pair in programs if not can_generate(pair[1])]
        self._simple, self._others = [w for w, _ in simple], [w for w, _ in others]
        self._generated = Generated([program for _, program in simple]) if simple else None
        self._interpreted = Interpreted([program for _, program in others]) if others else None

    def rows(self, message: Element, time: int, content: bytes | None) -> Found:
        """The patterns that have rows, and the rows."""
        found: Found = []
        if self._generated is not None:
            bags = self._generated.rows(message, time, UNKNOWN if content is None else content)
            found += _kept(self._simple, bags)
        if self._interpreted is not None:
            found += _kept(self._others, self._interpreted.rows(tree_of(message, time)))
        return found


class Asked:
    """Whether few patterns hold, tested one after the other."""

    def __init__(self, wanted: Sequence[Wanted]) -> None:
        asks = [
            (each, None if each.known else make_question(each.question.root)) for each in wanted
        ]
        self._asks = [(each.keys, ask) for each, ask in asks if ask is not None]
        others = [each for each, ask in asks if ask is None]
        self._others = Tested(others, with_rows=False) if others else None

    def keys(self, message: Element, time: int, content: bytes | None) -> set[str]:
        """The keys of those that hold."""
        found: set[str] = set()
        for keys, ask in self._asks:
            if ask(message):
                found.update(keys)
        if self._others is not None:
            for wanted, _ in self._others.rows(message, time, content):
                found.update(wanted.keys)
        return found


class OnTree:
    """All patterns by the interpreter."""

    def __init__(self, wanted: Sequence[Wanted], with_rows: bool) -> None:
        self._wanted = wanted
        self._interpreted = Interpreted([_program(each, with_rows) for each in wanted])

    def rows(self, message: Element, time: int) -> Found:
        """The patterns that have rows, and the rows."""
        return _kept(self._wanted, self._interpreted.rows(tree_of(message, time)))

    def keys(self, message: Element, time: int) -> tuple[set[str], set[str]]:
        """The keys of the patterns that hold, and of those that exceed their work budget."""
        bags = self._interpreted.rows_within(tree_of(message, time), DEFAULT_LIMITS.work)
        found: set[str] = set()
        exceeding: set[str] = set()
        for wanted, bag in zip(self._wanted, bags, strict=True):
            if bag is None:
                exceeding |= wanted.keys
            elif wanted.keep(bag):
                found |= wanted.keys
        return found, exceeding


def _kept(wanted: Sequence[Wanted], bags: Sequence[Bag]) -> Found:
    found = [(each, bag) for each, bag in zip(wanted, bags, strict=True) if bag]
    if not any(each.known for each, _ in found):
        return found
    return [(each, kept) for each, bag in found if (kept := each.keep(bag))]
