"""The forms of one message for checking the patterns that the automaton leaves open."""

from __future__ import annotations

from axlog.document.parser import Element
from axlog.document.tree import Tree
from axlog.evaluate.joins import Bag
from axlog.match.filter_pattern import Wanted
from axlog.match.naive_filter import tree_of
from axlog.match.program_rows import UNKNOWN
from axlog.match.twig_matcher import DOCUMENT, Layout

LAYOUT_FROM = 16
"""Patterns left open by the automaton from which a layout of the message pays off."""


class Checking:
    """The forms of one message, made on first use, to check patterns left open."""

    __slots__ = ("content", "is_laid_out", "layout", "message", "time", "tree")

    def __init__(self, message: Element, time: int, content: bytes | None, count: int) -> None:
        self.message = message
        self.time = time
        self.content = UNKNOWN if content is None else content
        self.is_laid_out = count >= LAYOUT_FROM
        self.layout: Layout | None = None
        self.tree: Tree | None = None

    def holds(self, wanted: Wanted) -> bool:
        """Whether a pattern holds on the message."""
        if not wanted.can_check:
            return bool(self.rows(wanted))
        if not self.is_laid_out:
            holds = wanted.holds(self.message)
            if holds is not None:
                return holds
        if self.layout is None:
            self.layout = Layout(self.message)
        return wanted.check(self.layout, DOCUMENT)

    def rows(self, wanted: Wanted) -> Bag:
        """The rows of a pattern on the message."""
        if not wanted.needs_tree:
            return wanted.rows(self.message, self.time, self.content)
        if self.tree is None:
            self.tree = tree_of(self.message, self.time)
        return wanted.rows_on(self.tree)
