"""Annotations: values of facts, so that one program computes counts, answers or three values.

The values of the facts of one body are multiplied; the derivations of one fact are added. An
annotation is a commutative semiring, so that the result does not depend on the order of evaluation:

    plus, times associative and commutative; zero, one their neutral elements; times distributes
    over plus; times(zero, v) = zero

A fact of value zero is no fact. An annotation also has `complement` for negated atoms, `once` for
facts that count once, and `call`, the value of `function(n)`: the data of an open call is zero for
counts, and possible for the three values.

Three values with min and max are exact for patterns without `not` and without joins (paper 1,
theorem 1); `functions.with_functions` refuses the others.

Not handled: generalised tuples and provenance.
"""

from __future__ import annotations

from typing import Protocol, TypeVar

from axlog.query.truth import Truth

V = TypeVar("V")


class Annotation(Protocol[V]):
    """The operations of a semiring on the values of facts."""

    @property
    def zero(self) -> V: ...
    @property
    def one(self) -> V: ...
    @property
    def call(self) -> V:
        """The value of `function(n)` at an open call."""

    def plus(self, left: V, right: V) -> V: ...
    def times(self, left: V, right: V) -> V: ...
    def once(self, value: V) -> V:
        """The value of a fact that counts once, regardless of its derivations."""

    def complement(self, value: V) -> V:
        """The value of a negated atom whose fact has this value."""


class Integers:
    """Derivation counts (paper 3, section 4; paper 5, section 2.2)."""

    zero, one, call = 0, 1, 0

    def plus(self, left: int, right: int) -> int:
        return left + right

    def times(self, left: int, right: int) -> int:
        return left * right

    def once(self, value: int) -> int:
        return min(value, 1)

    def complement(self, value: int) -> int:
        return 0 if value else 1


class Booleans:
    """Whether a fact holds now."""

    zero, one, call = False, True, False

    def plus(self, left: bool, right: bool) -> bool:
        return left or right

    def times(self, left: bool, right: bool) -> bool:
        return left and right

    def once(self, value: bool) -> bool:
        return value

    def complement(self, value: bool) -> bool:
        return not value


class Truths:
    """Three values: max and min, and a negation that keeps POSSIBLE (paper 1)."""

    zero, one, call = Truth.NEVER, Truth.TRUE, Truth.POSSIBLE

    def plus(self, left: Truth, right: Truth) -> Truth:
        return max(left, right)

    def times(self, left: Truth, right: Truth) -> Truth:
        return min(left, right)

    def once(self, value: Truth) -> Truth:
        return value

    def complement(self, value: Truth) -> Truth:
        return _COMPLEMENT[value]


_COMPLEMENT = {
    Truth.NEVER: Truth.TRUE,
    Truth.POSSIBLE: Truth.POSSIBLE,
    Truth.TRUE: Truth.NEVER,
}

INTEGERS = Integers()
BOOLEANS = Booleans()
TRUTHS = Truths()
