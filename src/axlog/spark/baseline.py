"""The order monitor written without axlog: a stream-stream join over `from_xml`, for comparison.

What a Spark user would write for the on-time view (F15): parse both streams with a schema, keep
INRIA's computers, join on the order's number with the times' condition. Spark keeps every row of
both sides for ever, since nothing tells it that an order cannot ship any more; with a watermark it
drops what is older than a guess.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ORDER = "oid string, client string, details struct<computer: string>"
INPUT = "stream string, xml string, time double, number bigint"


def on_time_join(frame: DataFrame, within: int, watermark: str | None = None) -> DataFrame:
    """The on-time orders of a streaming DataFrame with `stream`, `xml` and `time` (seconds)."""
    from pyspark.sql import functions as f

    parsed = frame.select(
        "stream",
        f.from_xml("xml", ORDER).alias("message"),
        f.timestamp_micros(f.round(f.col("time") * 1_000_000).cast("bigint")).alias("at"),
    )
    if watermark is not None:
        parsed = parsed.withWatermark("at", watermark)
    orders = parsed.where(
        "stream = 'orders' and message.client = 'INRIA' and message.details.computer is not null"
    ).select(f.col("message.oid").alias("x"), f.col("at").alias("placed"))
    shipments = parsed.where("stream = 'shipments'").select(
        f.col("message.oid").alias("y"), f.col("at").alias("shipped")
    )
    condition = f"x = y and shipped - placed <= make_dt_interval(0, 0, 0, {within})"
    if watermark is not None:
        condition += " and shipped >= placed"
    return orders.join(shipments, f.expr(condition)).select("x")


def throughput(progress: list[Any]) -> tuple[float, float]:
    """Messages a second over all batches but the first, and the median batch in milliseconds."""
    rest = [one for one in progress[1:] if one["numInputRows"]]
    if not rest:
        return 0.0, 0.0
    taken = sorted(one["durationMs"]["triggerExecution"] for one in rest)
    messages = sum(one["numInputRows"] for one in rest)
    return 1000 * messages / max(1, sum(taken)), float(taken[len(taken) // 2])


def state_rows(progress: list[Any]) -> list[int]:
    """Rows in Spark's state after each batch."""
    return [sum(s["numRowsTotal"] for s in one["stateOperators"]) for one in progress]
