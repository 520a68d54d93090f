"""Why a row of a view that a join makes does not hold, read off the state of the join.

It needs no document, so it answers where messages are not kept. It says what the state still has:
rows whose deadline has passed are gone, so the reason of their values may be the key alone.
`future/reasons.py` gives the reasons of a document that keeps all messages.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from axlog.document.times import Times, plain, shown
from axlog.document.tree import Tree
from axlog.errors import UpdateError
from axlog.future.deletions import can_match_at
from axlog.future.finality import absent_part, may_return
from axlog.future.join_inputs import FAR
from axlog.future.reasons import FINAL, Reason, outer_nots
from axlog.future.scenarios import may_bring
from axlog.future.search_budget import bounded
from axlog.query.normalize import normalise
from axlog.query.pattern import Pattern
from axlog.query.truth import Truth
from axlog.views.counting.join_outlook import Bound, JoinOutlook, Watched


def reasons_of(
    truth: Truth, pattern: Pattern, watched: Watched, outlook: JoinOutlook, known: Bound,
    times: Times, waits_until: int | None = None,
) -> tuple[Reason, ...]:  # fmt: skip
    """The reasons for the truth of a row with known values.

    `waits_until`: the moment at which time brings a row that the data has already; None: none.
    """
    found: Iterable[Reason]
    if truth is Truth.TRUE:
        return (Reason("holds", "the row is there"), *_ends(pattern, watched.tree))
    if waits_until is not None:
        since = shown(waits_until, times)
        return (Reason("deadline", f"it holds from {plain(since)} on", deadline=since),)
    with bounded(0):
        if truth is Truth.POSSIBLE:
            found = _needs(watched, outlook, known, times)
        else:
            found = [*_obstacles(pattern, watched, outlook, known)] or [_no_stream(watched)]
        return tuple(dict.fromkeys(found))


def _ends(pattern: Pattern, tree: Tree) -> Iterator[Reason]:
    """What can end a row of a join: what must be absent may come. Nothing takes its data away."""
    calls = tree.calls()
    if any(tree.call(n).deletes != "no" for n in calls.values()):
        return
    if any(map(tree.may_bring_calls, calls)) or may_return(tree, pattern):
        return
    is_some = False
    for each in outer_nots(normalise(pattern)):
        body = absent_part(pattern, each)
        for stream, node in calls.items():
            is_open = may_bring(tree, tree.call(node))
            if is_open and can_match_at(tree, body, tree.parent(node)):
                is_some = True
                inner = ", ".join(map(str, each.branches))
                yield Reason("ends", f"it stays until {stream} brings {inner}", stream)
    if not is_some:
        yield Reason("ends", FINAL)


def _needs(watched: Watched, outlook: JoinOutlook, known: Bound, times: Times) -> Iterator[Reason]:
    """What streams must bring, and until when."""
    for way in outlook.ways(known):
        limit = outlook.latest(way)
        if limit is None:
            continue
        until = None if limit == FAR else shown(limit, times)
        said = "" if until is None else f" until {plain(until)}"
        for part in way.left:
            for feeder in outlook.inputs.parts[part].feeders:
                if feeder.stream in watched.open[part]:
                    text = f"{feeder.stream} can still bring {feeder.relation.node}{said}"
                    yield Reason("needs", text, feeder.stream, until)


def _obstacles(
    pattern: Pattern, watched: Watched, outlook: JoinOutlook, known: Bound
) -> Iterator[Reason]:
    """What must be absent and is there, and the values of keys that have come."""
    if outlook.is_blocked(known):
        absent = list(outer_nots(pattern))
        what = "what" if len(absent) != 1 else ", ".join(map(str, absent[0].branches))
        yield Reason("absence", f"{what} must be absent, and is there for good")
        return
    for number, part in enumerate(outlook.inputs.parts):
        for position, key in part.keys:
            value = known.get(part.columns[position])
            if value is not None and _has_used(watched, number, position, value):
                yield Reason("key", f"`{key}`: the value has come, and comes only once")


def _has_used(watched: Watched, part: int, position: int, value: str | int) -> bool:
    try:
        return watched.has_used(part, position, value)
    except UpdateError:  # the state has forgotten it
        return False


def _no_stream(watched: Watched) -> Reason:
    """No open stream can bring it."""
    streams = sorted(set().union(*watched.open))
    if not streams:
        return Reason("streams", "no stream is open that can bring it")
    return Reason("streams", f"no open stream can bring it (open: {', '.join(streams)})")
