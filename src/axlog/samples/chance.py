"""Seeded random draws that are the same on every Python version.

The standard library guarantees the sequence of a seed across versions for `Random.random` only, not
for `choice`, `sample` and `shuffle`. All draws of the generators are therefore built on
`Random.random` here.

A `Chance` is named: `Chance(7, "pattern")` and `Chance(7, "updates")` do not share a sequence. A
new draw in one part of a workload therefore leaves the other parts unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import log
from random import Random
from typing import TypeVar

T = TypeVar("T")


class Chance:
    """A named, seeded sequence of draws.

    >>> Chance(7, "pattern").choose("abc") == Chance(7, "pattern").choose("abc")
    True
    """

    __slots__ = ("random",)

    def __init__(self, seed: int, *names: str | int) -> None:
        self.random: Callable[[], float] = Random(":".join(map(str, (seed, *names)))).random

    def below(self, bound: int) -> int:
        """An integer from 0 up to, not including, `bound`."""
        return int(self.random() * bound)

    def happens(self, probability: float) -> bool:
        """True with this probability."""
        return self.random() < probability

    def exponential(self, mean: float) -> float:
        """An exponentially distributed waiting time with this mean."""
        return -mean * log(1.0 - self.random())

    def choose(self, things: Sequence[T]) -> T:
        """One of `things`, with equal probability."""
        return things[int(self.random() * len(things))]

    def sample(self, things: Sequence[T], count: int) -> list[T]:
        """`count` different positions of `things`, in random order."""
        pool = list(things)
        for i in range(count):
            j = i + self.below(len(pool) - i)
            pool[i], pool[j] = pool[j], pool[i]
        return pool[:count]
