"""A pattern as a question about one node: a tree of tests connected by axes.

The rows of a view are the nodes that a path selects. The path is inverted at the selected node:
with the inverse of every axis on the way to the document node, it becomes a question about one
node, namely whether it is selected. A Boolean pattern is a question about the document node. Both
are one list of steps. Each step comes after the steps below it, and the last step is the question.

    //a[c]/following-sibling::b   is   b[preceding-sibling::a[c][ancestor::(document)]]

The counting engine keeps the parts that the algorithms do not handle (values, attributes): such a
part is a `Fact`, a separate view whose rows are the nodes at which it holds. Not handled:
variables, constraints on time, `collect`, rows that do not identify a node, selected attributes.
(Paper 4, definition 2.1.)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum

from axlog.document.tree import COMMENT, ELEMENT, INSTRUCTION, TEXT, NodeKind, Tree
from axlog.query.pattern import (
    AnyComment,
    AnyInstruction,
    AnyNode,
    AnyText,
    Axis,
    Branch,
    Collect,
    Kind,
    Literal,
    Name,
    Not,
    Or,
    Output,
    PartialName,
    Pattern,
    PatternNode,
    Test,
    Variable,
    Wildcard,
    nodes_of,
)
from axlog.views.counting.maintainer import Counting

MOST_STEPS = 62
"""The most steps of a question: columns hold a set of steps in one machine word."""


class Way(Enum):
    """The way from the step above to a step."""

    HERE = "here"  # the question itself: at any node
    SELF = "self"
    CHILD = "child"
    DESCENDANT = "descendant"
    DESCENDANT_OR_SELF = "descendant-or-self"
    PARENT = "parent"
    ANCESTOR = "ancestor"
    ANCESTOR_OR_SELF = "ancestor-or-self"
    NEXT = "next-sibling"
    FOLLOWING = "following-sibling"
    NEXT_RUN = "up to the next element"  # the inverse of the previous sibling of any node
    PREVIOUS = "previous-sibling"
    PRECEDING = "preceding-sibling"
    PREVIOUS_RUN = "back to the previous element"  # the inverse of the next sibling of any node


BELOW = frozenset({Way.HERE, Way.CHILD, Way.DESCENDANT, Way.DESCENDANT_OR_SELF})
ABOVE = frozenset({Way.PARENT, Way.ANCESTOR, Way.ANCESTOR_OR_SELF})
RIGHT = frozenset({Way.NEXT, Way.FOLLOWING, Way.NEXT_RUN})
LEFT = frozenset({Way.PREVIOUS, Way.PRECEDING, Way.PREVIOUS_RUN})
CONTEXT = ABOVE | RIGHT | LEFT
"""Ways that leave a subtree: the nodes there are unknown inside the subtree."""

_WAYS: dict[Axis, Way] = {axis: Way(axis.value) for axis in Axis if axis is not Axis.ATTRIBUTE}
_INVERSE = {
    Axis.SELF: Way.SELF,
    Axis.CHILD: Way.PARENT,
    Axis.DESCENDANT: Way.ANCESTOR,
    Axis.DESCENDANT_OR_SELF: Way.ANCESTOR_OR_SELF,
    Axis.PARENT: Way.CHILD,
    Axis.ANCESTOR: Way.DESCENDANT,
    Axis.ANCESTOR_OR_SELF: Way.DESCENDANT_OR_SELF,
    Axis.FOLLOWING_SIBLING: Way.PRECEDING,
    Axis.PRECEDING_SIBLING: Way.FOLLOWING,
    Axis.NEXT_SIBLING: Way.PREVIOUS_RUN,
    Axis.PREVIOUS_SIBLING: Way.NEXT_RUN,
}
_TO_ELEMENTS = frozenset({Axis.NEXT_SIBLING, Axis.PREVIOUS_SIBLING})


@dataclass(frozen=True, slots=True)
class Either:
    """At least one of several conjunctions holds."""

    alternatives: tuple[Conjunction, ...]


@dataclass(frozen=True, slots=True)
class Neither:
    """The conjunction does not hold."""

    inside: Conjunction


Item = int | Either | Neither
"""A step by its number, or a connective."""
Conjunction = tuple[Item, ...]


@dataclass(frozen=True, slots=True)
class Step:
    """One test, the way to it, and the conditions at the nodes that pass it."""

    way: Way
    test: Test | None  # None: the document node
    items: Conjunction
    fact: Pattern | None = None  # the rows of this view replace the test
    at_self: bool = False  # `self::node()` has no condition


@dataclass(frozen=True, slots=True)
class Question:
    """The steps, each after the steps below it; the last is the question itself."""

    steps: tuple[Step, ...]
    outputs: tuple[Output, ...]
    distinct: bool = False  # several ways to select a node count as one (a union)

    @property
    def is_boolean(self) -> bool:
        return not self.outputs

    @property
    def ways(self) -> frozenset[Way]:
        return frozenset(step.way for step in self.steps)

    @property
    def has_connectives(self) -> bool:
        return any(not isinstance(item, int) for step in self.steps for item in step.items)


class Declined(Exception):  # an outcome that `question_of` returns, not an error
    """Why a pattern is outside the fragment."""


def question_of(pattern: Pattern) -> Question | str:
    """The question of a pattern, or the reason why it has none."""
    try:
        return _QuestionBuilder(pattern).question()
    except Declined as declined:
        return str(declined)


class _QuestionBuilder:
    """Builds the question of one pattern."""

    def __init__(self, pattern: Pattern) -> None:
        self.pattern = pattern
        self.steps: list[Step] = []

    def question(self) -> Question:
        pattern = self.pattern
        if pattern.where:
            raise Declined("records keep no constraints between nodes")
        for branch in pattern.branches:
            for node in nodes_of(branch):
                _check(node)
        distinct = False
        if not pattern.outputs:
            self._document(pattern.branches, None, Way.HERE)
        else:
            distinct = self._selection(_shown(pattern))
        if len(self.steps) > MOST_STEPS:
            raise Declined(f"records keep patterns of up to {MOST_STEPS} steps")
        return Question(tuple(self.steps), pattern.outputs, distinct)

    def _selection(self, name: str) -> bool:
        branches = self.pattern.branches
        if len(branches) == 1 and isinstance(branches[0], Or):
            alternatives = branches[0].alternatives
            turned = tuple((self._inverted(inside, name, Way.SELF),) for inside in alternatives)
            self._add(Step(Way.HERE, AnyNode(), (Either(turned),), at_self=True))
            return True
        self._inverted(branches, name, Way.HERE)
        return False

    def _inverted(self, branches: tuple[Branch, ...], name: str, way: Way) -> int:
        """The step of the selected node, with the inverted path below it."""
        spine = _spine(branches, name)
        if spine is None:
            raise Declined("the selected node is inside a connective")
        above = self._document(branches, spine[0], _inverse(spine[0], None))
        for at, node in enumerate(spine):
            last = at + 1 == len(spine)
            down = None if last else spine[at + 1]
            reached = way if last else _inverse(spine[at + 1], node)
            above = self._node(node, down, reached, (above,))
        return above

    def _document(self, branches: tuple[Branch, ...], spine: PatternNode | None, way: Way) -> int:
        items = self._items(branches, spine, None)
        return self._add(Step(way, None, items))

    def _node(
        self, node: PatternNode, skipped: PatternNode | None, way: Way, more: Conjunction = ()
    ) -> int:
        items = self._items(node.branches, skipped, node)
        if node.comparisons:
            bare = PatternNode(Axis.DESCENDANT, node.test, "t", node.comparisons)
            items = (*items, self._fact(bare))
        test = node.test
        if node.axis in _TO_ELEMENTS:
            test = _among_elements(test)
        at_self = node.axis is Axis.SELF and isinstance(test, AnyNode)
        return self._add(Step(way, test, (*more, *items), at_self=at_self))

    def _items(
        self, branches: Iterable[Branch], skipped: PatternNode | None, on: PatternNode | None
    ) -> Conjunction:
        return tuple(self._item(b, on) for b in branches if b is not skipped)

    def _item(self, branch: Branch, on: PatternNode | None) -> Item:
        if on is not None and _has_values(branch) and _goes_down(branch):
            return self._fact(PatternNode(Axis.DESCENDANT, on.test, "t", branches=(branch,)))
        match branch:
            case PatternNode(axis=Axis.ATTRIBUTE):
                raise Declined("an attribute has conditions other than on its value")
            case PatternNode():
                return self._node(branch, None, _WAYS[branch.axis])
            case Or(alternatives=alternatives):
                return Either(tuple(self._items(inside, None, on) for inside in alternatives))
            case Not(branches=inside, where=where):
                if where:
                    raise Declined("records keep no constraints between nodes")
                return Neither(self._items(inside, None, on))
            case Collect():
                raise Declined("records collect no paths")

    def _fact(self, node: PatternNode) -> int:
        fact = Pattern((node,), outputs=(Output(Kind.ID, "t"),))
        refusal = Counting.refusal(fact)
        if refusal is not None:
            raise Declined(refusal)
        return self._add(Step(Way.SELF, node.test, (), fact))

    def _add(self, step: Step) -> int:
        self.steps.append(step)
        return len(self.steps) - 1


def _check(node: PatternNode) -> None:
    if isinstance(node.test, Variable) or any(
        isinstance(comparison.operand, Variable) for comparison in node.comparisons
    ):
        raise Declined("records bind no variables")


def _shown(pattern: Pattern) -> str:
    """The one node that the rows show."""
    names = {output.of for output in pattern.outputs}
    if len(names) != 1 or any(output.kind is Kind.VARIABLE for output in pattern.outputs):
        raise Declined("records show one node in a row")
    if not any(o.kind in (Kind.ID, Kind.VAL, Kind.CONT) for o in pattern.outputs):
        raise Declined("the rows do not identify nodes")
    return names.pop()


def _spine(branches: Iterable[Branch], name: str) -> list[PatternNode] | None:
    """The nodes from the top to the one with this name."""
    for branch in branches:
        if isinstance(branch, PatternNode):
            if branch.name == name:
                return [branch]
            below = _spine(branch.branches, name)
            if below is not None:
                return [branch, *below]
    return None


def _inverse(node: PatternNode, source: PatternNode | None) -> Way:
    if node.axis is Axis.ATTRIBUTE:
        raise Declined("an attribute is selected")
    way = _INVERSE[node.axis]
    if source is not None and isinstance(source.test, Name | Wildcard):
        return {Way.PREVIOUS_RUN: Way.PREVIOUS, Way.NEXT_RUN: Way.NEXT}.get(way, way)
    return way


def _among_elements(test: Test) -> Test:
    """The test on a way that reaches only elements: tests for other nodes never pass."""
    if isinstance(test, AnyText | Literal | AnyComment | AnyInstruction):
        return _NOTHING
    return Wildcard() if isinstance(test, AnyNode) else test


_NOTHING = Name("")  # no element has this name


def _has_values(branch: Branch) -> bool:
    return any(n.comparisons or n.axis is Axis.ATTRIBUTE for n in nodes_of(branch))


def _goes_down(branch: Branch) -> bool:
    return all(node.axis.is_downward for node in nodes_of(branch))


# Tests ------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Letters:
    """The tests that a node passes, as bits: the letter of the node in the algorithms."""

    question: Question
    names: dict[str, int] = field(default_factory=dict)
    texts: dict[str, int] = field(default_factory=dict)
    targets: dict[str, int] = field(default_factory=dict)
    element: int = 0
    text: int = 0
    comment: int = 0
    instruction: int = 0
    document: int = 0
    other: int = 0
    partial: list[tuple[PartialName, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        for number, step in enumerate(self.question.steps):
            self._enter(1 << number, step)
        named = self.names
        self.names = {}
        for name, bits in named.items():
            self.names[name] = bits | self._new_name(name)
        self.texts = {text: bits | self.text for text, bits in self.texts.items()}
        self.targets = {name: bits | self.instruction for name, bits in self.targets.items()}

    def _enter(self, bit: int, step: Step) -> None:
        if step.fact is not None:
            return
        match step.test:
            case None:
                self.document |= bit
            case Name(label=label):
                self.names[label] = self.names.get(label, 0) | bit
            case PartialName():
                self.partial.append((step.test, bit))
            case Wildcard():
                self.element |= bit
            case Literal(text=text):
                self.texts[text] = self.texts.get(text, 0) | bit
            case AnyText():
                self.text |= bit
            case AnyComment():
                self.comment |= bit
            case AnyInstruction(target=None):
                self.instruction |= bit
            case AnyInstruction(target=str(target)):
                self.targets[target] = self.targets.get(target, 0) | bit
            case Variable():
                raise AssertionError("records bind no variables")
            case AnyNode():
                self.element |= bit
                self.text |= bit
                self.comment |= bit
                self.instruction |= bit
                if step.at_self:
                    self.document |= bit
                    self.other |= bit

    def _new_name(self, name: str) -> int:
        """The letter of a name that no step has in full."""
        if not self.partial:
            return self.element
        bits = self.element
        for test, bit in self.partial:
            if test.matches(name):
                bits |= bit
        self.names[name] = bits
        return bits

    def of(self, tree: Tree, node: int) -> int:
        """The letter of a node, without facts."""
        kind = tree.kind_column[node]
        if kind == ELEMENT:
            name = tree.names[tree.label_column[node]]
            found = self.names.get(name)
            return self._new_name(name) if found is None else found
        if kind == TEXT:
            return self.texts.get(tree.text(node), self.text) if self.texts else self.text
        if kind == COMMENT:
            return self.comment
        if kind == INSTRUCTION:
            return self.targets.get(tree.target(node), self.instruction)
        return self.document if kind == NodeKind.DOCUMENT else self.other


def facts_of(question: Question) -> Iterator[tuple[int, Pattern]]:
    """The parts that counting keeps, each with the number of its step."""
    for number, step in enumerate(question.steps):
        if step.fact is not None:
            yield number, step.fact
