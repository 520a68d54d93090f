"""DataFrames of the user as messages."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from axlog.document.clock_bounds import DAY, Horizon
from axlog.document.stream_update import ACTIONS
from axlog.errors import AxlogError
from axlog.runtime.message_rows import MARK
from axlog.runtime.plain_route import FAR

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

FROM_FRAME = -1
"""The row number of a message of a DataFrame, until a task assigns it."""


def list_of(sources: Iterable[Any]) -> list[Any]:
    """Return the sources of a query as a list."""
    from pyspark.sql import DataFrame

    if isinstance(sources, DataFrame):
        raise AxlogError("AX863", "a DataFrame is given for the sources", expected="[DataFrame]")
    found = list(sources)
    if not found:
        raise AxlogError("AX863", "there are no sources", expected="a source, or a DataFrame")
    return found


def check_streaming(sources: Iterable[Any]) -> None:
    """Refuse DataFrames that are not streaming: a query that goes on cannot read them."""
    if "batch" in _ways(sources):
        raise AxlogError(
            "AX863",
            "the DataFrame is not streaming",
            advice="read it with spark.readStream, or use axlog.spark.view or axlog.spark.changes,"
            " which take it as a whole",
        )


def check_batch(sources: Iterable[Any]) -> None:
    """Refuse DataFrames that are streaming: they have no last row."""
    if "streaming" in _ways(sources):
        raise AxlogError(
            "AX863",
            "the DataFrame is streaming",
            advice="read it with spark.read, or use axlog.spark.changes, which has the changes of"
            " the rows",
        )


def check_alike(sources: Iterable[Any]) -> None:
    """Refuse DataFrames that are not streaming beside what is: a query is one or the other."""
    if len({"streaming" if way == "axlog" else way for way in _ways(sources)}) > 1:
        raise AxlogError(
            "AX863",
            "one source is streaming, and another is a DataFrame that is not",
            advice="read all of them with spark.readStream, or all with spark.read"
            " (format('axlog') for sources of axlog)",
        )


def _ways(sources: Iterable[Any]) -> set[str]:
    from pyspark.sql import DataFrame

    return {
        "axlog" if not isinstance(each, DataFrame) else "streaming" if each.isStreaming else "batch"
        for each in sources
    }


def from_frame(frame: DataFrame, index: int, horizon: Horizon | None = None) -> DataFrame:
    """Return messages from a DataFrame with `stream`, `xml`, and optionally `time`, `document`,
    `number`.

    A time is a timestamp, or a number of seconds. Without numbers, messages of equal times keep the
    order of Spark's partitions. An invalid row becomes a dead letter, and so does one whose
    timestamp is too far ahead of the batch's time, which Spark stores for repeated batches.
    """
    from pyspark.sql import functions as f
    from pyspark.sql.types import BinaryType, StringType, TimestampNTZType, TimestampType

    names = set(frame.columns)
    is_dated = False
    missing = {"stream", "xml"} - names
    if missing:
        raise AxlogError("AX863", f"the DataFrame has no column {min(missing)!r}")
    nothing = f.lit(None)
    given = f.col("time") if "time" in names else nothing
    if "time" not in names:
        time = nothing.cast("bigint")
    elif isinstance(frame.schema["time"].dataType, TimestampType | TimestampNTZType):
        time = f.unix_micros(given.cast("timestamp"))
        is_dated = True
    else:
        time = f.round(given.try_cast("double") * 1_000_000).try_cast("bigint")
    action = f.col("action") if "action" in names else f.lit("insert")
    error = (
        f.when(f.col("stream").isNull(), "it names no stream")
        .when(f.col("xml").isNull(), "it has no content")
        .when(action.isNull() | ~action.isin(*ACTIONS), "its action is none")
        .when(given.isNotNull() & (time.isNull() | (f.abs(time) >= FAR)), "its time is none")
    )
    if horizon is not None:
        latest = f.lit(DAY if is_dated or horizon.is_dated else None).cast("bigint")
        for stream, declared in horizon.declared.items():
            if declared is not None:
                mine = f.lit(declared if declared < FAR else None).cast("bigint")
                latest = f.when(f.col("stream") == stream, mine).otherwise(latest)
        now = f.unix_micros(f.current_timestamp())
        too_far = f.coalesce(time - now > latest, f.lit(False))
        error = error.when(too_far, "AX417: it is dated too far ahead of the receiver's clock")
    if not isinstance(frame.schema["xml"].dataType, StringType | BinaryType):
        found = frame.schema["xml"].dataType.simpleString()
        raise AxlogError("AX863", f"the column 'xml' is {found}", expected="string or binary")
    content = f.coalesce(f.col("xml").cast("binary"), f.lit(b""))
    if isinstance(frame.schema["xml"].dataType, StringType):
        marked = f.concat(f.lit(MARK), content)
        content = f.when(f.col("xml").startswith("<?xml"), marked).otherwise(content)
    return frame.select(
        f.lit(index).alias("source"),
        f.coalesce("stream", f.lit("")).alias("stream"),
        f.when(error.isNotNull(), "refused").otherwise(action).alias("action"),
        content.alias("content"),
        time.alias("time"),
        (f.col("number") if "number" in names else nothing).try_cast("bigint").alias("number"),
        f.coalesce(f.col("origin") if "origin" in names else nothing, f.lit("")).alias("origin"),
        (f.col("document") if "document" in names else nothing).cast("string").alias("document"),
        error.alias("error"),
        nothing.cast("int").alias("partition"),
        f.lit(FROM_FRAME).cast("bigint").alias("row"),
    )
