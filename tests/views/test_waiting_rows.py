"""The contract of rows that wait in a join: `pending`, `next_deadline` and `prune`."""

from __future__ import annotations

from random import Random

import axlog
from axlog.evaluate.joins import Row
from axlog.future.garbage import KeyUsed, StreamEnded, TimePassed
from axlog.live.internals import maintained, streams_of
from axlog.views.counting.ended_rows import Ended
from axlog.views.counting.waiting_rows import WaitingRows
from axlog.views.operators.operator import Pending
from lab.laws.never_law import make_never_case, take

CALL = '<ax:call xmlns:ax="urn:axlog" stream="{}"/>'
DOCUMENT = f"<r><p>{CALL.format('f')}</p><q>{CALL.format('g')}</q></r>"
PAIR = "match /r[p/a/k/$x#t1][q/d/k/$x#t2] where t2 - t1 <= 5 return $x"


def joined(query: str = PAIR, facts: tuple[str, ...] = ()) -> tuple[axlog.Document, WaitingRows]:
    made = axlog.parse(DOCUMENT, views={"v": query}, facts=facts)
    streams_of(made).collector.refresh()
    (join,) = streams_of(made).collector.joins
    assert isinstance(join, WaitingRows)
    return made, join


def rows(join: WaitingRows, part: int) -> list[Row]:
    return sorted(join.live[part].rows())


def test_a_row_is_pending_until_its_deadline() -> None:
    made, join = joined()
    made.feed("f", "<a><k>1</k></a>", at=2)
    (row,) = rows(join, 0)
    assert join.pending(0, row) == Pending(1, {"g"}, 7_000_000)
    assert join.state.join.pending(0, row) == join.pending(0, row)  # as an operator
    assert join.next_deadline() == 7_000_000
    assert join.prune(TimePassed(7_000_000)) == 0
    assert join.prune(TimePassed(7_000_001)) == 1
    assert join.take_ended() == [Ended(0, row, TimePassed(7_000_001), 7_000_000)]
    assert (rows(join, 0), join.next_deadline()) == ([], None)


def test_a_key_value_that_is_used_up_prunes_its_partners() -> None:
    query = "match /r[p/a/k/$x][q/d[w]/k/$x] return $x"
    made, join = joined(query, ("key q/d by k trusted",))
    for value in "12":
        made.feed("f", f"<a><k>{value}</k></a>")
    assert join.prune(KeyUsed(1, "1")) == 1
    assert [(each.row, each.proof) for each in join.take_ended()] == [(("1",), KeyUsed(1, "1"))]
    assert rows(join, 0) == [("2",)]
    assert join.pending(0, ("1",)) is None


def test_the_end_of_the_last_stream_prunes_the_other_part() -> None:
    made, join = joined("match /r[p/a/k/$x][q/d/k/$x] return $x")
    made.feed("f", "<a><k>1</k></a>")
    made.feed("g", "<d><k>2</k></d>")
    assert join.prune(StreamEnded(1, "g")) == 1
    assert (rows(join, 0), rows(join, 1)) == ([], [("2",)])
    assert join.pending(0, ("1",)) is None
    assert join.pending(1, ("2",)) == Pending(0, {"f"}, None)


def test_every_kept_row_is_pending() -> None:
    """Random joins, keys and messages: after every update no row waits that cannot be completed."""
    kept = 0
    for seed in range(60):
        case = make_never_case(Random(seed))
        made = axlog.parse(case.document, views={"v": case.query}, facts=case.facts)
        for step in case.steps:
            take(made, step)
            clock = maintained(made).tree.clock
            for join in streams_of(made).collector.joins:
                waiting = [(part, row) for part in range(2) for row in join.live[part].rows()]
                assert all(join.pending(part, row) is not None for part, row in waiting)
                deadline = join.next_deadline()
                assert deadline is None or deadline >= clock
                kept += len(waiting)
    assert kept > 100
