"""Boolean functions of the surroundings of a forest, as reduced ordered decision diagrams.

A function is an integer: 0 never holds, 1 always holds, others are nodes (variable, otherwise,
then). Equal functions are the same integer (Bryant 1986), so summaries of forests compare and hash
as tuples of integers. `limit` bounds the number of functions: beyond it `TooMany` is raised, and
the caller must decline the pattern. Functions are never freed, because a pattern needs few.

Law: two functions are equal for all values of their variables if and only if they are the same
integer.
"""

from __future__ import annotations


class TooMany(Exception):  # a limit, which the caller handles
    """A maintainer needs more states than its limit."""


class DecisionDiagrams:
    """The functions over numbered variables, in the order of their numbers."""

    def __init__(self, limit: int = 200_000) -> None:
        self._limit = limit
        self._nodes: list[tuple[int, int, int]] = [(-1, 0, 0), (-1, 1, 1)]
        self._known: dict[tuple[int, int, int], int] = {}
        self._choices: dict[tuple[int, int, int], int] = {}

    def __len__(self) -> int:
        return len(self._nodes)

    def variable(self, number: int) -> int:
        return self._node(number, 0, 1)

    def _node(self, variable: int, otherwise: int, then: int) -> int:
        if otherwise == then:
            return then
        key = (variable, otherwise, then)
        found = self._known.get(key)
        if found is None:
            if len(self._nodes) >= self._limit:
                raise TooMany
            found = self._known[key] = len(self._nodes)
            self._nodes.append(key)
        return found

    def choose(self, condition: int, then: int, otherwise: int) -> int:
        """`then` where the condition holds, else `otherwise`."""
        if condition < 2:
            return then if condition else otherwise
        if then == otherwise:
            return then
        if then == 1 and otherwise == 0:
            return condition
        key = (condition, then, otherwise)
        found = self._choices.get(key)
        if found is None:
            nodes = self._nodes
            top = max(nodes[condition][0], nodes[then][0], nodes[otherwise][0])
            with_it = [self._half(f, top, 2) for f in key]
            without = [self._half(f, top, 1) for f in key]
            found = self._node(top, self.choose(*without), self.choose(*with_it))
            self._choices[key] = found
        return found

    def _half(self, function: int, variable: int, side: int) -> int:
        node = self._nodes[function]
        return node[side] if node[0] == variable else function

    def both(self, one: int, other: int) -> int:
        return self.choose(one, other, 0)

    def either(self, one: int, other: int) -> int:
        return self.choose(one, 1, other)

    def negate(self, one: int) -> int:
        return self.choose(one, 0, 1)

    def compose(self, function: int, by: dict[int, int], known: dict[int, int]) -> int:
        """Substitute functions for some variables; `known` caches results for this `by`."""
        if function < 2:
            return function
        found = known.get(function)
        if found is None:
            variable, otherwise, then = self._nodes[function]
            condition = by.get(variable)
            if condition is None:
                condition = self.variable(variable)
            found = self.choose(
                condition, self.compose(then, by, known), self.compose(otherwise, by, known)
            )
            known[function] = found
        return found

    def holds(self, function: int, context: int) -> bool:
        """The value where the variables are the bits of `context`."""
        while function > 1:
            variable, otherwise, then = self._nodes[function]
            function = then if context >> variable & 1 else otherwise
        return function == 1
