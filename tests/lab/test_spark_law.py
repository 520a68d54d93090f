"""Random pipelines on Spark, from every kind of source, with both places of state (law 7).

The short form; `python -m lab.laws.spark_law SEED CASES SECONDS` is the long one. Without a
session, `python -m lab fuzz --law pipelines`.
"""

from dataclasses import replace
from random import Random
from typing import Any

import pytest

from axlog.document.stream_update import StreamUpdate
from axlog.runtime.plan import make_plan
from axlog.spark.sources import LEAST
from lab.laws.buckets_law import (
    BucketsCase,
    check_buckets,
    compare,
    make_buckets_case,
    run_embedded,
)
from lab.laws.pipeline_cases import PipelineCase, make_pipeline_case, reference
from lab.laws.spark_law import check_spark, spark_case


@pytest.mark.parametrize("seed", range(12))
def test_buckets_and_the_embedded_runner_do_what_the_definition_says(seed: int) -> None:
    check_buckets(make_buckets_case(Random(seed)))


@pytest.mark.parametrize("seed", [1009, 1026, 1027, 1086, 1095])
def test_cases_that_failed_once(seed: int) -> None:
    """Refused messages that hid a partition, a view keyed by a time, ends of one partition."""
    check_buckets(make_buckets_case(Random(f"pipelines:{seed}"), computes=False))


SHOP = (
    '<shop><a><ax:call xmlns:ax="urn:axlog" stream="a"{}/></a>'
    '<b><ax:call xmlns:ax="urn:axlog" stream="b"{}/></b></shop>'
)


def _order(key: str, value: str) -> str:
    return f"<order><k>{key}</k><s>s1</s><t>{value}</t></order>"


@pytest.mark.parametrize("on_driver", [True, False])
def test_messages_of_one_time_keep_their_order_in_a_partition(on_driver: bool) -> None:
    """The later one of two messages with a key replaces the other, whatever its stream's name."""
    first = (
        StreamUpdate("b", "insert", _order("k2", "2.50"), 13e-6, "m8"),
        StreamUpdate("a", "insert", _order("k4", "2"), None, "m9"),
    )
    second = (StreamUpdate("a", "insert", _order("k4", "1"), 13e-6, "m7"),)
    document = SHOP.format(' replace="k"', ' replace="k"')
    views = ("match /shop[a/order[k/$k]/t/$t][b/order] return $k, sum($t) as total",)
    case = PipelineCase(document, views, ((first,), (second,)), ((0,), (0,)))
    answer = reference(case)
    assert answer is not None
    assert [row[1:] for row in answer.rows] == [("k4", 2)]
    for seed in range(4):
        check_buckets(BucketsCase(case, seed, 3, on_driver))


def _restarted(batch: int) -> PipelineCase:
    """A message follows one before the restart, whose place is later than its own."""
    first = (
        StreamUpdate("b", "insert", _order("k1", "1"), 4e-6, "m4"),
        StreamUpdate("a", "insert", _order("k2", "10"), 4e-6, "m7"),
    )
    second = (
        StreamUpdate("a", "insert", _order("k3", "0"), 4e-6, "m8"),
        StreamUpdate("a", "insert", _order("k4", "2"), 4e-6, "m9"),
    )
    views = ("match /shop/a/order/t/$t return $t",)
    document, sources = SHOP.format(' replace="s"', ""), ((first,), ((), (), second, ()))
    return PipelineCase(document, views, sources, ((1,), (0, 0, 0, 0)), batch)


@pytest.mark.parametrize("on_driver", [True, False])
def test_a_restart_changes_no_place(on_driver: bool) -> None:
    case = _restarted(batch=7)
    answer = reference(case)
    assert answer is not None
    assert [row[1:] for row in answer.rows] == [("10",)]
    for seed in range(4):
        check_buckets(BucketsCase(case, seed, 3, on_driver))


def test_a_message_held_back_at_a_restart_keeps_its_place() -> None:
    """Restarted after every batch, the embedded runner applies messages in the same order."""
    case = _restarted(batch=1)
    answer = reference(case)
    assert answer is not None
    for batches in (None, 1, 2):
        compare("embedded", run_embedded(case, batches), answer)


@pytest.mark.parametrize("on_driver", [True, False])
def test_a_message_without_a_time_gets_that_of_a_rejected_one_before_it(on_driver: bool) -> None:
    """All engines know its own sequence, and none the clock that others have moved meanwhile."""
    other = (StreamUpdate("a", "insert", _order("k4", "2.50"), 5e-6, "m7"),)
    last = (StreamUpdate("a", "insert", _order("k0", "1"), 12e-6, "m15"),)
    follows = (
        StreamUpdate("b", "insert", "no element", 6e-6, "m8"),
        StreamUpdate("a", "insert", _order("k1", "2"), None, "m9"),
    )
    views = ("match /shop/a/order#n where now - n <= 5us return count() as c",)
    document = SHOP.format(' replace="k"', ' replace="k"')
    sources = ((other,), ((), last, (), follows))
    case = PipelineCase(document, views, sources, ((1,), (0, 1, 0, 2)), 3)
    answer = reference(case)
    assert answer is not None
    assert ("view1", 12, "update", 0) in answer.moments  # it came at 6
    for seed in range(4):
        check_buckets(BucketsCase(case, seed, 3, on_driver))


