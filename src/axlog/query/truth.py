"""Truth: what can be said of an answer over a document whose calls are open (P1 2, DESIGN 3).

TRUE holds now; POSSIBLE does not hold, but some future of the open calls makes it hold; NEVER: none
does. The three are ordered NEVER < POSSIBLE < TRUE, so that `min` and `max` are P1's and/or. A
truth is no Boolean: who writes `if view.truth:` forgets the third value, so that raises.
"""

from __future__ import annotations

from enum import Enum
from typing import NoReturn


class Truth(Enum):
    """One of three values.

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
