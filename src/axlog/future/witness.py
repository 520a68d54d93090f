"""A verified counterexample: a document which shows that one query is not contained in another.

The canonical model is written as XML and loaded as a document, and both patterns are evaluated on
it by definition. If a pattern has too many valuations for that, the matcher checks the loaded
document instead (`checked_by`).

Value tests on elements (`oid = "17"`) need texts that the canonical model does not have, and may
hold or fail because of texts that no test mentions. `attempts` generates several variants; none of
them need be a witness.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from axlog.document.loader import load
from axlog.document.parser import DEEPEST, Limits
from axlog.document.serializer import serialise
from axlog.document.tree import DOCUMENT_NODE, NodeKind
from axlog.evaluate.definition import rows
from axlog.future.canonical_models import Model, Sketch, Sort, as_element, bits
from axlog.future.disjuncts import Twig
from axlog.future.homomorphism import Matcher
from axlog.query.pattern import Branch, Or, PatternNode

MOST_PLACEMENTS = 100_000
"""Largest number of placements of pattern nodes for which the definition is evaluated."""

_DEEP = Limits(depth=DEEPEST)
_SHOWN = (NodeKind.DOCUMENT, NodeKind.ELEMENT, NodeKind.ATTRIBUTE, NodeKind.TEXT)


@dataclass(frozen=True, slots=True)
class Witness:
    """A document on which the first query has a row that the second does not have.

    Load `document` with `keep_whitespace=True`. In `row`, a node is shown by its path.
    """

    document: str
    row: tuple[str, ...]
    checked_by: str


def witness_from(
    sketch: Sketch, row: list[str | Twig], first: Matcher, second: Matcher
) -> Witness | None:
    """The witness that a sketch without open choices yields; None if it is not a witness."""
    tree = load(as_element(sketch.below[0]), limits=_DEEP, keep_whitespace=True)
    model = Model.of_tree(tree)
    numbers = Model.of_sketch(sketch).number
    shown = [value if isinstance(value, str) else numbers[value] for value in row]
    if not first.matches(model, shown) or second.matches(model, shown):
        return None
    nodes = [n for n in tree.subtree(DOCUMENT_NODE) if tree.kind(n) in _SHOWN]
    checked_by = "the matcher"
    if _Placements(model, first).are_few() and _Placements(model, second).are_few():
        key = tuple(v if isinstance(v, str) else tree.id(nodes[v]) for v in shown)
        if key not in rows(tree, first.pattern) or key in rows(tree, second.pattern):
            return None
        checked_by = "the reference"
    shown_row = tuple(
        value if isinstance(value, str) else tree.path(nodes[value]) for value in shown
    )
    return Witness(serialise(tree), shown_row, checked_by)


class _Placements:
    """Counts the placements of pattern nodes that the definition may try, up to the limit."""

    def __init__(self, model: Model, matcher: Matcher) -> None:
        self.model = model
        self.matcher = matcher
        self._passing: dict[int, int] = {}
        self._known: dict[tuple[int, int], int] = {}

    def are_few(self) -> bool:
        return self._together(self.matcher.pattern.branches, 0) <= MOST_PLACEMENTS

    def _together(self, branches: tuple[Branch, ...], at: int) -> int:
        ways = 1
        for branch in branches:
            ways = min(ways * max(1, self._of(branch, at)), MOST_PLACEMENTS + 1)
        return ways

    def _of(self, branch: Branch, at: int) -> int:
        if isinstance(branch, Or):
            return sum(self._together(inside, at) for inside in branch.alternatives)
        assert isinstance(branch, PatternNode)
        key = (id(branch), at)
        if key not in self._known:
            passing = self._passing.get(id(branch))
            if passing is None:
                passing = self._passing[id(branch)] = self.matcher.passing(self.model, branch)
            nodes = bits(self.model.reached(branch.axis, at) & passing)
            self._known[key] = sum(self._together(branch.branches, node) for node in nodes)
        return self._known[key]


# Texts for values ---------------------------------------------------------------------------------


def attempts(sketch: Sketch, prefix: str) -> Iterator[Sketch]:
    """Variants of a sketch with texts that give elements their values, or other values."""
    for wrapped, other in product((False, True), (None, False, True)):
        variant = _copied(sketch)
        if _fill(variant, wrapped, prefix):
            if other is not None:
                _add_other_values(variant, other, prefix)
            yield variant


def _copied(sketch: Sketch) -> Sketch:
    """A copy that refers to the same twigs."""
    below = [_copied(each) for each in sketch.below]
    return Sketch(sketch.sort, sketch.label, sketch.value, below, sketch.twig)


def _fill(sketch: Sketch, wrapped: bool, prefix: str) -> bool:
    """Add texts until every element has its required value; False if that is impossible."""
    if not all(_fill(below, wrapped, prefix) for below in sketch.below):
        return False
    if sketch.sort is not Sort.ELEMENT or sketch.value is None:
        return True
    present = sketch.text
    if present not in sketch.value:
        return False
    before, after = "", sketch.value
    if present:
        before, _, after = sketch.value.partition(present)
    attributes = [each for each in sketch.below if each.sort is Sort.ATTRIBUTE]
    children = [each for each in sketch.below if each.sort is not Sort.ATTRIBUTE]
    sketch.below = [
        *attributes, *_texts(before, wrapped, prefix), *children, *_texts(after, wrapped, prefix)
    ]  # fmt: skip
    return True


def _texts(text: str, wrapped: bool, prefix: str) -> list[Sketch]:
    if not text:
        return []
    made = Sketch(Sort.TEXT, text, text)
    return [Sketch(Sort.ELEMENT, f"{prefix}_v", below=[made])] if wrapped else [made]


def _add_other_values(sketch: Sketch, wrapped: bool, prefix: str) -> None:
    """Give every element without a required value one that no test mentions."""
    if sketch.sort is Sort.ELEMENT and sketch.value is not None:
        return
    for below in sketch.below:
        if below.sort is Sort.ELEMENT:
            _add_other_values(below, wrapped, prefix)
    if sketch.sort is Sort.ELEMENT:
        sketch.below += _texts(f"{prefix}_s", wrapped, prefix)