@pytest.mark.parametrize("on_driver", [True, False])
@pytest.mark.parametrize("buckets", [2, 3])
def test_a_match_of_the_document_that_a_not_blocks_hides_no_never(
    buckets: int, on_driver: bool
) -> None:
    """The bucket that has the row of the `not` has the match, and no other."""
    document = (
        '<r xmlns:ax="urn:axlog"><f><a><w/><k>2</k></a><ax:call stream="f"/></f>'
        '<n><ax:call stream="n"/></n></r>'
    )
    blocked = (StreamUpdate("n", "insert", "<a><w/><k>2</k></a>", 1e-6, "m2"),)
    ended = (StreamUpdate("f", "end", "", 5e-6, "end f"),)
    views = ("match /r[not(n/a/k/$x)][f/a[w]/k/$x] return $x",)
    facts = ("key n/a by k trusted",)
    case = PipelineCase(document, views, ((blocked,), (ended,)), ((1,), (1,)), facts=facts)
    answer = reference(case)
    assert answer is not None
    assert answer.changes["view1", "never", None] == 1
    check_buckets(BucketsCase(case, 1, buckets, on_driver))


def test_a_message_without_a_time_keeps_its_place_at_the_start_of_a_batch() -> None:
    """Its source has no other message in the batch, and another source has an earlier place."""
    first = (
        StreamUpdate("a", "insert", "<item><v>v0</v></item>", 1e-6, "m2"),
        StreamUpdate("b", "insert", "<item/>", None, "m8"),
    )
    second = (StreamUpdate("b", "insert", "<item><v>v2</v></item>", 1e-6, "m3"),)
    views = ("match /shop/b/item/v#v return v.id, v.val",)
    sources = (((), second, (), first),)
    case = PipelineCase(SHOP.format("", ""), views, sources, ((0, 0, 0, 0),), 3)
    answer = reference(case)
    assert answer is not None
    for batches in (None, 1, 2):
        compare("embedded", run_embedded(case, batches), answer)


def test_a_message_for_several_buckets_is_refused_once() -> None:
    """Its buckets may refuse it in different batches; one of them has its content."""
    ended = (StreamUpdate("a", "end", "", 3e-6, "end a"),)
    late = (
        StreamUpdate("b", "insert", _order("k3", "1"), 2e-6, "m8"),
        StreamUpdate("b", "insert", _order("k3", "1"), 2e-5, "m23"),
    )
    after = (StreamUpdate("a", "insert", _order("k3", "1"), None, "m24"),)
    views = ("match /shop/a/order[s/$s]/t/$t return $s, $t > 1 as c",)
    sources = ((late, (), ended, ()), (after,))
    case = PipelineCase(SHOP.format(' replace="k"', ""), views, sources, ((0, 0, 1, 0), (0,)))
    for seed in range(8):
        check_buckets(BucketsCase(case, seed, 3, on_driver=False))


def test_a_view_that_counts_takes_no_possibility_from_another() -> None:
    """The embedded engine reports what never comes of one view, whatever the others are."""
    views = (
        "match /shop/a/order return count() as n",
        "match /shop[a/order[k/$k]/s/$s][b/order[k/$k]/t/$t] return $k, $s",
    )
    first = (
        StreamUpdate("a", "insert", _order("k1", "1"), 1e-6, "m1"),
        StreamUpdate("b", "end", "", 2e-6, "end b"),
    )
    case = PipelineCase(SHOP.format("", ""), views, ((first,),), ((2,),))
    answer = reference(case)
    assert answer is not None
    assert any(change[1] == "never" for change in answer.changes)
    check_buckets(BucketsCase(case, 1, 3, on_driver=True))


def test_cases_have_rows_changes_and_dead_letters() -> None:
    made = [reference(make_pipeline_case(Random(seed))) for seed in range(20)]
    answers = [answer for answer in made if answer is not None]
    assert len(answers) > 15
    assert sum(len(answer.rows) for answer in answers) > 20
    assert sum(len(answer.refused) for answer in answers) > 20


@pytest.mark.spark
@pytest.mark.parametrize(
    ("kind", "state", "seed"),
    [
        ("memory", "driver", 3),
        ("jsonl", "executors", 21),
        ("directory", "driver", 29),
        ("kafka", "executors", 22),
        ("frame", "executors", 53),
    ],
)
def test_spark_does_what_the_definition_says(spark: Any, kind: str, state: str, seed: int) -> None:
    """All kinds of sources and both places of state; views with final steps in every case."""
    made = spark_case(make_pipeline_case(Random(seed)), kind, state)
    assert reference(made.case) is not None
    assert any(unit.cut for unit in make_plan(made.case.definition(), buckets=2).units)
    check_spark(made, spark)


