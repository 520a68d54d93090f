"""Views that come and go under a checkpoint, and checkpoints that do not fit."""

import json
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest

from axlog.errors import PipelineError
from axlog.runtime.definition import Definition
from axlog.runtime.driver_buckets import durable_state, has_durable_state
from axlog.runtime.plan import make_plan
from axlog.spark import rescale
from axlog.spark.checkpoint import FILE
from tests.runtime.test_spark_bucket import SHOP, VIEWS, by_document, definition_of, updates
from tests.spark.test_spark_streaming import WAYS, Collecting, run, state_after

pytestmark = pytest.mark.spark


def rows(sink: Collecting, view: str) -> Counter[str]:
    return state_after([change for change in sink.changes if change.view == view])


@WAYS
def test_views_that_come_are_filled_and_those_that_go_are_dropped(
    spark: Any, tmp_path: Path, state: str
) -> None:
    messages = [m._replace(source=0) for m in updates(Random(9), 70)]
    place = str(tmp_path / "checkpoint")
    options = {"checkpoint": place, "limit": 60, "hold": 0, "buckets": 2, "state": state}
    sink = Collecting()
    run(spark, definition_of("path"), messages[:50], sink, **options)
    batches = len(sink.batches)
    more = ("path", "join", "content", "static")
    run(spark, definition_of(*more), messages[:50], sink, **options)
    expected = by_document(definition_of(*more), [[messages[:50]]])[0]
    for view in more:
        assert rows(sink, view) == state_after([c for c in expected if c.view == view]) != Counter()
    assert len(sink.batches) == batches + 1  # though nothing new has come
    size = sink.reports[-1].state
    run(spark, definition_of(*more[1:]), messages, sink, **options)
    assert all(change.view != "path" for change in sink.batches[batches + 1])
    expected = by_document(definition_of(*more), [[messages[:50]], [messages[50:]]])
    for view in more[1:]:
        told = [c for batch in expected for c in batch if c.view == view]
        assert rows(sink, view) == state_after(told)
    assert size > 0

    changed = Definition(SHOP, {"join": (VIEWS["path"], None)}, ("key a/item by k trusted",))
    with pytest.raises(PipelineError) as refused:
        run(spark, changed, messages, sink, **options)
    assert refused.value.code == "AX855"
    assert "the view 'join' has changed" in str(refused.value)
    assert "its facts has changed" in str(refused.value)
    other = {"driver": "executors", "executors": "driver"}[state]
    with pytest.raises(PipelineError, match=f"state was '{state}' and is '{other}'"):
        run(spark, definition_of(*more[1:]), messages, sink, **{**options, "state": other})
    with pytest.raises(PipelineError, match="source 0 has not kept what they need"):
        run(spark, definition_of(*more[1:], "some"), messages[:10], sink, **options)


def test_a_stopped_query_is_rescaled(spark: Any, tmp_path: Path) -> None:
    """Its state moves to more partitions, and to fewer, and the answers are those of one document.

    The views include a final step on the driver, whose state counts the batches.
    """
    totals = ("match /shop[a/item/k/$x]/a/item/v/$y return count() as n", None)
    views = {view: (VIEWS[view], None) for view in ("join", "cross", "time")} | {"totals": totals}
    definition = Definition(SHOP, views)
    messages = [m._replace(source=0) for m in updates(Random(12), 60)]
    place = str(tmp_path / "checkpoint")
    options = {"checkpoint": place, "limit": 20, "hold": 0, "state": "executors", "buckets": 4}
    sink = Collecting()
    run(spark, definition, messages[:20], sink, partitions=2, **options)
    assert rescale(spark, place, 4) == 2
    query = run(spark, definition, messages[:40], sink, **options)
    assert query.query.lastProgress.stateOperators[0].numShufflePartitions == 4
    assert rescale(spark, place, 1) == 4
    query = run(spark, definition, messages, sink, **options)
    assert query.query.lastProgress.stateOperators[0].numShufflePartitions == 1
    expected = [c for b in by_document(definition, [[[m]] for m in messages]) for c in b]
    for view in views:
        told = [change for change in expected if change.view == view]
        assert rows(sink, view) == state_after(told) != Counter()
    with pytest.raises(PipelineError, match="expected: 1 to 4 partitions"):
        rescale(spark, place, 5)
    with pytest.raises(PipelineError, match="rescale --partitions 3 changes them"):
        run(spark, definition, messages, sink, partitions=3, **options)


@pytest.mark.parametrize("moment", ["recorded", "begun", "moved"])
def test_an_interrupted_rescale_is_finished_by_the_next_start(
    spark: Any, tmp_path: Path, moment: str
) -> None:
    """It is killed before Spark begins, before Spark commits, or before its end is recorded."""
    totals = ("match /shop/a/item/v/$y return count() as n", None)
    definition = Definition(SHOP, {"join": (VIEWS["join"], None), "totals": totals})
    messages = [m._replace(source=0) for m in updates(Random(12), 40)]
    place = tmp_path / "checkpoint"
    options = {"checkpoint": str(place), "limit": 20, "hold": 0, "state": "executors", "buckets": 4}
    sink = Collecting()
    run(spark, definition, messages[:20], sink, partitions=2, **options)
    assert has_durable_state(str(place))
    state = durable_state(str(place))
    assert state.unfinished() is None
    version = state.version
    assert version >= 0
    state.close()
    if moment != "recorded":
        rescale(spark, str(place), 4)
    if moment == "begun":
        last = max(int(path.name) for path in (place / "commits").glob("[0-9]*"))
        (place / "commits" / str(last)).unlink()
        (place / "commits" / f".{last}.crc").unlink(missing_ok=True)
    known = json.loads((place / FILE).read_text())
    known |= {"partitions": 2, "rescaling": [4, version]}
    (place / FILE).write_text(json.dumps(known))
    query = run(spark, definition, messages, sink, **options)
    assert query.query.lastProgress.stateOperators[0].numShufflePartitions == 4
    expected = [c for b in by_document(definition, [[[m]] for m in messages]) for c in b]
    for view in ("join", "totals"):
        told = [change for change in expected if change.view == view]
        assert rows(sink, view) == state_after(told) != Counter()
    assert rescale(spark, str(place), 2) == 4


def test_views_that_came_later_have_engines_of_their_own() -> None:
    views = {view: (VIEWS[view], None) for view in ("content", "join", "path")}
    later = Definition(SHOP, views, groups=(("content",), ("join",), ()))
    names = [unit.name for unit in make_plan(later).units]
    assert names == ["messages", "view join +1"]
    assert Definition.read(json.loads(json.dumps(later.plain()))) == later


def test_a_checkpoint_keeps_the_format_in_which_it_began(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A state that was stored without its lineage is continued by a session that stores it."""
    form = "spark.sql.streaming.stateStore.checkpointFormatVersion"
    definition = Definition(SHOP, {"join": (VIEWS["join"], None)})
    messages = [m._replace(source=0) for m in updates(Random(12), 40)]
    options = {"checkpoint": str(tmp_path / "c"), "limit": 20, "hold": 0, "state": "executors"}
    sink = Collecting()
    with monkeypatch.context() as patched:
        patched.setattr("axlog.spark.streaming_query.check_state_store", lambda spark: None)
        spark.conf.set(form, "1")
        try:
            run(spark, definition, messages[:20], sink, **options)
        finally:
            spark.conf.set(form, "2")
    run(spark, definition, messages, sink, **options)
    told = [c for b in by_document(definition, [[[m]] for m in messages]) for c in b]
    assert rows(sink, "join") == state_after(told) != Counter()
