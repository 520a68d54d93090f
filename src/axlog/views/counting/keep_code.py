"""Generated code that keeps an arriving row of a join of two, as long as a partner may arrive."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from heapq import heappush
from typing import Any

from axlog.document.tree import Tree
from axlog.evaluate.joins import Row, Value
from axlog.views.counting.brief_rows import Follow

Keep = Callable[[Row, int], None]


@dataclass(frozen=True, slots=True)
class Keeping:
    """What decides whether a row of one part waits; the generated code reads it."""

    part: int
    waiting: Any  # counts the rows that are not kept, in `dropped`
    tree: Tree
    streams: set[str]  # that can bring a partner
    key: int | None  # the position of the partner's key value in the row
    arrived: Mapping[Row, Any]  # the rows of the partner by this value
    recent: Mapping[Value, int]  # values, with the time at which they arrived
    remembered: set[str] | None  # all values that have arrived
    bound: tuple[int, int] | None
    """The position of a time, and what is added to it for the deadline; None: there is none."""
    deadlines: list[tuple[float, int, Row]]
    arrival: Callable[[Row], float]
    keep_briefly: Follow
    followers: Sequence[Follow]


def keep_function(about: Keeping, deadline: Callable[[Row], int | None], add: Keep) -> Keep:
    """`WaitingRows.keep` for one part, with what does not change put in; runs for every row."""
    part, waiting, tree, streams = about.part, about.waiting, about.tree, about.streams
    at, arrived, recent, remembered = about.key, about.arrived, about.recent, about.remembered
    heap, arrival, followers = about.deadlines, about.arrival, about.followers
    keep_briefly = about.keep_briefly

    def keep(row: Row, count: int) -> None:
        clock = tree.clock
        if at is not None:
            value = row[at]
            if (
                (value,) in arrived
                or (remembered is not None and value in remembered)
                or recent.get(value) == clock
            ):
                waiting.dropped += 1
                return
        limit = deadline(row)
        if not streams or (limit is not None and limit < clock):
            waiting.dropped += 1
            return
        if limit is not None:
            if limit <= clock and limit <= arrival(row):
                keep_briefly(part, row, count)
                return
            heappush(heap, (limit, part, row))
        add(row, count)
        for follow in followers:
            follow(part, row, count)

    return keep


def keep_code(
    about: Keeping, scope: dict[str, object], key: Callable[[Sequence[int]], str]
) -> list[str]:
    """The lines before the row is added to its table; what they read is added to the scope.

    `key` gives an expression of the values at some positions.
    """
    part, at = about.part, about.key
    scope |= {"waiting": about.waiting, "streams": about.streams, "tree": about.tree}
    lines, conditions = ["clock = tree.clock"], ["not streams"]
    if at is not None:
        scope |= {"arrived": about.arrived, "recent": about.recent}
        scope["remembered"] = about.remembered
        is_used = f"recent.get(row[{at}]) == clock"
        if about.remembered is not None:
            is_used = f"row[{at}] in remembered"
        conditions += [f"{key((at,))} in arrived", is_used]
    if about.bound is not None:
        lines.append(f"limit = row[{about.bound[0]}] + {about.bound[1]}")
        conditions.append("limit < clock")
    lines += [f"if {' or '.join(conditions)}:", "    waiting.dropped += 1", "    return"]
    if about.bound is not None:
        scope |= {"push": heappush, "heap": about.deadlines, "arrival": about.arrival}
        scope["keep_briefly"] = about.keep_briefly
        lines += [
            "if limit <= clock and limit <= arrival(row):",
            f"    keep_briefly({part}, row, count)",
            "    return",
            f"push(heap, (limit, {part}, row))",
        ]
    scope["followers"] = about.followers
    return [*lines, "for follow in followers:", f"    follow({part}, row, count)"]