@pytest.mark.spark
@pytest.mark.system
@pytest.mark.parametrize(
    ("kind", "state", "partitions", "seed"),
    [
        ("jsonl", "driver", 1, 3),
        ("directory", "executors", 4, 177),
        ("records", "executors", 2, 53),
        ("records", "driver", 1, 78),
        ("table", "executors", 1, 53),
        ("table", "driver", 4, 108),
        ("parquet", "executors", 4, 22),
        ("delta", "executors", 2, 233),
        ("kafka", "driver", 2, 22),
        ("frame", "driver", 4, 78),
    ],
)
def test_messages_that_arrive_during_a_run(
    spark: Any, kind: str, state: str, partitions: int, seed: int
) -> None:
    """With rows, dead letters, and changes that only the clock makes, in every case."""
    case = spark_case(make_pipeline_case(Random(seed)), kind, state)
    made = replace(case, partitions=partitions, live=True)
    answer = reference(made.case)
    assert answer is not None
    assert answer.rows
    assert answer.moments
    assert answer.refused
    spark.conf.set(LEAST, "2")  # several parts of a source in a batch
    try:
        check_spark(made, spark)
    finally:
        spark.conf.unset(LEAST)


@pytest.mark.parametrize("on_driver", [True, False])
def test_an_engine_that_slept_knows_the_clock(on_driver: bool) -> None:
    """A message that no view needs advances the clock of all engines: another one is late then."""
    needless = StreamUpdate("a", "insert", "<order><s>s1</s></order>", 6e-6, "m0")
    late = StreamUpdate("b", "insert", _order("k1", "1"), 5e-6, "m1")
    views = ("match /shop[a/order/k/$k][b/order/k/$k] return $k",)
    document = SHOP.format("", "")
    case = PipelineCase(document, views, (((), (needless,)), ((late,),)), ((0, 1), (0,)))
    answer = reference(case)
    assert answer is not None
    assert [stream for stream, _ in answer.refused] == ["b"]
    for seed in range(4):
        check_buckets(BucketsCase(case, seed, 3, on_driver))


def test_updates_held_back_before_a_restart_wait_for_all_partitions() -> None:
    """Also for those of which nothing was held back, before the source is read again."""
    check_buckets(make_buckets_case(Random("sp:38")))


_CALLS = "".join(f'<{s}><ax:call xmlns:ax="urn:axlog" stream="{s}"/></{s}>' for s in "abc")


def _chain(view: str, ended: str = "") -> PipelineCase:
    """Two rows of each of `A(p)`, `B(p, k)` and `C(k)`, and the ends of some streams."""
    items = [("a", "<p>1</p>"), ("a", "<p>2</p>"), ("b", "<p>1</p><k>5</k>"),
             ("b", "<p>3</p><k>6</k>"), ("c", "<k>5</k>"), ("c", "<k>7</k>")]  # fmt: skip
    sent = [
        StreamUpdate(stream, "insert", f"<i>{inside}</i>", at * 1e-6, f"m{at}")
        for at, (stream, inside) in enumerate(items, 1)
    ]
    sent += [StreamUpdate(stream, "end", "", 9e-6, f"end {stream}") for stream in ended]
    document = f"<r>{_CALLS}<own><i><p>1</p></i></own></r>"
    return PipelineCase(document, (view,), ((tuple(sent),),), ((len(sent),),))


@pytest.mark.parametrize("buckets", [2, 4, 6])
@pytest.mark.parametrize(
    ("view", "rows"),
    [
        ("match /r[a/i/p/$p][b/i[p/$p]/k/$k][c/i/k/$k] return $p, $k", {("1", "5")}),
        ("match /r[a/i/p/$p][c/i/k/$k] return $p, $k",
         {("1", "5"), ("1", "7"), ("2", "5"), ("2", "7")}),
        ("match /r[a/i/p/$p][b/i[p/$p]/k/$k][not(c/i/k/$k)] return $p, $k", set[Any]()),
        ("match /r[a/i/p/$p][b/i[p/$p]/k/$k][c/i/k/$k] return count() as n", {(1,)}),
        ("match /r[a/i/p/$p][b/i[p/$p]/k/$k][c/i/k/$k] return $p, count() as n", {("1", 1)}),
    ],
)  # fmt: skip
def test_joins_without_a_common_column_meet_in_a_grid(
    view: str, rows: set[Any], buckets: int
) -> None:
    case = _chain(view, "b")
    answer = reference(case)
    assert answer is not None
    assert {row[1:] for row in answer.rows} == rows
    (unit,) = make_plan(case.definition(), buckets).units
    assert unit.buckets == (buckets if buckets >= 4 else 1), unit
    check_buckets(BucketsCase(case, buckets, buckets, on_driver=buckets % 4 == 0))


def test_pairs_that_never_come_are_found_in_a_grid() -> None:
    """When B ends, each row of A with each row of C; no stage of two joins would have both."""
    case = _chain("match /r[a/i/p/$p][b/i[p/$p]/k/$k][c/i/k/$k] return $p, $k", "b")
    answer = reference(case)
    assert answer is not None
    never = {change[2:] for change in answer.changes if change[1] == "never"}
    assert {("1", "7"), ("2", "5"), ("2", "7"), ("2", None), (None, "7")} <= never
    for buckets in (4, 6):
        check_buckets(BucketsCase(case, 3, buckets, on_driver=False))
