"""Conjunctive forward patterns: child, descendant, next and following sibling.

The records of a node u are bit sets over the steps:

    S(u)  the steps that hold at u without their sibling edges (subtreeNoSibling)
    C(u)  the steps that hold at some child of u        D(u)  ... at some descendant of u

A step with sibling edges holds at some child of u if the steps that its sibling edges reach
(subtreeOnlySibling) can be matched onto the children of u, read as a string of the sets S. This is
a pattern on strings (`strings.py`), whose triples are kept in the balanced tree of u. The result is
an algebra of forests for `forest.py`: a summary holds the contribution of a run of trees to C and
D, and a set of triples for each such group. An update costs O(depth x log width) joins.

Not handled: groups whose steps could match texts, because texts between elements are not positions,
and sibling edges below descendant-or-self. The automaton handles both. (Paper 4, section 6,
theorem 6.1.)
"""

from __future__ import annotations

from dataclasses import dataclass

from axlog.query.pattern import Name, Wildcard
from axlog.views.records.question import Question, Way
from axlog.views.records.strings import StringPattern, Strings

_SIBLING = frozenset({Way.NEXT, Way.FOLLOWING})
_DOWN = frozenset({Way.CHILD, Way.DESCENDANT, Way.DESCENDANT_OR_SELF})
FORWARD = _SIBLING | _DOWN | {Way.HERE, Way.SELF}

Summary = tuple[int, int, tuple[int, ...]]
"""Steps at the roots of the trees, steps at any depth below, and the triples of every group."""


@dataclass(frozen=True, slots=True)
class Group:
    """Steps connected by sibling edges: a pattern on strings, with the steps of its nodes."""

    root: int  # the step that a child or descendant edge reaches
    pattern: StringPattern
    nodes: tuple[int, ...]  # for each node the steps that must hold there, as bits


def forward_refusal(question: Question) -> str | None:
    """Why a question is not a Boolean conjunctive forward pattern."""
    if not question.is_boolean:
        return "it selects nodes"
    if question.has_connectives:
        return "it has or, or not"
    if not question.ways <= FORWARD:
        return "it has reverse axes"
    if not question.ways & _SIBLING:
        return "it has no sibling axes"
    try:
        groups_of(question)
    except ValueError as reason:
        return str(reason)
    return None


def groups_of(question: Question) -> list[Group]:
    """The groups of a question; raises ValueError if one is outside the fragment."""
    groups = []
    for number, step in enumerate(question.steps):
        if step.way not in _SIBLING | {Way.SELF} and _beside(question, _same(question, {number})):
            if step.way not in (Way.CHILD, Way.DESCENDANT):
                raise ValueError(f"sibling edges are below {step.way.value}")
            groups.append(_group(question, number))
    return groups


def _same(question: Question, steps: set[int]) -> set[int]:
    """Steps that must hold at one node: these, and those connected to them by `self`."""
    waiting = list(steps)
    found = set(steps)
    while waiting:
        for item in question.steps[waiting.pop()].items:
            if isinstance(item, int) and question.steps[item].way is Way.SELF:
                found.add(item)
                waiting.append(item)
    return found


def _beside(question: Question, steps: set[int]) -> list[int]:
    """The steps that the sibling edges of these steps reach."""
    return [
        item
        for step in sorted(steps)
        for item in question.steps[step].items
        if isinstance(item, int) and question.steps[item].way in _SIBLING
    ]


def _group(question: Question, root: int) -> Group:
    parents, nexts, nodes = [-1], [False], [_same(question, {root})]
    at = 0
    while at < len(nodes):
        beside = _beside(question, nodes[at])
        next_ones = {step for step in beside if question.steps[step].way is Way.NEXT}
        further = [{step} for step in beside if step not in next_ones]
        # the next sibling is one position: its steps are one node of the pattern
        for steps, is_next in [*([(next_ones, True)] if next_ones else []),
                               *((steps, False) for steps in further)]:  # fmt: skip
            parents.append(at)
            nexts.append(is_next)
            nodes.append(_same(question, steps))
        at += 1
    for steps in nodes:
        if not any(_is_element(question, step) for step in steps):
            raise ValueError("a step beside others may be a text")
    bits = tuple(sum(1 << step for step in steps) for steps in nodes)
    return Group(root, StringPattern(tuple(parents), tuple(nexts)), bits)


