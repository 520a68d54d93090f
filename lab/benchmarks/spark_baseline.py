"""The order monitor written without axlog: a stream-stream join over `from_xml`, for comparison.

This is the on-time view (F15) as a Spark user would write it: parse each stream with a schema, keep
INRIA's computers, join on the order's number with the condition on the times. Spark keeps every row
of both sides forever, because it does not know that an order cannot ship any more. With a watermark
it drops rows older than a guess.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ORDER = "oid string, client string, details struct<computer: string>"
INPUT = "xml string, time double, number bigint"


def on_time_join(
    orders: DataFrame,
    shipments: DataFrame,
    within: int,
    *,
    is_after: bool = False,
    watermark: str | None = None,
) -> DataFrame:
    """The on-time orders of two streaming DataFrames with `xml` and `time` (seconds).

    `is_after`: ignore shipments that precede their order.
    """
    from pyspark.sql import functions as f

    placed, shipped = (_parsed(frame, watermark) for frame in (orders, shipments))
    wanted = placed.where("message.client = 'INRIA' and message.details.computer is not null")
    left = wanted.select(f.col("message.oid").alias("x"), f.col("at").alias("placed"))
    right = shipped.select(f.col("message.oid").alias("y"), f.col("at").alias("shipped"))
    condition = f"x = y and shipped - placed <= make_dt_interval(0, 0, 0, {within})"
    if is_after or watermark is not None:
        condition += " and shipped >= placed"
    return left.join(right, f.expr(condition)).select("x")


def _parsed(frame: DataFrame, watermark: str | None) -> DataFrame:
    from pyspark.sql import functions as f

    at = f.timestamp_micros(f.round(f.col("time") * 1_000_000).cast("bigint"))
    parsed = frame.select(f.from_xml("xml", ORDER).alias("message"), at.alias("at"))
    return parsed if watermark is None else parsed.withWatermark("at", watermark)


def milliseconds(progress: Sequence[Mapping[str, Any]]) -> list[int]:
    """The time of each batch that had input."""
    return [p["durationMs"]["triggerExecution"] for p in progress if p["numInputRows"]]


def ends_of(progress: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """When each batch that had input ended, in seconds since 1970, and its messages."""
    having = [p for p in progress if p["numInputRows"]]
    started = [datetime.fromisoformat(p["timestamp"]).timestamp() for p in having]
    taken = [each / 1000 for each in milliseconds(having)]
    return {
        "ends": [at + seconds for at, seconds in zip(started, taken, strict=True)],
        "counts": [p["numInputRows"] for p in having],
    }


def state_rows(progress: Sequence[Mapping[str, Any]]) -> list[int]:
    """Rows in Spark's state after each batch that had input."""
    return [
        sum(state["numRowsTotal"] for state in one["stateOperators"])
        for one in progress
        if one["numInputRows"]
    ]
