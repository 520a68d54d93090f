"""Truth: the three-valued verdict on an answer over a document with open calls (docs/meaning.md).

TRUE: the answer holds now. POSSIBLE: it does not hold, but some future of the open calls makes it
hold. NEVER: no future does. The order is NEVER < POSSIBLE < TRUE, so `min` is the conjunction and
`max` the disjunction. A truth is not a Boolean: `if view.truth:` would ignore the third value, so
it raises. (Paper 1, section 2.)
"""

from __future__ import annotations

from enum import Enum
from typing import NoReturn


class Truth(Enum):
    """A verdict on an answer: NEVER, POSSIBLE or TRUE.

    >>> max(Truth.NEVER, Truth.POSSIBLE), min(Truth.TRUE, Truth.POSSIBLE)
    (<Truth.POSSIBLE: 'possible'>, <Truth.POSSIBLE: 'possible'>)
    """

    NEVER = "never"
    POSSIBLE = "possible"
    TRUE = "true"

    def __bool__(self) -> NoReturn:
        raise TypeError(f"{self} is one of three values: compare it, as in `is Truth.TRUE`")

    def __lt__(self, other: Truth) -> bool:
        return _RANK[self] < _RANK[other]

    def __le__(self, other: Truth) -> bool:
        return _RANK[self] <= _RANK[other]

    def __gt__(self, other: Truth) -> bool:
        return _RANK[self] > _RANK[other]

    def __ge__(self, other: Truth) -> bool:
        return _RANK[self] >= _RANK[other]


_RANK = {truth: rank for rank, truth in enumerate(Truth)}
