"""The most general futures of a scenario: the trees that its streams deliver, and their times.

Each required sub-pattern becomes a canonical tree (`canonical_models`): fresh labels where any
label matches, chains of fresh elements for `//`, one tree for each way through an `or`. A call
limited to m trees delivers several sub-patterns in one tree, in every possible grouping. More
specific futures only have more rows, so these suffice as long as values are only tested for
equality. For other comparisons, every case that they distinguish is tried: constants and values
between them, equal and different strings. Times that constraints compare stay open: `timed_loss.py`
decides over all of them.

`is_complete` says whether all cases were tried. If not, the absence of a counterexample proves
nothing. Not covered: times of data from calls inside messages, and elements that may have every
value except some (`a != "1"`). (Paper 2, section 6, theorem 9.)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import prod

from axlog.document.parser import Element
from axlog.document.tree import Tree
from axlog.errors import UndecidedError
from axlog.evaluate.value_tests import comparison
from axlog.future.canonical_models import Canon, Sketch, as_element
from axlog.future.capacity import partitions, trees_left
from axlog.future.containment import chain_lengths
from axlog.future.disjuncts import Disjunct, disjuncts
from axlog.future.generalized_rows import Need, Values
from axlog.future.instance_values import Compared, Strings, with_value_variables
from axlog.future.witness import attempts
from axlog.query.compile import Relation
from axlog.query.normalize import normalise
from axlog.query.pattern import (
    AnyText,
    Axis,
    Literal,
    Pattern,
    PatternNode,
    TimeConstraint,
    Variable,
    nodes_of,
)

Group = tuple[str, tuple[Relation, ...]]
"""A future tree: its stream, and the sub-patterns that it matches."""

MOST_CHOICES = 20_000
"""Largest number of combinations of choices for one scenario."""


@dataclass(frozen=True, slots=True)
class Sent:
    """One tree that a stream delivers, with its time."""

    time: int
    stream: str
    tree: Element


class Instances:
    """The most general futures of the scenarios of one pattern over one document."""

    def __init__(self, tree: Tree, pattern: Pattern, together: bool) -> None:
        self.tree = tree
        self.pattern = pattern
        self.is_complete = True
        self.reason = ""
        self._together = together
        self._strings = Strings(tree, pattern)
        self._lengths = chain_lengths(normalise(pattern), _has_joins(pattern))
        compared = [
            each
            for node in pattern.nodes()
            if node.axis is not Axis.ATTRIBUTE and not isinstance(node.test, Literal | AnyText)
            for each in node.comparisons
        ]
        self._compares_elements = bool(compared)
        # whether an element that is not compared can have a value that fails every comparison
        constants = [(c.operator, c.operand) for c in compared]
        self._can_have_other_values = any(
            all(isinstance(v, Variable) or not comparison(o, v)(value) for o, v in constants)
            for value in ("", self._strings.prefix)
        )

    def start(self) -> None:
        """Begin another question: reset `is_complete` and `reason`."""
        self.is_complete, self.reason = True, ""
        self._strings.reason = ""

    def of(self, columns: Sequence[str], values: Values, need: Need) -> Iterator[list[Sent]]:
        """The deliveries of each most general future of a scenario."""
        known = {
            c[1:]: str(v) for c, v in zip(columns, values, strict=True)
            if v is not None and c.startswith("$")
        }  # fmt: skip
        for groups in self._groupings(need):
            self._check_times(groups)
            compared: list[Compared] = []
            trees = [
                (stream, tuple(with_value_variables(_at_top(r), compared) for r in relations))
                for stream, relations in groups
            ]
            found = self._strings.assignments([nodes for _, nodes in trees], known, compared, need)
            for assigned in found:
                self._note(self._strings)
                for sketches in self._sketches(trees, assigned):
                    yield [
                        Sent(time, stream, as_element(sketch.below[0]))
                        for (stream, _), time, sketch in zip(
                            trees, self._times(groups), sketches, strict=True
                        )
                    ]

    def _note(self, part: Strings) -> None:
        if part.reason:
            self.is_complete, self.reason = False, part.reason

    def _times(self, groups: Sequence[Group]) -> list[int]:
        """A time for each tree, different ones so that a row which shows one occurs once.

        All trees of a one-shot call have one time.
        """
        slots: dict[object, int] = {}
        calls = self.tree.calls()
        for number, (stream, _) in enumerate(groups):
            is_one = self.tree.call(calls[stream]).mode == "one-shot"
            slots.setdefault(stream if is_one else number, len(slots))
        return [
            self.tree.clock + 1 + slots[stream if stream in slots else number]
            for number, (stream, _) in enumerate(groups)
        ]

    def _check_times(self, groups: list[Group]) -> None:
        """Note incompleteness if calls inside messages may deliver parts of a tree later."""
        is_timed = any(isinstance(c, TimeConstraint) for c in self.pattern.where)
        if self._together or not is_timed:
            return
        for stream, relations in groups:
            if not self.tree.may_bring_calls(stream):
                continue
            named = [n for r in relations if r.node for n in nodes_of(r.node) if n.name]
            if len(named) > 1:
                self.is_complete = False
                self.reason = "calls inside a message may deliver parts of a tree later"

    # Trees

    def _groupings(self, need: Need) -> Iterator[list[Group]]:
        """The ways to group the required sub-patterns into trees."""
        asked: dict[str, list[Relation]] = {}
        for relation, stream in sorted(need.brought, key=lambda p: (p[1], p[0].name)):
            asked.setdefault(stream, []).append(relation)
        choices: list[list[list[Group]]] = []
        for stream, relations in asked.items():
            left = trees_left(self.tree, stream)
            if (left is None or left >= len(relations)) and not self.tree.facts:
                choices.append([[(stream, (relation,)) for relation in relations]])
                continue
            most = len(relations) if left is None else min(left, len(relations))
            ways = sorted(partitions(relations, most), key=len, reverse=True)
            choices.append([[(stream, tuple(group)) for group in way] for way in ways])
        if prod(map(len, choices)) > MOST_CHOICES:
            raise UndecidedError(
                "AX502",
                "undecided within the limit: too many ways to group sub-patterns into trees",
            )
        for chosen in product(*choices):
            yield [group for way in chosen for group in way]

    def _sketches(
        self, trees: list[tuple[str, tuple[PatternNode, ...]]], assigned: Mapping[str, str]
    ) -> Iterator[tuple[Sketch, ...]]:
        """The canonical documents of each tree, in every combination."""
        every: list[list[Sketch]] = []
        for number, (_, nodes) in enumerate(trees):
            used = {v for node in nodes for v in _variables(node)}
            mine = {name: value for name, value in assigned.items() if name in used}
            made: list[Sketch] = []
            for disjunct in disjuncts(Pattern(nodes), mine):
                made += self._canonical(disjunct, f"{self._strings.prefix}{number}-")
                if len(made) > MOST_CHOICES:
                    raise UndecidedError("AX502", "undecided within the limit: too many models")
            every.append(made)
        if prod(map(len, every)) > MOST_CHOICES:
            raise UndecidedError("AX502", "undecided within the limit: too many // to instantiate")
        yield from product(*every)

    def _canonical(self, disjunct: Disjunct, prefix: str) -> Iterator[Sketch]:
        canon = Canon(disjunct, prefix)
        chains = list(product(self._lengths, repeat=len(canon.chains)))
        leaves = list(product((1, 0), repeat=len(canon.leaves)))
        if len(chains) * len(leaves) > MOST_CHOICES:
            raise UndecidedError("AX502", "undecided within the limit: too many // to instantiate")
        for lengths, kinds in product(chains, leaves):
            sketch = canon.sketch(
                dict(zip(canon.chains, lengths, strict=True)),
                dict(zip(canon.leaves, kinds, strict=True)),
            )
            if not self._compares_elements:
                yield sketch
                continue
            if not self._can_have_other_values:
                self.is_complete = False
                self.reason = "elements are compared for every value except some"
            yield from attempts(sketch, prefix)


def _has_joins(pattern: Pattern) -> bool:
    used = [v for branch in pattern.nodes() for v in _own_variables(branch)]
    return len(used) > len(set(used))


def _at_top(relation: Relation) -> PatternNode:
    """A sub-pattern of a whole tree: matched at its root, or anywhere in it."""
    assert relation.node is not None
    axis = Axis.CHILD if relation.node.axis is Axis.CHILD else Axis.DESCENDANT
    return replace(relation.node, axis=axis)


def _variables(node: PatternNode) -> Iterable[str]:
    for each in nodes_of(node):
        yield from _own_variables(each)


def _own_variables(node: PatternNode) -> Iterable[str]:
    for operand in (node.test, *(c.operand for c in node.comparisons)):
        if isinstance(operand, Variable):
            yield operand.name
