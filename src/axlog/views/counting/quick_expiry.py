"""Deadlines of a two-way join that pass, as `never` changes of its one view, in one step.

`WaitingRows.expire` records the rows that it drops, and `Prospects.never` judges them. Most keyed
views need no such record: each part shows its key, so a dropped row is the only one that could show
its values, and it is judged when it is dropped.

Law: the changes are those of the two calls.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop
from typing import TypeAlias

from axlog.evaluate.joins import Row as Binding
from axlog.views.change import CLOCK, Change, Row
from axlog.views.counting.prospects import Prospects

Expire: TypeAlias = Callable[[int], list[Change]]
"""Drops the rows whose deadlines are before a clock; the `never` changes of them."""


def quick_expiry(prospects: Prospects) -> Expire | None:
    """The expiry of a join with one view; None: the view needs the record of dropped rows."""
    if not prospects.shows_keys:
        return None
    waiting, names = prospects.waiting, prospects.pattern.columns
    heap, arrivals, followers = waiting.heap, waiting.arrivals, waiting.followers
    removals = [table.remove for table in waiting.live]
    shows, is_there = prospects.shows, prospects.holds_or_waits

    def expire(clock: int) -> list[Change]:
        found: dict[Binding, int] = {}
        while heap and heap[0][0] < clock:
            limit, part, row = heappop(heap)
            count = removals[part](row)
            if not count:
                continue  # it was completed, or a key has ruled it out
            waiting.dropped += 1
            for follow in followers:
                follow(part, row, -count)
            if limit > arrivals[part](row) and not is_there(part, row):
                found[shows[part](row)] = int(limit)
        return [
            Change("never", Row(names, shown), None, None, limit + 1, 0, CLOCK)
            for shown, limit in found.items()
        ]

    return expire
