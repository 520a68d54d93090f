"""Rows that a join dropped because no partner can arrive, and the times at which rows arrive."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf
from operator import itemgetter
from typing import NamedTuple

from axlog.evaluate.joins import Row
from axlog.future.garbage import Proof


class Ended(NamedTuple):
    """A row that was dropped, and the proof that it has no possible partner."""

    part: int
    row: Row
    proof: Proof
    limit: int | None = None  # the deadline that passed


def arrival(positions: Sequence[int]) -> Callable[[Row], float]:
    """A function that returns the latest time of a row; -inf if it has none."""
    if len(positions) == 1:
        return itemgetter(positions[0])
    return lambda row: max((int(row[i]) for i in positions), default=-inf)
