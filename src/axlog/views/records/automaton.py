"""Full patterns by a lazily built automaton, as an algebra of forests.

Whether a pattern holds at a node may depend on nodes above and beside its subtree. The summary of a
forest (a run of siblings with all nodes below them) is therefore, for every step y that can reach
the forest from outside, a Boolean function of the nodes outside the forest:

    below y:  is there a y among its trees (a child) or anywhere in it (a descendant)?
    right y:  the answer to y from the left; the variable y is the answer further right
    left y:   the answer to y from the right; the variable y is the answer further left
    above y:  the variable y is whether y holds at the parent, or at some ancestor

A function of step y contains only variables of y and of steps below y in the pattern. Two adjacent
forests are therefore joined step by step, the lowest step first: the answers of the right forest
replace the variables of the left one, and vice versa. Summaries are numbered when they first occur,
and `join` and `node` are cached. The result is the deterministic automaton of the pattern, with a
monoid as its horizontal part. Only the states that the document needs are built, at most
`MOST_STATES`. Law: the summary of two adjacent forests is the `join` of theirs, and the answer is
the definition's. Downward patterns have no variables: their summaries are the records S and D of
`downward.py`. (Paper 4, lemma 3.1 and theorem 3.2.)
"""

from __future__ import annotations

from typing import Any

from axlog.views.records.decision_diagrams import DecisionDiagrams, TooMany
from axlog.views.records.question import (
    ABOVE,
    BELOW,
    LEFT,
    RIGHT,
    Conjunction,
    Either,
    Item,
    Neither,
    Question,
    Way,
)

MOST_STATES = 50_000
EMPTY = 0

Summary = tuple[int, ...]
_ONE_STEP = frozenset({Way.NEXT, Way.PREVIOUS})
_RUN = frozenset({Way.NEXT_RUN, Way.PREVIOUS_RUN})
_DEEP = frozenset({Way.HERE, Way.DESCENDANT, Way.DESCENDANT_OR_SELF})


