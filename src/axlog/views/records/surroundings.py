"""Full patterns by a lazily built automaton (P4 lemma 3.1, theorem 3.2), as an algebra of forests.

What a pattern says of a node may depend on what is above and beside its subtree. So the summary of
a forest (a run of siblings with all below them) is, for every step y that can be asked of it from
outside, a Boolean function of what it cannot see:

    below y:  is there a y among its trees (a child) or anywhere in it (a descendant)?
    right y:  asked from the left, what it answers; the variable y is what stands further right
    left y:   asked from the right, the same
    above y:  the variable y is whether y holds at the parent, or at some ancestor

A function of step y has only variables of y and of steps below y in the pattern. So two forests
side by side are joined step by step, lowest first: what the right one answers takes the place of
the left one's variables, and the other way round. Summaries are numbered as they are met; `join`
and `node` are looked up once known. That is the deterministic automaton of the pattern, its
horizontal part a monoid, of which only the states that the document needs are built, at most
`MOST_STATES`. Downward patterns have no variables: their summaries are P4's records S and D.
"""

from __future__ import annotations

from typing import Any

from axlog.views.records.functions import Functions, TooMany
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


class Surroundings:
    """The algebra of one question: summaries by number, 0 the empty forest's."""

    def __init__(self, question: Question, most: int = MOST_STATES) -> None:
        self.question = question
        self.functions = Functions(4 * most)
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
        """Whether the question holds somewhere in a forest, its surroundings being as given."""
        return self.functions.holds(self.summaries[whole][self.root], context)

    # Forests --------------------------------------------------------------------------------------

    def join(self, one: int, other: int) -> int:
        """The summary of two forests side by side."""
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
        inside: dict[int, int] = {}  # for the variables of what is below
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
    # The same equations with bits in the place of functions, from the top down: what stands around
    # the three parts of a run of siblings, and around the forest below a node.

    def split(self, left: int, own: int, right: int, context: int) -> tuple[int, int, int]:
        """What surrounds the left part, the middle tree and the right part of a forest."""
        key = (left, own, right, context)
        found = self._split.get(key)
        if found is None:
            self._bound(self._split)
            found = self._split[key] = self._splitting(left, own, right, context)
        return found

    def _splitting(self, left: int, own: int, right: int, context: int) -> tuple[int, int, int]:
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
        """Whether the question holds at a node, and what surrounds the forest below it."""
        key = (letter, is_element, below, context)
        found = self._entered.get(key)
        if found is None:
            self._bound(self._entered)
            found = self._entered[key] = self._entering(letter, below, context)
        return found

    def _entering(self, letter: int, below: int, context: int) -> tuple[bool, int]:
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