def _is_element(question: Question, number: int) -> bool:
    step = question.steps[number]
    return step.fact is None and isinstance(step.test, Name | Wildcard)


class ForwardAlgebra:
    """The algebra of a conjunctive forward question: summaries by number; 0 is empty."""

    def __init__(self, question: Question) -> None:
        self.question = question
        self.root = len(question.steps) - 1
        self.groups = groups_of(question)
        self.strings = [Strings(group.pattern) for group in self.groups]
        grouped = {group.root for group in self.groups}
        ways = [step.way for step in question.steps]
        self._single = sum(
            1 << number
            for number, way in enumerate(ways)
            if (way in _DOWN or way is Way.HERE) and number not in grouped
        )
        self._deep = sum(1 << n for n, way in enumerate(ways) if way in _DOWN - {Way.CHILD})
        self._needs = [self._needed(number) for number in range(len(ways))]
        self._summaries: list[Summary] = [(0, 0, (0,) * len(self.groups))]
        self._numbers: dict[Summary, int] = {self._summaries[0]: 0}
        self._joined: dict[tuple[int, int], int] = {}
        self._made: dict[tuple[int, bool, int], int] = {}

    def _needed(self, number: int) -> tuple[int, int, int, list[int]]:
        """The requirements of a step: on itself, on children, on descendants, on either."""
        here = children = deep = 0
        either: list[int] = []
        for item in self.question.steps[number].items:
            assert isinstance(item, int), "conjunctive"
            match self.question.steps[item].way:
                case Way.SELF:
                    here |= 1 << item
                case Way.CHILD:
                    children |= 1 << item
                case Way.DESCENDANT:
                    deep |= 1 << item
                case Way.DESCENDANT_OR_SELF:
                    either.append(item)
        return here, children, deep, either

    @property
    def states(self) -> int:
        return len(self._summaries)

    def _number(self, summary: Summary) -> int:
        known = self._numbers.get(summary)
        if known is None:
            known = self._numbers[summary] = len(self._summaries)
            self._summaries.append(summary)
        return known

    def join(self, one: int, other: int) -> int:
        if one == 0 or other == 0:
            return one or other
        found = self._joined.get((one, other))
        if found is None:
            here, deep, strings = self._summaries[one]
            here_too, deep_too, more = self._summaries[other]
            joined = tuple(
                each.join(a, b) for each, a, b in zip(self.strings, strings, more, strict=True)
            )
            found = self._number((here | here_too, deep | deep_too, joined))
            self._joined[one, other] = found
        return found

    def node(self, letter: int, is_element: bool, below: int) -> int:
        key = (letter, is_element, below)
        found = self._made.get(key)
        if found is None:
            found = self._made[key] = self._node(letter, is_element, self._summaries[below])
        return found

    def _node(self, letter: int, is_element: bool, below: Summary) -> int:
        children, deep, strings = below
        for group, each, triples in zip(self.groups, self.strings, strings, strict=True):
            if each.matches(triples):
                children |= 1 << group.root
        deep |= children & self._deep
        holds = 0
        for number, (here, needed, deeper, either) in enumerate(self._needs):
            if (
                letter >> number & 1
                and here & holds == here
                and needed & children == needed
                and deeper & deep == deeper
                and all((holds | deep) >> step & 1 for step in either)
            ):
                holds |= 1 << number
        if is_element:
            strings = tuple(
                each.letter(_matching(group, holds))
                for group, each in zip(self.groups, self.strings, strict=True)
            )
        else:
            strings = self._summaries[0][2]
        return self._number((holds & self._single, deep, strings))

    def answer(self, whole: int) -> bool:
        """Whether the question holds at the document node, given the summary of the document."""
        return bool(self._summaries[whole][0] >> self.root & 1)


def _matching(group: Group, holds: int) -> int:
    """The nodes of the group's pattern that match at a position where these steps hold."""
    return sum(1 << node for node, bits in enumerate(group.nodes) if bits & holds == bits)