class Automaton:
    """The algebra of one question: summaries by number; 0 is the empty forest."""

    def __init__(self, question: Question, most: int = MOST_STATES) -> None:
        self.question = question
        self.functions = DecisionDiagrams(4 * most)
        self.root = len(question.steps) - 1
        self._most = most
        self._ways = [step.way for step in question.steps]
        self._variables = [self.functions.variable(n) for n in range(len(question.steps))]
        self.summaries: list[Summary] = []
        self._numbers: dict[Summary, int] = {}
        self._joined: dict[tuple[int, int], int] = {}
        self._made: dict[tuple[int, bool, int], int] = {}
        self._split: dict[tuple[int, int, int, int], tuple[int, int, int]] = {}
        self._entered: dict[tuple[int, bool, int, int], tuple[bool, int]] = {}
        beside = LEFT | RIGHT
        self._number(
            tuple(
                self._variables[number] if way in beside else 0
                for number, way in enumerate(self._ways)
            )
        )

    def _number(self, summary: Summary) -> int:
        known = self._numbers.get(summary)
        if known is None:
            if len(self.summaries) >= self._most:
                raise TooMany
            known = self._numbers[summary] = len(self.summaries)
            self.summaries.append(summary)
        return known

    @property
    def states(self) -> int:
        return len(self.summaries)

    def answer(self, whole: int, context: int = 0) -> bool:
        """Whether the question holds somewhere in a forest with these surroundings."""
        return self.functions.holds(self.summaries[whole][self.root], context)

    # Forests --------------------------------------------------------------------------------------

    def join(self, one: int, other: int) -> int:
        """The summary of two adjacent forests."""
        if one == EMPTY or other == EMPTY:
            return one or other
        key = (one, other)
        found = self._joined.get(key)
        if found is None:
            found = self._joined[key] = self._join(self.summaries[one], self.summaries[other])
        return found

    def _join(self, one: Summary, other: Summary) -> int:
        functions = self.functions
        compose = functions.compose
        from_right: dict[int, int] = {}  # for the variables of `one`
        from_left: dict[int, int] = {}  # for those of `other`
        known_one: dict[int, int] = {}
        known_other: dict[int, int] = {}
        result = []
        for number, way in enumerate(self._ways):
            if way in RIGHT:
                from_right[number] = compose(other[number], from_left, known_other)
                result.append(compose(one[number], from_right, known_one))
            elif way in LEFT:
                from_left[number] = compose(one[number], from_right, known_one)
                result.append(compose(other[number], from_left, known_other))
            elif way in BELOW:
                first = compose(one[number], from_right, known_one)
                second = compose(other[number], from_left, known_other)
                result.append(functions.either(first, second))
            else:
                result.append(0)
        return self._number(tuple(result))

    def node(self, letter: int, is_element: bool, below: int) -> int:
        """The summary of one tree: a node that passes these tests, with a forest below it."""
        key = (letter, is_element, below)
        found = self._made.get(key)
        if found is None:
            found = self._made[key] = self._node(letter, is_element, self.summaries[below])
        return found

    def _node(self, letter: int, is_element: bool, below: Summary) -> int:
        functions, variables = self.functions, self._variables
        either = functions.either
        values: list[int] = []
        deeper: list[int] = []
        inside: dict[int, int] = {}  # for the variables of the forest below
        known: dict[int, int] = {}
        result = []
        for number, way in enumerate(self._ways):
            value = self._value(number, letter, values, deeper)
            values.append(value)
            variable = variables[number]
            if way is Way.PARENT:
                inside[number] = value
            elif way in ABOVE:
                inside[number] = either(value, variable)
            elif way in LEFT or way in RIGHT:
                inside[number] = 0
            deeper.append(functions.compose(below[number], inside, known) if way in BELOW else 0)
            if way is Way.CHILD:
                result.append(value)
            elif way in _DEEP:
                result.append(either(value, deeper[number]))
            elif way in _ONE_STEP:
                result.append(value if is_element else variable)
            elif way in _RUN:
                result.append(value if is_element else either(value, variable))
            elif way in LEFT or way in RIGHT:
                result.append(either(value, variable))
            else:
                result.append(0)
        return self._number(tuple(result))

    def _value(self, number: int, letter: int, values: list[int], deeper: list[int]) -> int:
        """Whether a step holds at the node, as a function of its surroundings."""
        if not letter >> number & 1:
            return 0
        return self._all(self.question.steps[number].items, values, deeper)

    def _all(self, items: Conjunction, values: list[int], deeper: list[int]) -> int:
        value = 1
        for item in items:
            value = self.functions.both(value, self._holding(item, values, deeper))
            if not value:
                break
        return value

    def _holding(self, item: Item, values: list[int], deeper: list[int]) -> int:
        functions = self.functions
        if isinstance(item, Either):
            value = 0
            for inside in item.alternatives:
                value = functions.either(value, self._all(inside, values, deeper))
            return value
        if isinstance(item, Neither):
            return functions.negate(self._all(item.inside, values, deeper))
        match self._ways[item]:
            case Way.SELF:
                return values[item]
            case Way.CHILD | Way.DESCENDANT:
                return deeper[item]
            case Way.DESCENDANT_OR_SELF:
                return functions.either(values[item], deeper[item])
            case Way.ANCESTOR_OR_SELF:
                return functions.either(values[item], self._variables[item])
            case _:
                return self._variables[item]

    # Where surroundings are known -----------------------------------------------------------------
    #
    # The same equations with bits instead of functions, from the top down: the surroundings of the
    # three parts of a run of siblings, and of the forest below a node.

    def split(self, left: int, own: int, right: int, context: int) -> tuple[int, int, int]:
        """The surroundings of the left part, the middle tree and the right part of a forest."""
        key = (left, own, right, context)
        found = self._split.get(key)
        if found is None:
            self._bound(self._split)
            found = self._split[key] = self._split_forest(left, own, right, context)
        return found

    def _split_forest(self, left: int, own: int, right: int, context: int) -> tuple[int, int, int]:
        first, middle, last = (self.summaries[each] for each in (left, own, right))
        holds = self.functions.holds
        around_first = around_middle = around_last = 0
        for number, way in enumerate(self._ways):
            bit = context & 1 << number
            if way in RIGHT:
                around_last |= bit
                around_middle |= holds(last[number], around_last) << number
                around_first |= holds(middle[number], around_middle) << number
            elif way in LEFT:
                around_first |= bit
                around_middle |= holds(first[number], around_first) << number
                around_last |= holds(middle[number], around_middle) << number
            elif way in ABOVE:
                around_first |= bit
                around_middle |= bit
                around_last |= bit
        return around_first, around_middle, around_last

    def enter(self, letter: int, is_element: bool, below: int, context: int) -> tuple[bool, int]:
        """Whether the question holds at a node, and the surroundings of the forest below it."""
        key = (letter, is_element, below, context)
        found = self._entered.get(key)
        if found is None:
            self._bound(self._entered)
            found = self._entered[key] = self._enter_node(letter, below, context)
        return found

    def _enter_node(self, letter: int, below: int, context: int) -> tuple[bool, int]:
        summary, holds = self.summaries[below], self.functions.holds
        values: list[int] = []
        deeper: list[int] = []
        inside = 0
        for number, way in enumerate(self._ways):
            value = int(holds(self._value(number, letter, values, deeper), context))
            values.append(value)
            if way is Way.PARENT:
                inside |= value << number
            elif way in ABOVE:
                inside |= (value | context >> number & 1) << number
            deeper.append(int(holds(summary[number], inside)) if way in BELOW else 0)
        return bool(values[self.root]), inside

    def _bound(self, known: dict[Any, Any]) -> None:
        if len(known) > 4 * self._most:
            known.clear()
