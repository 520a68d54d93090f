"""When the joins with `not`s of a document drop rows that no row to come can use.

A sweep reads all rows of these joins. The next one follows after as many updates as rows were left,
so an update costs the same however many rows there are.
"""

from __future__ import annotations

from collections.abc import Iterable

from axlog.views.counting.join_prospects import Watch
from axlog.views.counting.join_watch import JoinWatch

SWEPT_EVERY = 512
"""Minimum number of updates between two sweeps."""


class JoinSweeps:
    """The joins of one document that are swept."""

    def __init__(self) -> None:
        self.joins: list[JoinWatch] = []
        self._left = SWEPT_EVERY  # updates until the next sweep

    def watch(self, joins: Iterable[Watch]) -> None:
        """Sweep those of some joins that have `not`s, and no others."""
        self.joins = [join for join in joins if isinstance(join, JoinWatch) and join.is_swept]
        self._left = min(self._left, SWEPT_EVERY)

    def count(self) -> None:
        """Count an update whose consequences were examined; sweep if it is time to."""
        self._left -= 1
        if self._left <= 0:
            rows = sum(join.sweep() for join in self.joins if not join.ended)
            self._left = max(SWEPT_EVERY, rows)
