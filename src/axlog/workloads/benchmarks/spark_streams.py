"""F15: the on-time view of the order monitor on Spark, against a plain stream-stream join.

The same files of messages (one file a batch) go through `axlog.spark.maintain` and through the join
over `from_xml` (`spark/baseline.py`), on one session of so many cores; and through the embedded
engine in this process. Throughput leaves each query's first batch out: starting Java and Python
workers is measured apart. The join is run without a watermark, which keeps every row, as the view
without keys would have to.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

from axlog.errors import SetupError
from axlog.widgets.widget import Widget
from axlog.workloads import orders
from axlog.workloads.benchmarks.measuring import Plot, Ratio, Result

RATE = 0.002
"""Orders a second: some hundred orders are under way at a time."""


def spark_streams(batch: int = 1000, batches: int = 5, cores: Sequence[int] = (1, 2)) -> Result:
    """Both queries over the same input, for each number of cores, and the embedded engine."""
    result = Result("spark", "the on-time view on Spark and as a stream-stream join (F15)")
    try:
        from axlog.spark import prepare_environment

        prepare_environment()
    except SetupError as error:
        result.skipped = error.message
        return result
    result.sizes = {"messages a batch": batch, "batches": batches}
    with TemporaryDirectory(prefix="axlog-bench-") as directory:
        place = Path(directory)
        messages = _write(place / "in", batch, batches)
        embedded = _embedded(messages)
        result.figures["embedded, one core, messages/s"] = embedded
        for number in cores:
            _on_spark(result, place, number, embedded)
    return result


def _write(place: Path, batch: int, batches: int) -> list[dict[str, Any]]:
    """A file for each batch, in order."""
    place.mkdir()
    drawn = iter(orders.messages(batch * batches, seed=1, rate=RATE))
    every: list[dict[str, Any]] = []
    for number in range(batches):
        piece: list[dict[str, Any]] = []
        for message in islice(drawn, batch):
            row = {"stream": message["stream"], "xml": message["insert"], "time": message["at"]}
            piece.append({**row, "number": len(every) + len(piece)})
        path = place / f"{number:05}.json"
        path.write_text("\n".join(map(json.dumps, piece)) + "\n", encoding="utf-8")
        every += piece
    return every


def _embedded(messages: list[dict[str, Any]]) -> float:
    widget = Widget(orders.DOCUMENT, {"on-time": orders.ON_TIME}, facts=orders.KEYS, keep="needed")
    started = perf_counter()
    for message in messages:
        widget.feed(message["stream"], message["xml"], at=message["time"])
    return len(messages) / (perf_counter() - started)


def _on_spark(result: Result, place: Path, cores: int, embedded: float) -> None:
    from axlog.spark import maintain, session
    from axlog.spark.baseline import INPUT, on_time_join, state_rows, throughput
    from axlog.spark.session import is_running
    from axlog.spark.streaming import BatchReport

    started = perf_counter()
    is_mine = not is_running()
    # The join's state is counted; ours keeps a few rows, which costs nothing to count.
    counting = {"spark.sql.streaming.stateStore.rocksdb.trackTotalNumberOfRows": "true"}
    spark = session(f"local[{cores}]", "axlog bench", quick=True, settings=counting)
    try:
        reader = spark.readStream.schema(INPUT).option("maxFilesPerTrigger", 1)
        frame = reader.json(str(place / "in"))
        widget = Widget(orders.DOCUMENT, {"on-time": orders.ON_TIME}, facts=orders.KEYS)
        reports: list[BatchReport] = []
        first: list[float] = []

        def report(told: BatchReport) -> None:
            if not first:
                first.append(perf_counter() - started)
            reports.append(told)

        kept = maintain(spark, widget, [frame], once=True, report=report)
        kept.wait()
        ours, ours_batch = throughput(kept.query.recentProgress)
        joined = on_time_join(frame, orders.LATE_AFTER)
        writer = joined.writeStream.format("noop").trigger(availableNow=True)
        query = writer.option("checkpointLocation", str(place / f"join{cores}")).start()
        query.awaitTermination()
        theirs, theirs_batch = throughput(query.recentProgress)
        rows = state_rows(query.recentProgress)
    finally:
        if is_mine:
            spark.stop()
    head = f"{cores} core{'s' if cores > 1 else ''}"
    result.figures |= {
        f"{head}: axlog, messages/s": ours,
        f"{head}: stream-stream join, messages/s": theirs,
        f"{head}: axlog, ms a batch": ours_batch,
        f"{head}: stream-stream join, ms a batch": theirs_batch,
        f"{head}: start to first change, s": first[0],
    }
    if theirs:
        ratio = ours / theirs
        result.ratios.append(Ratio(head, "axlog / stream-stream join", ratio, ratio, ">= 2"))
        share = ours / embedded
        result.ratios.append(Ratio(head, "axlog on Spark / embedded", share, share))
    result.plots += [
        Plot(f"{head}: {what}", "batch", what, {what: list(enumerate(map(float, sizes)))})
        for what, sizes in (
            ("characters of state, axlog", [told.state for told in reports]),
            ("rows of state, stream-stream join", rows),
        )
    ]
